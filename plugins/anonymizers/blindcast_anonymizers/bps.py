"""The basic blinding `bps` (data.md DA-01 to DA-05): levels and path in bps of the window's start, weights in median sizes.

What is shown depends on whole ticks, lots and nanoseconds since the start alone; no tick size, name or date enters.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from blindcast.records import F32, I64, Blinded, Window, read_only
from blindcast_anonymizers import shown

__all__ = ["COLUMNS", "LEVELS", "Bps"]

LEVELS = 20
COLUMNS = ("t", *(f"{side}_{kind}{k}" for side in ("lo", "hi") for k in range(1, LEVELS + 1) for kind in "LW"))
LO, HI = slice(1, 2 * LEVELS + 1), slice(2 * LEVELS + 1, 4 * LEVELS + 1)
BLOCK_ROWS = 512  # worked on at once: they stay in cache

DESCRIPTION = (
    "Each row of the ladder is one state of two queues that face each other. `t` is seconds since the window's start. `lo_L1` to "
    "`lo_L20` are the levels of the lower side, nearest first, `hi_L1` to `hi_L20` those of the upper side, in basis points of the "
    "reference level at the window's start, which is 0. `lo_W1`, `hi_W1` and so on are the weights that wait at these levels; 1 is the "
    "median weight at the start; NaN in both is a missing level. `y` is the path halfway between the two nearest levels at each knot, "
    "in the same basis points. Each event has its time `t` and its signed weight `value`, in the same units: positive pushes towards "
    "the upper side, negative towards the lower."
)


@frozen
class Bps:
    """Levels, weights and path in units of the window's opening state; it has no options and uses no salt."""

    strength: ClassVar[Literal["basic", "strong"]] = "basic"

    def blind(self, window: Window, salt: bytes) -> Blinded:
        """The window as shown: rows with bid < ask, prints with a known side. `salt` has no say (DA-06)."""
        book, prints = shown.book(window.book), shown.prints(window.trades)
        middle, unit = _units(window)
        knots_ns = window.grid.knots_ns(window.start_ns)
        blinded = Blinded(
            columns=COLUMNS,
            ladder=_ladder(book, middle, unit, window.start_ns),
            events=np.column_stack((shown.seconds(prints.ts_ns - window.start_ns), (prints.signed / unit).astype(np.float32))),
            y=window.y.astype(np.float32).astype(np.float64),
            ladder_until=shown.until(book.ts_ns, knots_ns),
            events_until=shown.until(prints.ts_ns, knots_ns),
        )
        for array in (blinded.ladder, blinded.events, blinded.y, blinded.ladder_until, blinded.events_until):
            read_only(array)
        return blinded

    def describe(self) -> str:
        """What the columns mean, in one paragraph that names nothing."""
        return DESCRIPTION


def _units(window: Window) -> tuple[int, float]:
    """The opening's bid + ask in ticks, and the median of its sizes in lots (DA-05)."""
    opening = shown.book(window.opening, locked=True)
    middle = int(opening.px[0][0, 0]) + int(opening.px[1][0, 0])
    sizes = [side[0] if there is None else side[0][there[0]] for side, there in zip(opening.sz, opening.present, strict=True)]
    return middle, float(np.median(np.concatenate(sizes)))


def _ladder(book: shown.Book, middle: int, unit: float, start_ns: int) -> F32:
    """F32[N, 81] in the order of COLUMNS."""
    rows = len(book.ts_ns)
    ladder = np.empty((rows, len(COLUMNS)), dtype=np.float32)
    ladder[:, 0] = shown.seconds(book.ts_ns - start_ns)
    for first in range(0, rows, BLOCK_ROWS):
        block = slice(first, first + BLOCK_ROWS)
        for columns, px, sz, present in zip((LO, HI), book.px, book.sz, book.present, strict=True):
            out = ladder[block, columns]
            _side(out, px[block], sz[block], None if present is None else present[block], middle, unit)
        shown.outwards(ladder[block, LO][:, ::2], ladder[block, HI][:, ::2])
    return ladder


def _side(out: F32, px: I64, sz: I64, present: NDArray[np.bool_] | None, middle: int, unit: float) -> None:
    """Fill F32[n, 40], level and weight in turn; a missing level is NaN in both."""
    distance = (2 * px - middle).astype(np.float64)
    distance *= 1e4
    distance /= middle
    out[:, ::2] = distance
    out[:, 1::2] = np.divide(sz, unit, out=distance)
    if present is not None:
        out[~np.repeat(present, 2, axis=1)] = np.nan
