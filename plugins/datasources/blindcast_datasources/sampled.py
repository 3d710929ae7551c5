"""A market looked at once a second: what the statistics are computed from (DK-01)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from attrs import frozen

from blindcast.records import F64, I64, Window
from blindcast_datasources.columns import INVALID, NULL, Rows, prints_of, rows_of

__all__ = ["Sampled", "Sampler", "sampled_window"]

SECOND_NS = 10**9


@frozen(eq=False)
class Sampled:
    """States at S whole seconds: `levels` F64[S, 4, 20] (bid_px bid_sz ask_px ask_sz in ticks and lots, NaN: no level or no valid state).

    Beside them the market prints in order: `print_ns`, `print_sz`, `side`.
    """

    levels: F64
    print_ns: I64
    print_sz: F64
    side: I64


class Sampler:
    """Takes rows in time order, keeps the newest state at or before each whole second since `origin_ns`."""

    def __init__(self, origin_ns: int) -> None:
        self._origin_ns = origin_ns
        self._next = 0  # the next second to fill
        self._last: Rows | None = None
        self._filled: list[F64] = []

    def push(self, rows: Rows) -> None:
        """The next rows: every second before the newest of them is settled."""
        if not len(rows):
            return
        rows = Rows.joined([self._last, rows]) if self._last is not None else rows
        self._fill(rows, (int(rows.ts[-1]) - self._origin_ns - 1) // SECOND_NS + 1)
        self._last = rows.take(slice(-1, None))

    def finish(self, end_ns: int) -> F64:
        """The states of all whole seconds up to and at `end_ns`."""
        if self._last is not None:
            self._fill(self._last, (end_ns - self._origin_ns) // SECOND_NS + 1)
        return np.concatenate(self._filled) if self._filled else np.empty((0, 4, 20))

    def _fill(self, rows: Rows, until: int) -> None:
        seconds = self._origin_ns + np.arange(self._next, until, dtype=np.int64) * SECOND_NS
        self._next = max(until, self._next)
        newest = np.searchsorted(rows.ts, seconds, side="right") - 1
        levels = np.where(rows.levels == NULL, np.nan, rows.levels.astype(np.float64))[np.maximum(newest, 0)]
        unknown = (newest < 0) | ((rows.flags[np.maximum(newest, 0)] & INVALID) != 0)
        levels[unknown] = np.nan
        self._filled.append(levels)


def market_prints(tables: Iterable[object]) -> tuple[I64, F64, I64]:
    """Time, size and side of the prints of kind 0 of several tables."""
    kept = []
    for table in tables:
        prints = prints_of(table)
        kept.append(prints.take(prints.kind == 0))
    if not kept:
        return np.empty(0, dtype=np.int64), np.empty(0), np.empty(0, dtype=np.int64)
    return tuple(np.concatenate(parts) for parts in zip(*((one.ts, one.sz.astype(np.float64), one.side) for one in kept), strict=True))  # type: ignore[return-value]  # three parts


def sampled_window(window: Window) -> Sampled:
    """A window, from its start to its end."""
    sampler = Sampler(window.start_ns)
    opening = rows_of(window.opening)
    sampler.push(opening)
    book = rows_of(window.book)
    sampler.push(book)
    return Sampled(sampler.finish(window.start_ns + window.grid.window_ns), *market_prints([window.trades]))
