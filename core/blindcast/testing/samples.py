"""Invented windows for the checks: seeded, small, with everything in them that a recorded pool may hold (data.md 1, 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from attrs import evolve, frozen

from blindcast.records import F64, I64, Grid, Window, read_only
from blindcast.testing.tables import CROSSED, DEPTH, LOCKED, ONE_SIDED, SHORT, SIDES, book_schema, levels_of, trades_schema

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["NAMES", "START_NS", "invented", "replaced_after", "scaled"]

START_NS: Final = 1_583_020_800_000_000_000  # 2020-03-01, invented like everything here
NAMES: Final = ("ZQXUSD", "zqx", "usd", "acmex")  # symbol, base, quote, venue: stand in the metadata and in the ref
MISSING: Final = -(2**63)
ROWS: Final = 240


@frozen(eq=False)
class _Rows:
    """Book states as arrays: `ts` I64[N], `levels` I64[N, 4, 20] in the order of SIDES, MISSING where there is no level."""

    ts: I64
    levels: I64

    def flags(self) -> I64:
        """The bits that the levels themselves ask for."""
        there = self.levels != MISSING
        bid, ask = self.levels[:, 0, 0], self.levels[:, 2, 0]
        both = there[:, 0, 0] & there[:, 2, 0]
        flags = np.where(there[:, (0, 2)].all(axis=(1, 2)), 0, SHORT)
        flags |= np.where(both & (bid > ask), CROSSED, 0) | np.where(both & (bid == ask), LOCKED, 0) | np.where(both, 0, ONE_SIDED)
        return flags

    def table(self) -> pa.Table:
        """The rows with the pool's columns, and metadata that names the instrument: no part of it may be shown."""
        import pyarrow as pa

        lists = []
        for side in range(len(SIDES)):
            values = self.levels[:, side].ravel()
            lists.append(pa.FixedSizeListArray.from_arrays(pa.array(values, mask=values == MISSING), DEPTH))
        n = len(self.ts)
        singles = [pa.array(self.ts), pa.nulls(n, pa.int64()), pa.array(np.arange(n)), pa.array(self.flags().astype(np.uint16))]
        return pa.Table.from_arrays([*singles, *lists], schema=book_schema().with_metadata(_metadata()))


def _metadata() -> dict[str, str]:
    return {"symbol": NAMES[0], "base": NAMES[1], "quote": NAMES[2], "venue": NAMES[3]}


