"""Splice: a Binance snapshot and the diffs around it become one book (B-04, B-05)."""

from __future__ import annotations

from collections import deque
from typing import Final, Literal

from attrs import frozen

from blindcast.contracts import ImportReport
from blindcast_datasources.replay import BookReplayer, Levels

__all__ = ["Diff", "Splice"]

MOST_BUFFERED: Final = 10_000  # diffs that wait for a snapshot; older ones could not be spliced by any that comes later


@frozen
class Diff:
    """One depth update: ids `first` U to `last` u, `previous` pu on futures; levels are (price, size), absolute."""

    first: int
    last: int
    previous: int | None
    ts: int
    recv: int
    flags: int
    bids: Levels
    asks: Levels

    def follows(self, last: int, *, is_first: bool) -> bool:
        """Whether nothing is missing between update `last` and this; after a snapshot an overlap is no fault."""
        if self.previous is None:
            return self.first <= last + 1
        return self.previous <= last if is_first else self.previous == last

    def broken(self, last: int) -> str:
        """The words for a break before this."""
        named = f"U {self.first}" if self.previous is None else f"pu {self.previous}"
        return f"sequence: {named} after u {last}"


class Splice:
    """Buffers diffs until a snapshot fits, then keeps them in step."""

    def __init__(self, book: BookReplayer, report: ImportReport, gap: Literal["stop", "continue"]) -> None:
        self._book, self._report = book, report
        self._goes_on = gap == "continue"
        self._last: int | None = None  # id of the newest update in the book
        self._is_first = False  # the next diff is the first after a snapshot
        self._waiting: deque[Diff] = deque(maxlen=MOST_BUFFERED)
        self.diffs = 0
        self.snapshots = 0

    @property
    def last(self) -> int | None:
        """Id of the newest update in the book; None before any."""
        return self._last

    def diff(self, diff: Diff) -> bool:
        """The next update; whether it made a state."""
        self.diffs += 1
        return self._next(diff)

    def _next(self, diff: Diff) -> bool:
        if self._last is None:
            self._keep(diff)
            return False
        if self._book.is_broken:
            self._keep(diff)
            return self._goes_on and self._apply(diff)
        if diff.last <= self._last:
            self._report.count("stale_diffs")
            return False
        if not diff.follows(self._last, is_first=self._is_first):
            self._book.break_off(diff.ts, diff.broken(self._last))
            self._keep(diff)
            return self._goes_on and self._apply(diff)
        return self._apply(diff)

    def snapshot(self, last: int, ts: int | None, recv: int, bids: Levels, asks: Levels, flags: int = 0) -> bool:
        """A snapshot that contains every update up to `last`; whether it was taken."""
        self.snapshots += 1
        in_step = self._last is not None and not self._book.is_broken
        if in_step and last < (self._last or 0):
            self._report.count("old_snapshots")
            return False
        newer = [diff for diff in self._waiting if diff.last > last]
        if newer and not newer[0].follows(last, is_first=True):
            self._report.count("old_snapshots")
            self._book.break_off(newer[0].ts, newer[0].broken(last))
            return False
        goes_on = self._goes_on and self._last is not None  # what waited was applied already
        if not goes_on:
            self._report.count("stale_diffs", len(self._waiting) - len(newer))
        self._waiting.clear()
        self._report.count("snapshots")
        self._book.whole(None if goes_on and newer else ts, recv, last, bids, asks, flags=flags)
        self._last, self._is_first = last, True
        for diff in newer:
            if goes_on:
                self._again(diff)
            else:
                self._next(diff)
        return True

    def _keep(self, diff: Diff) -> None:
        if len(self._waiting) == MOST_BUFFERED:
            self._report.count("before_snapshot")
        self._waiting.append(diff)

    def _apply(self, diff: Diff) -> bool:
        self._report.count("deltas")
        self._book.delta(diff.ts, diff.recv, diff.last, diff.bids, diff.asks, flags=diff.flags)
        self._last, self._is_first = diff.last, False
        return True

    def _again(self, diff: Diff) -> None:
        """Bring a fresh snapshot up to a diff whose state was shown before it came."""
        self._book.delta(diff.ts, diff.recv, diff.last, diff.bids, diff.asks, shows=False)
        self._last, self._is_first = diff.last, False
