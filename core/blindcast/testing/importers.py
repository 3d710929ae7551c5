"""IM-01 to IM-07: what a reader of raw recordings must do so that a pool is what was recorded (conformance.md, data.md 3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from attrs import define, field

from blindcast.contracts import Importer
from blindcast.errors import ImportDamaged
from blindcast.testing.kit import Check, Skip, Subject
from blindcast.testing.recordings import SAMPLES, RawSample
from blindcast.testing.tables import book_schema, levels_of, trades_schema

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["CHECKS"]

LEAST_SCORE: Final = 0.5  # DI-01
PNG: Final = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\6\0\0\0\x1f\x15\xc4\x89"
COPIES: Final = 8  # folders that the same files are read from: a set would come in another order in some


@define
class _Told:
    """What an importer told of an import."""

    counts: Counter[str] = field(factory=Counter)
    gaps: list[tuple[int, int | None, str]] = field(factory=list)
    left_out: list[str] = field(factory=list)
    known: dict[str, str | None] = field(factory=dict)

    def count(self, name: str, n: int = 1) -> None:
        self.counts[name] += n

    def gap(self, from_ns: int, to_ns: int | None, reason: str) -> None:
        self.gaps.append((from_ns, to_ns, reason))

    def missing(self, name: str, why: str) -> None:
        self.left_out.append(name)

    def instrument(self, **known: str | None) -> None:
        self.known |= known


def _sample(subject: Subject, importer: Importer) -> RawSample:
    """The importer's own recording. Raises Skip where there is none."""
    own = getattr(importer, "sample", None)
    name = subject.offer.name if subject.offer is not None else subject.name
    known = own if isinstance(own, RawSample) else SAMPLES.get(name)
    if known is None:
        raise Skip(
            f"{subject.name} has no recording to read: give the importer an attribute `sample`, a blindcast.testing.recordings.RawSample"
        )
    return known


def _read(importer: Importer, paths: Sequence[Path]) -> tuple[list[pa.RecordBatch], _Told]:
    told = _Told()
    return list(importer.read(paths, told)), told


def _same(one: Sequence[pa.RecordBatch], other: Sequence[pa.RecordBatch]) -> bool:
    return len(one) == len(other) and all(a.equals(b) for a, b in zip(one, other, strict=True))


def _rows(batches: Sequence[pa.RecordBatch]) -> str:
    return f"{len(batches)} batches of {[batch.num_rows for batch in batches]} rows"


def _foreign(folder: Path, own: RawSample, suffix: str) -> Iterator[tuple[str, Path]]:
    """What is not the importer's, under a name as if it were."""
    for what, content in (("an empty file", b""), ("a PNG", PNG), ("a line of text", b"hello\n")):
        path = folder / f"{what.split()[-1]}{suffix}"
        path.write_bytes(content)
        yield what, path
    (folder / "none").mkdir()
    yield "an empty folder", folder / "none"
    yield "a path where nothing is", folder / f"gone{suffix}"
    for name, sample in SAMPLES.items():
        if sample is not own:
            (folder / name).mkdir()
            yield from ((f"a file of {name}", path) for path in sample.write(folder / name))


def sniffs_honestly(subject: Subject) -> None:
    """IM-01."""
    importer = subject.make()
    with TemporaryDirectory(prefix="blindcast-") as text:
        folder, sample = Path(text), _sample(subject, importer)
        own = [(path, float(importer.sniff(path))) for path in sample.write(folder)]
        for path, score in own:
            assert LEAST_SCORE <= score <= 1.0, f"its own {path.name}: expected a score from {LEAST_SCORE} to 1, got {score}"
        least = min(score for _, score in own)
        for what, path in _foreign(folder, sample, own[0][0].suffix):
            try:
                score = float(importer.sniff(path))
            except Exception as error:
                raise AssertionError(f"{what} ({path.name}): expected a score, got {type(error).__name__}: {error}") from error
            assert 0.0 <= score < least, f"{what} ({path.name}): expected a score below its own {least}, got {score}"


def is_repeatable(subject: Subject) -> None:
    """IM-02: read again, and from other folders."""
    importer = subject.make()
    sample = _sample(subject, importer)
    with TemporaryDirectory(prefix="blindcast-") as text:
        first: list[pa.RecordBatch] | None = None
        for k in range(COPIES):
            folder = Path(text) / f"copy-{k}"
            folder.mkdir()
            for _ in range(2):
                batches, _told = _read(subject.make(), sample.write(folder))
                assert first is None or _same(first, batches), (
                    f"copy {k}: expected the same {_rows(first or ())}, got {_rows(batches)}, others"
                )
                first = batches