def _states(rng: np.random.Generator, times: I64, middle: int, levels: int, step: int, *, odd: bool) -> I64:
    """I64[N, 4, 20]: a book around a walking middle, prices in multiples of `step`; a few rows locked, crossed, short or one-sided."""
    n = len(times)
    walk = middle + step * np.cumsum(rng.integers(-3, 4, n))
    out = np.full((n, 4, DEPTH), MISSING, dtype=np.int64)
    for place, sign in ((0, -1), (2, 1)):
        gaps = step * rng.integers(1, 5, (n, levels))
        out[:, place, :levels] = walk[:, None] + sign * np.cumsum(gaps, axis=1)
        out[:, place + 1, :levels] = np.maximum(1, rng.lognormal(5.0, 1.0, (n, levels))).astype(np.int64)
    strange = rng.permutation(np.arange(1, n))[: max(4, n // 12) if odd else 0]  # never the opening
    for k, row in enumerate(strange.tolist()):
        place = 2 * int(rng.integers(2))
        if k % 4 == 0:
            out[row, 0, :levels] += out[row, 2, 0] - out[row, 0, 0]  # locked
        elif k % 4 == 1:
            out[row, 0, :levels] += out[row, 2, 0] - out[row, 0, 0] + step  # crossed
        elif k % 4 == 2:
            out[row, place : place + 2] = MISSING  # one-sided
        else:
            out[row, place : place + 2, max(1, levels // 2) :] = MISSING  # short
    return out


def _times(rng: np.random.Generator, grid: Grid, rows: int) -> I64:
    """Ascending times in [start, start + T): on most knots, just before them, twice at some instants."""
    knots = grid.knots_ns(START_NS)[:-1]
    free = START_NS + rng.integers(0, grid.window_ns, rows)
    times = np.concatenate([free, knots[1:], knots[1:] - 1, free[: rows // 10]])
    return np.sort(times).astype(np.int64)


def _prints(rng: np.random.Generator, times: I64, middle: int, step: int) -> pa.Table:
    """Prints, some without a side, some that are no trades."""
    import pyarrow as pa

    n = len(times)
    columns = [
        pa.array(times),
        pa.nulls(n, pa.int64()),
        pa.array(middle + step * rng.integers(-20, 21, n)),
        pa.array(np.maximum(1, rng.lognormal(3.0, 1.5, n)).astype(np.int64)),
        pa.array(rng.choice([-1, 1, 1, -1, 0], n).astype(np.int8)),
        pa.array(np.arange(1, n + 1)),
        pa.array(rng.choice([0, 0, 0, 0, 1, 2], n).astype(np.uint8)),
        pa.array(np.ones(n, dtype=np.uint16)),
    ]
    return pa.Table.from_arrays(columns, schema=trades_schema().with_metadata(_metadata()))


def _path(opening: _Rows, rows: _Rows, grid: Grid) -> F64:
    """F64[G+1] bps of the start, from the newest state at or before each knot with both sides and bid <= ask (G-02, G-03)."""
    ts = np.concatenate([[START_NS - 1], rows.ts])
    levels = np.concatenate([opening.levels, rows.levels])
    bid, ask = levels[:, 0, 0], levels[:, 2, 0]
    valid = np.flatnonzero((bid != MISSING) & (ask != MISSING) & (bid <= ask))
    newest = valid[np.searchsorted(ts[valid], grid.knots_ns(START_NS), side="right") - 1]
    mid2 = (bid + ask)[newest].astype(np.float64)
    y: F64 = 1e4 * (mid2 - mid2[0]) / mid2[0]
    read_only(y)
    return y


def invented(
    seed: int,
    *,
    steps: int = 15,
    window_s: int = 900,
    prints: int = 120,
    levels: int = DEPTH,
    middle: int = 20_000,
    step: int = 1,
    odd: bool = True,
) -> Window:
    """A window of some 300 states and `prints` prints around `middle` ticks, prices in multiples of `step`; the same for the same seed.

    `odd`: some states are locked, crossed, short of levels or one-sided.
    """
    rng, grid = np.random.default_rng(seed), Grid(window_s, steps)
    times = np.concatenate([[START_NS - 250_000_000], _times(rng, grid, ROWS)])
    states = _states(rng, times, middle, levels, step, odd=odd)
    opening, book = _Rows(times[:1], states[:1]), _Rows(times[1:], states[1:])
    tape = _times(rng, grid, prints) if prints else np.zeros(0, dtype=np.int64)
    return Window(
        ref=f"{NAMES[3]}-{NAMES[0]}-2020-03-01-{seed}",
        start_ns=START_NS,
        grid=grid,
        y=_path(opening, book, grid),
        book=book.table(),
        trades=_prints(rng, tape, middle, step),
        opening=opening.table(),
        tick_size="0.01",
        lot_size="0.001",
    )


def _with_prices(window: Window, price: Any) -> Window:
    """The window with `price` applied to the numbers of every price column."""

    def book(table: pa.Table) -> pa.Table:
        levels = np.stack([np.where(there, values, MISSING) for values, there in (levels_of(table, side) for side in SIDES)], axis=1)
        for place in (0, 2):
            levels[:, place] = np.where(levels[:, place] == MISSING, MISSING, price(levels[:, place]))
        return _Rows(table.column("ts_ns").to_numpy(), levels).table()

    px = price(window.trades.column("px").to_numpy())
    trades = window.trades.set_column(2, window.trades.schema.field("px"), [px])
    return evolve(window, book=book(window.book), opening=book(window.opening), trades=trades)


def scaled(window: Window, numerator: int, denominator: int) -> Window:
    """The window with all prices times numerator / denominator, which must divide them."""
    return _with_prices(window, lambda px: px * numerator // denominator)


def replaced_after(window: Window, anchor: int, *, cut: bool) -> Window:
    """The window with every row, print and knot from tau of `anchor` on replaced by wild others, or cut away; knots after it too."""
    knot_ns = int(window.grid.knots_ns(window.start_ns)[anchor])
    before = [table.filter(table.column("ts_ns").to_numpy() < knot_ns) for table in (window.book, window.trades)]
    y = window.y.copy()
    y[anchor + 1 :] = y[anchor] if cut else y[anchor] - 40.0 * (1 + np.arange(len(y) - anchor - 1))
    read_only(y)
    if cut:
        return evolve(window, book=before[0], trades=before[1], y=y)
    other = _with_prices(invented(977 + anchor, steps=window.grid.steps, window_s=window.grid.window_s), lambda px: px * 3 // 2)
    after = [table.filter(table.column("ts_ns").to_numpy() >= knot_ns) for table in (other.book, other.trades)]
    return evolve(window, book=_joined(before[0], after[0]), trades=_joined(before[1], after[1]), y=y)


def _joined(before: pa.Table, after: pa.Table) -> pa.Table:
    import pyarrow as pa

    return pa.concat_tables([before, after]).combine_chunks()
