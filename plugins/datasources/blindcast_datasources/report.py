"""What an import met (DI-11): counts, gaps, files left out, the instrument, the span of each source."""

from __future__ import annotations

from collections import Counter
from typing import Final, Protocol, runtime_checkable

from attrs import define, field, frozen

from blindcast.contracts import ImportReport

__all__ = ["COUNTS", "Gap", "Report", "SpanReport", "note_span"]

COUNTS: Final = (
    "messages", "snapshots", "old_snapshots", "deltas", "stale_diffs", "before_snapshot", "gaps", "unchanged", "crossed_states", "purged",
    "clock", "bad_rows", "duplicate_trades", "trade_id_gaps", "trade_ids_missing", "zero_prints", "halts", "other",
)  # fmt: skip


@frozen
class Gap:
    """A stretch of which nothing is known; an open one has no end."""

    from_ns: int
    to_ns: int | None
    reason: str


@runtime_checkable
class SpanReport(Protocol):
    """What a report may have beyond `ImportReport`: the first and last time read of each source."""

    def span(self, name: str, first_ns: int, last_ns: int) -> None:
        """Note the times of a file."""
        ...


def note_span(report: ImportReport, name: str, first_ns: int, last_ns: int) -> None:
    """Tell a report the span of a file, if it wants to know."""
    if isinstance(report, SpanReport):
        report.span(name, first_ns, last_ns)


@define
class Report:
    """Collects; one of its own per attempt lets an attempt be forgotten."""

    counts: Counter[str] = field(factory=Counter)
    gaps: list[Gap] = field(factory=list)
    left_out: dict[str, str] = field(factory=dict)
    known: dict[str, str | None] = field(factory=dict)
    spans: dict[str, tuple[int, int]] = field(factory=dict)

    def count(self, name: str, n: int = 1) -> None:
        """Add `n` to a named count."""
        self.counts[name] += n

    def gap(self, from_ns: int, to_ns: int | None, reason: str) -> None:
        """Note a gap."""
        self.gaps.append(Gap(from_ns, to_ns, reason))

    def missing(self, name: str, why: str) -> None:
        """Note a file that was left out."""
        self.left_out[name] = why

    def instrument(self, **known: str | None) -> None:
        """State what is known of the instrument."""
        self.known.update(known)

    def span(self, name: str, first_ns: int, last_ns: int) -> None:
        """Note the first and last time read of a source."""
        before = self.spans.get(name, (first_ns, last_ns))
        self.spans[name] = (min(before[0], first_ns), max(before[1], last_ns))

    def pour(self, into: ImportReport) -> None:
        """Tell another report everything."""
        for name, n in self.counts.items():
            into.count(name, n)
        for gap in self.gaps:
            into.gap(gap.from_ns, gap.to_ns, gap.reason)
        for name, why in self.left_out.items():
            into.missing(name, why)
        into.instrument(**self.known)
        for name, (first_ns, last_ns) in self.spans.items():
            note_span(into, name, first_ns, last_ns)
