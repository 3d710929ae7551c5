"""Each mutant of a data source fails its check and no other (conformance.md Q-01)."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from attrs import evolve

from blindcast.errors import WindowUnknown
from blindcast.records import F64, Dropped, Grid, Window, WindowRef
from blindcast.testing import checks, judge, subject_of
from blindcast_datasources.synthetic import Synthetic


def with_y(window: Window, y: F64) -> Window:
    y = np.ascontiguousarray(y)
    y.flags.writeable = False
    return evolve(window, y=y)


class Honest:
    """Twelve invented windows, the last of which is a drop."""

    def __init__(self) -> None:
        self.market = Synthetic(windows=13)

    def windows(self, grid: Grid) -> Sequence[WindowRef]:
        return list(self.market.windows(grid))[:-1]

    def window(self, ref: str, grid: Grid) -> Window:
        if ref not in {one.ref for one in self.windows(grid)}:
            raise WindowUnknown(ref)
        return self.market.window(ref, grid)

    def dropped(self, grid: Grid) -> Sequence[Dropped]:
        return [Dropped(list(self.market.windows(grid))[-1].start_ns, ("stale",))]

    def digest(self) -> str:
        return self.market.digest()


class SortedAsText(Honest):
    def windows(self, grid: Grid) -> Sequence[WindowRef]:
        return sorted(super().windows(grid), key=lambda one: one.ref)


class OneName(Honest):
    def windows(self, grid: Grid) -> Sequence[WindowRef]:
        refs = list(super().windows(grid))
        return [*refs[:-1], evolve(refs[-1], ref=refs[0].ref)]


class CountsItsListings(Honest):
    listings = 0

    def windows(self, grid: Grid) -> Sequence[WindowRef]:
        type(self).listings += 1
        return [evolve(one, rows=one.rows + self.listings) for one in super().windows(grid)]


class FromTheLastClose(Honest):
    def window(self, ref: str, grid: Grid) -> Window:
        window = super().window(ref, grid)
        return with_y(window, window.y + 0.25)


class LeavesTheLastKnotOpen(Honest):
    def window(self, ref: str, grid: Grid) -> Window:
        window = super().window(ref, grid)
        return with_y(window, np.where(np.arange(grid.steps + 1) < grid.steps, window.y, np.nan)) if grid.steps == 1 else window


class Writeable(Honest):
    def window(self, ref: str, grid: Grid) -> Window:
        window = super().window(ref, grid)
        return evolve(window, y=window.y.copy())


class Interpolates(Honest):
    def window(self, ref: str, grid: Grid) -> Window:
        window = super().window(ref, grid)
        known = super().window(ref, Grid(grid.window_s, 7)).y
        return with_y(window, np.interp(np.arange(grid.steps + 1) * (1 / grid.steps), np.arange(8) / 7, known))


class CountsFromTheEnd(Honest):
    def windows(self, grid: Grid) -> Sequence[WindowRef]:
        return [evolve(one, ref=str(k)) for k, one in enumerate(super().windows(grid))]

    def window(self, ref: str, grid: Grid) -> Window:
        try:
            return self.market.window(list(self.market.windows(grid))[:-1][int(ref)].ref, grid)
        except (ValueError, IndexError):
            raise WindowUnknown(ref) from None


class RaisesKeyError(Honest):
    def window(self, ref: str, grid: Grid) -> Window:
        return self.market.window({one.ref: one.ref for one in self.windows(grid)}[ref], grid)


class ReadsToTheEnd(Honest):
    def window(self, ref: str, grid: Grid) -> Window:
        window = super().window(ref, grid)
        end = pa.array([window.start_ns + grid.window_ns], pa.int64())
        last = window.book.slice(window.book.num_rows - 1).set_column(0, window.book.schema.field(0), end)
        return evolve(window, book=pa.concat_tables([window.book, last]))


class KeepsAStaleLevel(Honest):
    def window(self, ref: str, grid: Grid) -> Window:
        window = super().window(ref, grid)
        place = window.book.schema.get_field_index("bid_px")
        levels = [list(row) for row in window.book.column(place).to_pylist()]
        levels[3][1] = levels[3][0]
        return evolve(
            window, book=window.book.set_column(place, window.book.schema.field(place), [pa.array(levels, pa.list_(pa.int64(), 20))])
        )


class SkipsASlot(Honest):
    def windows(self, grid: Grid) -> Sequence[WindowRef]:
        refs = list(super().windows(grid))
        return refs[:6] + refs[7:]


class DropsInSilence(Honest):
    def dropped(self, grid: Grid) -> Sequence[Dropped]:
        return [evolve(one, reasons=()) for one in super().dropped(grid)]


class OnDisk(Honest):
    """The same windows; a file stands for the pool."""

    def __init__(self, pool: Path) -> None:
        super().__init__()
        self.pool = pool

    def digest(self) -> str:
        return sha256((self.pool / "rows").read_bytes()).hexdigest()


class HashesNames(OnDisk):
    def digest(self) -> str:
        return sha256(str(self.pool).encode()).hexdigest()


class HashesTimes(OnDisk):
    def digest(self) -> str:
        return sha256(repr((self.pool / "rows").stat().st_mtime_ns).encode()).hexdigest()


class HashesNothing(OnDisk):
    def digest(self) -> str:
        return sha256(b"").hexdigest()


class WritesAnIndex(OnDisk):
    def windows(self, grid: Grid) -> Sequence[WindowRef]:
        (self.pool / "index").write_text("12")
        return super().windows(grid)


class Mirrored(Honest):
    """Can show the market upside down."""

    def __init__(self) -> None:
        super().__init__()
        self.sign = 1.0

    def mirror(self) -> Any:
        other = type(self)()
        other.sign = -1.0
        return other

    def window(self, ref: str, grid: Grid) -> Window:
        window = super().window(ref, grid)
        return with_y(window, self.sign * window.y)


class DropsFalls(Mirrored):
    def _falls(self, one: WindowRef, grid: Grid) -> bool:
        return self.sign * float(self.market.window(one.ref, grid).y[-1]) < -10.0

    def windows(self, grid: Grid) -> Sequence[WindowRef]:
        return [one for one in super().windows(grid) if not self._falls(one, grid)]

    def dropped(self, grid: Grid) -> Sequence[Dropped]:
        fallen = [Dropped(one.start_ns, ("unsound",)) for one in super().windows(grid) if self._falls(one, grid)]
        return [*fallen, *super().dropped(grid)]


MUTANTS = [
    (SortedAsText, ["DS-01"]),
    (OneName, ["DS-01"]),
    (CountsItsListings, ["DS-01"]),
    (FromTheLastClose, ["DS-02"]),
    (LeavesTheLastKnotOpen, ["DS-02"]),
    (Writeable, ["DS-02"]),
    (Interpolates, ["DS-03"]),
    (CountsFromTheEnd, ["DS-04"]),
    (RaisesKeyError, ["DS-04"]),
    (ReadsToTheEnd, ["DS-05"]),
    (KeepsAStaleLevel, ["DS-06"]),
    (SkipsASlot, ["DS-07"]),
    (DropsInSilence, ["DS-07"]),
    (HashesNames, ["DS-08"]),
    (HashesTimes, ["DS-08"]),
    (HashesNothing, ["DS-08"]),
    (WritesAnIndex, ["DS-09"]),
    (DropsFalls, ["DS-10"]),
]


def failing(source: type, folder: Path) -> dict[str, str]:
    options: dict[str, object] = {}
    if issubclass(source, OnDisk):
        (folder / "pool").mkdir()
        (folder / "pool" / "rows").write_bytes(bytes(range(200)))
        options = {"pool": folder / "pool"}
    subject = subject_of("datasources", source, options)
    results = (judge(check, subject) for check in checks("datasources"))
    return {result.id: result.detail for result in results if result.result == "fail"}


@pytest.mark.parametrize(("mutant", "ids"), MUTANTS, ids=lambda value: getattr(value, "__name__", ""))
def test_a_mutant_fails_its_check_and_no_other(mutant: type, ids: list[str], tmp_path: Path) -> None:
    """DS-01 to DS-10."""
    failed = failing(mutant, tmp_path)
    assert list(failed) == ids, failed


@pytest.mark.parametrize("twin", [Honest, OnDisk, Mirrored])
def test_an_honest_twin_fails_none(twin: type, tmp_path: Path) -> None:
    """Q-01."""
    assert failing(twin, tmp_path) == {}


def test_every_check_of_data_sources_has_a_mutant() -> None:
    """P-53."""
    own = {check.id for check in checks("datasources") if check.id.startswith("DS-")}
    assert own == {one for _, ids in MUTANTS for one in ids}
