"""Each mutant of an importer fails its check (conformance.md Q-01)."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

from blindcast.contracts import ImportReport
from blindcast.errors import ImportDamaged
from blindcast.testing import checks, judge, subject_of
from blindcast.testing.recordings import SAMPLES, RawSample
from blindcast_datasources.binance import Binance
from blindcast_datasources.lake import Lake


class Honest:
    """The `binance` importer, by another name and with a recording of its own."""

    sample: ClassVar[RawSample] = SAMPLES["binance"]

    def sniff(self, path: Path) -> float:
        return Binance().sniff(path)

    def read(self, paths: Sequence[Path], report: ImportReport) -> Iterator[pa.RecordBatch]:
        return Binance().read(paths, report)


class TrustsTheSuffix(Honest):
    def sniff(self, path: Path) -> float:
        return 0.9 if path.suffix == ".raw" else 0.0


class Raises(Honest):
    def sniff(self, path: Path) -> float:
        return Binance().sniff(path) if path.read_bytes() else 0.0


class DrawsTheOrder(Honest):
    """Stands for one that iterates over a set: another order each time."""

    reads = 0

    def read(self, paths: Sequence[Path], report: ImportReport) -> Iterator[pa.RecordBatch]:
        type(self).reads += 1
        for batch in Binance().read(paths, report):
            yield batch.take(pa.array(np.arange(batch.num_rows))) if self.reads % 2 else batch.slice(0, max(0, batch.num_rows - 1))


class LocalTimeIsNotUtc(Honest):
    def read(self, paths: Sequence[Path], report: ImportReport) -> Iterator[pa.RecordBatch]:
        for batch in Binance().read(paths, report):
            later = pa.array(batch.column("ts_ns").to_numpy() + 3600 * 1_000_000_000)
            yield batch.set_column(0, batch.schema.field(0), later)


class FloatTicks(Honest):
    """Its prices are doubles."""

    def read(self, paths: Sequence[Path], report: ImportReport) -> Iterator[pa.RecordBatch]:
        for batch in Binance().read(paths, report):
            place = batch.schema.get_field_index("px")
            yield batch if place < 0 else batch.set_column(place, pa.field("px", pa.float64()), batch.column(place).cast(pa.float64()))


class TrustsTheOrderGiven(Honest):
    def read(self, paths: Sequence[Path], report: ImportReport) -> Iterator[pa.RecordBatch]:
        one_by_one = [list(Binance().read([path], report)) for path in paths]
        for books in (True, False):
            yield from (batch for batches in one_by_one for batch in batches if ("flags" in batch.schema.names) is books)


class Truncates(Honest):
    """`int(4.35 / 0.01)` is 434."""

    def read(self, paths: Sequence[Path], report: ImportReport) -> Iterator[pa.RecordBatch]:
        for batch in Binance().read(paths, report):
            place = batch.schema.get_field_index("bid_px")
            if place < 0:
                yield batch
                continue
            column = batch.column(place)
            cut = [None if v is None else int((v / 100) / 0.01) for row in column.to_pylist() for v in row]
            yield batch.set_column(
                place, batch.schema.field(place), pa.FixedSizeListArray.from_arrays(pa.array(cut, pa.int64()), type=column.type)
            )


class KeepsWhatItGot(Honest):
    def read(self, paths: Sequence[Path], report: ImportReport) -> Iterator[pa.RecordBatch]:
        try:
            yield from Binance().read(paths, report)
        except ImportDamaged:
            report.missing(paths[0].name, "damaged")


class FirstMemberOnly(Honest):
    """Reads the first gzip member and forgets the others."""

    def read(self, paths: Sequence[Path], report: ImportReport) -> Iterator[pa.RecordBatch]:
        for path in paths:
            data = path.read_bytes()
            if data[:2] == b"\x1f\x8b":
                try:
                    member = zlib.decompressobj(wbits=31)
                    text = member.decompress(data)
                except zlib.error as error:
                    raise ImportDamaged(path.name, "gzip") from error
                if not member.eof:
                    raise ImportDamaged(path.name, "cut")
                path.write_bytes(gzip.compress(text))
        yield from Binance().read(paths, report)


class Quiet:
    """A report that forgets what a subclass of it is told to forget."""

    def __init__(self, report: ImportReport) -> None:
        self._report = report

    def count(self, name: str, n: int = 1) -> None:
        if name not in ("gaps", "crossed_states"):
            self._report.count(name, n)

    def gap(self, from_ns: int, to_ns: int | None, reason: str) -> None:
        """A gap is no news."""

    def missing(self, name: str, why: str) -> None:
        self._report.missing(name, why)

    def instrument(self, **known: str | None) -> None:
        self._report.instrument(**known)


class FillsGaps(Honest):
    def read(self, paths: Sequence[Path], report: ImportReport) -> Iterator[pa.RecordBatch]:
        yield from Binance().read(paths, Quiet(report))


class HonestLake:
    """The `lake` importer, by another name."""

    sample: ClassVar[RawSample] = SAMPLES["lake"]

    def sniff(self, path: Path) -> float:
        return Lake().sniff(path)

    def read(self, paths: Sequence[Path], report: ImportReport) -> Iterator[pa.RecordBatch]:
        return Lake().read(paths, report)


class WithoutSample:
    def sniff(self, path: Path) -> float:
        return 0.0

    def read(self, paths: Sequence[Path], report: ImportReport) -> Iterator[pa.RecordBatch]:
        return iter(())


MUTANTS = [
    (TrustsTheSuffix, ["IM-01"]),
    (Raises, ["IM-01"]),
    (DrawsTheOrder, ["IM-02", "IM-04"]),
    (LocalTimeIsNotUtc, ["IM-03"]),
    (FloatTicks, ["IM-03"]),
    (TrustsTheOrderGiven, ["IM-04", "IM-07"]),
    (Truncates, ["IM-05"]),
    (KeepsWhatItGot, ["IM-06"]),
    (FirstMemberOnly, ["IM-06"]),
    (FillsGaps, ["IM-07"]),
]


def results(importer: Any) -> dict[str, tuple[str, str]]:
    subject = subject_of("datasources", importer, protocol="Importer")
    judged = (judge(check, subject) for check in checks("datasources", "Importer"))
    return {result.id: (result.result, result.detail) for result in judged}


@pytest.mark.parametrize(("mutant", "ids"), MUTANTS, ids=lambda value: getattr(value, "__name__", ""))
def test_a_mutant_fails_its_check(mutant: type, ids: list[str]) -> None:
    """IM-01 to IM-07."""
    failed = {one: detail for one, (result, detail) in results(mutant).items() if result == "fail"}
    assert list(failed) == ids, failed


@pytest.mark.parametrize("twin", [Honest, HonestLake])
def test_an_honest_twin_passes_all(twin: type) -> None:
    """Q-01."""
    assert {one: told for one, told in results(twin).items() if told[0] != "pass"} == {}


def test_an_importer_without_a_recording_is_not_judged_and_told_how_to_give_one() -> None:
    """P-51."""
    told = results(WithoutSample)
    assert {one for one, (result, _) in told.items() if result == "skip"} == {f"IM-0{k}" for k in range(1, 8)}
    assert "an attribute `sample`" in told["IM-01"][1]