def is_canonical(subject: Subject) -> None:
    """IM-03."""
    importer = subject.make()
    sample = _sample(subject, importer)
    with TemporaryDirectory(prefix="blindcast-") as text:
        batches, _ = _read(importer, sample.write(Path(text)))
        assert batches, "its own recording: expected batches, got none"
        newest: dict[str, int] = {}
        for k, batch in enumerate(batches):
            kind, schema = ("book", book_schema()) if "flags" in batch.schema.names else ("trades", trades_schema())
            got, expected = ([(f.name, str(f.type)) for f in one] for one in (batch.schema, schema))
            assert got == expected, f"batch {k}: expected the columns {expected}, got {got}"
            nulls = [f.name for f in schema if not f.nullable and batch.column(f.name).null_count]
            assert not nulls, f"batch {k}: expected no null in {', '.join(nulls)}"
            ts = np.array([newest.get(kind, -(2**63)), *batch.column("ts_ns").to_pylist()])
            falls = np.flatnonzero(ts[1:] < ts[:-1])
            assert not len(falls), f"batch {k}, {kind}: expected times that never fall, got row {falls[:1]} before the one in front of it"
            newest[kind] = int(ts[-1])
        first = next(int(batch.column("ts_ns")[0].as_py()) for batch in batches if batch.num_rows and "flags" in batch.schema.names)
        assert first == sample.first_ns, f"the first book: expected {sample.first_ns} ns, got {first}"


def is_order_free(subject: Subject) -> None:
    """IM-04."""
    importer = subject.make()
    sample = _sample(subject, importer)
    with TemporaryDirectory(prefix="blindcast-") as text:
        paths = sample.write(Path(text))
        first, _ = _read(importer, paths)
        for order in permutations(paths):
            batches, _ = _read(subject.make(), order)
            names = [path.name for path in order]
            assert _same(first, batches), f"paths in the order {names}: expected {_rows(first)}, the same, got {_rows(batches)}"


def has_exact_ticks(subject: Subject) -> None:
    """IM-05: the best bid of the first book is 4.35 at a tick of 0.01."""
    importer = subject.make()
    sample = _sample(subject, importer)
    with TemporaryDirectory(prefix="blindcast-") as text:
        batches, told = _read(importer, sample.write(Path(text)))
        assert told.known.get("tick_size") == sample.tick_size, f"expected a tick of {sample.tick_size}, got {told.known.get('tick_size')}"
        best = next(int(_best_bid(batch)) for batch in batches if batch.num_rows and "flags" in batch.schema.names)
        exact = f"the best bid of the first book: expected {sample.first_bid} ticks of {sample.tick_size}"
        assert best == sample.first_bid, f"{exact}, got {best}"


def _best_bid(batch: pa.RecordBatch) -> Any:
    import pyarrow as pa

    return levels_of(pa.Table.from_batches([batch]), "bid_px")[0][0, 0]


def damage_is_loud(subject: Subject) -> None:
    """IM-06."""
    importer = subject.make()
    sample = _sample(subject, importer)
    with TemporaryDirectory(prefix="blindcast-") as text:
        for what, paths in sample.damaged(Path(text)):
            refusal = _refusal(subject.make(), paths)
            said = f"{what} ({paths[0].name}): expected ImportDamaged"
            assert isinstance(refusal, ImportDamaged), f"{said}, got {refusal if isinstance(refusal, str) else _raised(refusal)}"
            assert refusal.file, f"{said} with the file's name, got {refusal.file!r}"
            assert refusal.place, f"{said} with a place, got {refusal.place!r}"


def _refusal(importer: Importer, paths: Sequence[Path]) -> Exception | str:
    """What reading raises, or what it gave."""
    try:
        return _rows(_read(importer, paths)[0])
    except Exception as error:
        return error


def _raised(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def is_counted(subject: Subject) -> None:
    """IM-07."""
    importer = subject.make()
    sample = _sample(subject, importer)
    with TemporaryDirectory(prefix="blindcast-") as text:
        _, told = _read(importer, sample.write(Path(text)))
    for name, n in sample.counts.items():
        assert told.counts[name] == n, f"planted {name}: expected {n} in the report, got {told.counts[name]} of {dict(told.counts)}"
    gaps = sample.counts.get("gaps", 0)
    assert len(told.gaps) == gaps, f"planted gaps: expected {gaps} in the report, got {told.gaps}"


CHECKS: tuple[Check, ...] = (
    Check("IM-01", "sniff honest", sniffs_honestly),
    Check("IM-02", "repeatable", is_repeatable),
    Check("IM-03", "canonical", is_canonical),
    Check("IM-04", "order-free", is_order_free),
    Check("IM-05", "exact ticks", has_exact_ticks),
    Check("IM-06", "damage is loud", damage_is_loud),
    Check("IM-07", "counted", is_counted),
)
