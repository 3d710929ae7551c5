"""The official sum, cell by cell: weights, weighted moves, and their one pass over the curves of many windows (G-30, PF-20 to PF-22).

Cells (i, j), i < j, are packed anchor by anchor, G(G+1)/2 of them. A window's reward has the same bits alone, in any batch and
from any memory layout: elementwise products, then numpy's pairwise sum over a contiguous last axis whose length depends on the
grid alone. No BLAS and no einsum.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np
from attrs import field, frozen

from blindcast.records import F64, I64, read_only

__all__ = [
    "BLOCK_CELLS",
    "Block",
    "Cells",
    "Path",
    "Returns",
    "Room",
    "blocks",
    "cells_of",
    "checked",
    "packed_weights",
    "paid",
    "parts",
    "path",
    "price",
    "priced",
    "rewards",
    "sums",
    "taken",
    "total_weight",
    "weights",
]

BLOCK_CELLS = 16_000  # 128 KB of float64: stays in cache; larger blocks lose up to 15 times to page faults (PF-22)

Returns: TypeAlias = Literal["window_bps", "simple_bps", "log_bps"]


def weights(steps: int, alpha: float = 1.0) -> F64:
    """F64[G, G+1]: w(i, j) = (1 + alpha * (1 - i/G)) * (j - i)/G for j > i, else 0 (G-30)."""
    anchor = np.arange(steps, dtype=np.float64)[:, None]
    knot = np.arange(steps + 1, dtype=np.float64)[None, :]
    return np.where(knot > anchor, (1.0 + alpha * (1.0 - anchor / steps)) * ((knot - anchor) / steps), 0.0)


def total_weight(steps: int, alpha: float = 1.0) -> float:
    """V, the sum of all weights (G-31): 3604/45 at 15 steps and alpha 1."""
    return (steps + 1) * (steps + 2) / 6 * (1 + alpha * (3 * steps + 1) / (4 * steps))


@frozen(eq=False)
class Cells:
    """The packed cells of a grid, I64 each: anchor i, knot j, and place in a row-major [G, G+1] table."""

    anchor: I64
    knot: I64
    place: I64


@lru_cache(maxsize=8)
def cells_of(steps: int) -> Cells:
    """The cells of a grid of G steps, anchor by anchor."""
    anchor, knot = (side.astype(np.int64) for side in np.triu_indices(steps, 1, steps + 1))
    packed = Cells(anchor, knot, anchor * (steps + 1) + knot)
    for side in (packed.anchor, packed.knot, packed.place):
        read_only(side)
    return packed


@frozen
class Block:
    """Windows and a stretch of packed cells that are worked on at once; `part` is the ordinal of the stretch."""

    windows: slice
    cells: slice
    part: int

    @property
    def shape(self) -> tuple[int, int]:
        """(windows, cells) of the block."""
        return self.windows.stop - self.windows.start, self.cells.stop - self.cells.start


def parts(steps: int) -> int:
    """In how many stretches a window is summed: 1 up to 178 steps."""
    return -(-(steps * (steps + 1) // 2) // BLOCK_CELLS)


def blocks(windows: int, steps: int) -> Iterator[Block]:
    """Blocks of about `BLOCK_CELLS` cells. A window's stretches depend on `steps` alone, so its sum has one order."""
    cells = steps * (steps + 1) // 2
    together = max(1, BLOCK_CELLS // cells)
    for first in range(0, windows, together):
        for part, start in enumerate(range(0, cells, BLOCK_CELLS)):
            yield Block(slice(first, min(windows, first + together)), slice(start, min(cells, start + BLOCK_CELLS)), part)


@frozen(eq=False)
class Room:
    """Scratch memory for blocks, reused so that it stays in cache."""

    _floor: F64 = field(factory=lambda: np.empty(BLOCK_CELLS))

    def of(self, block: Block) -> F64:
        """F64[windows, cells] of a block, C-ordered, with anything in it."""
        windows, cells = block.shape
        return self._floor[: windows * cells].reshape(windows, cells)


@frozen(eq=False)
class Path:
    """Paths made ready for pricing: r(i, j) = (level_j - level_i) / base_i, both F64[W, G+1]; no `base` stands for ones."""

    level: F64
    base: F64 | None


def path(ys: F64, returns: Returns) -> Path:
    """`ys` F64[W, G+1] in bps of the window's start, ready for one kind of return (G-05)."""
    ys = np.ascontiguousarray(ys, dtype=np.float64)
    if returns == "window_bps":
        return Path(ys, None)
    if returns == "simple_bps":  # 1e4 * ((1 + y_j/1e4) / (1 + y_i/1e4) - 1), without its cancellation
        return Path(ys, 1.0 + ys / 1e4)
    return Path(1e4 * np.log1p(ys / 1e4), None)


def taken(table: F64, block: Block, index: I64, out: F64) -> F64:
    """Columns `index` of the block's rows of a table [W, ..], written to `out`; any memory layout."""
    rows = table[block.windows].reshape(block.shape[0], -1)
    return np.take(rows, index[block.cells], axis=1, out=out, mode="clip")  # "raise" would work in a copy


def price(ready: Path, weight: F64, cells: Cells, block: Block, out: F64, spare: F64) -> F64:
    """F64[windows, cells]: b = r * w of a block, in `out`; `weight` is packed."""
    taken(ready.level, block, cells.knot, out)
    np.subtract(out, taken(ready.level, block, cells.anchor, spare), out=out)
    if ready.base is not None:
        np.divide(out, taken(ready.base, block, cells.anchor, spare), out=out)
    return np.multiply(out, weight[block.cells], out=out)


def sums(cells: F64) -> F64:
    """F64[n]: the sum over the contiguous last axis, in one fixed order."""
    total: F64 = np.add.reduce(cells, axis=1)
    return total


def checked(ys: F64, curves: F64) -> tuple[F64, F64]:
    """The two arrays as float64, unlike shapes refused: numpy would spread one over the other in silence."""
    ys, curves = np.asarray(ys, dtype=np.float64), np.asarray(curves, dtype=np.float64)
    if ys.ndim != 2 or ys.shape[1] < 2 or curves.shape != (len(ys), ys.shape[1] - 1, ys.shape[1]):
        raise ValueError(f"curves must be F64[W, G, G+1] for ys F64[W, G+1], got {curves.shape} for {ys.shape}")
    return ys, curves


@lru_cache(maxsize=8)
def packed_weights(steps: int, alpha: float) -> F64:
    """F64[cells]: the weights in packed order, read-only."""
    packed: F64 = weights(steps, alpha).ravel()[cells_of(steps).place]
    read_only(packed)
    return packed


def priced(ys: F64, alpha: float, returns: Returns) -> F64:
    """F64[W, cells]: b = r * w, packed; a task and a grader fix it once for all predictors (PF-22)."""
    ready = path(ys, returns)
    windows, steps = ready.level.shape[0], ready.level.shape[1] - 1
    cells, weight, room, spare = cells_of(steps), packed_weights(steps, alpha), Room(), Room()
    moves = np.empty((windows, len(weight)))
    for block in blocks(windows, steps):
        moves[block.windows, block.cells] = price(ready, weight, cells, block, room.of(block), spare.of(block))
    return moves


def paid(moves: F64, curves: F64) -> F64:
    """F64[W]: the rewards of `curves` F64[W, G, G+1] on moves that `priced` has weighted; the same bits as `rewards`."""
    windows, steps = curves.shape[:2]
    cells, room, partial = cells_of(steps), Room(), np.empty((windows, parts(steps)))
    for block in blocks(windows, steps):
        work = taken(curves, block, cells.place, room.of(block))
        np.multiply(moves[block.windows, block.cells], work, out=work)
        partial[block.windows, block.part] = sums(work)
    return sums(partial) + 0.0  # a sum of -0.0 is 0.0


def rewards(ys: F64, curves: F64, alpha: float, returns: Returns) -> F64:
    """F64[W]: sum over i < j of c * r * w for each window (G-30)."""
    ys, curves = checked(ys, curves)
    windows, steps = curves.shape[:2]
    ready, weight, cells = path(ys, returns), packed_weights(steps, alpha), cells_of(steps)
    room, spare, partial = Room(), Room(), np.empty((windows, parts(steps)))
    for block in blocks(windows, steps):
        work = price(ready, weight, cells, block, room.of(block), spare.of(block))
        np.multiply(work, taken(curves, block, cells.place, spare.of(block)), out=work)
        partial[block.windows, block.part] = sums(work)
    return sums(partial) + 0.0  # a sum of -0.0 is 0.0
