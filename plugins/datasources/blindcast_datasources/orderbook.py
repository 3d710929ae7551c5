"""The `orderbook` source: windows of a recorded pool (data.md section 2)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import Factory, field, frozen
from attrs.validators import and_, ge, instance_of, le

from blindcast.errors import DataError, WindowUnknown
from blindcast.records import F64, Dropped, Grid, Window, WindowRef, read_only
from blindcast_datasources.columns import DEPTH
from blindcast_datasources.pool import Pool
from blindcast_datasources.slots import SECOND_NS, SlotRules, Slots, judge

__all__ = ["OrderBook"]

_share = and_(ge(0.0), le(1.0))


def _words(value: Sequence[str]) -> tuple[str, ...]:
    return tuple(value)


def _is_waiver(_source: object, _attribute: object, value: Sequence[str]) -> None:
    unknown = [word for word in value if word != "missing_not_random"]
    if unknown:
        raise ValueError(f"waive may hold missing_not_random alone, got {unknown[0]!r}")


@frozen(kw_only=True, eq=False)
class OrderBook:
    """Windows of `pool`: slot k is [s, s + every_s), s = phase_s + k * every_s, its window the first `window_s` of it.

    A slot is dropped when its newest valid state grows older than `max_stale_s`, or when more than the stated share of its rows is
    short, unsound or clamped (W-02). `every_s` 0 is `window_s`. DataError `pool_missing`, IntegrityError `pool_damaged`.
    """

    pool: Path = field(converter=Path)
    phase_s: int = field(default=0, validator=and_(instance_of(int), ge(0)))
    every_s: int = field(default=0, validator=and_(instance_of(int), ge(0)))
    max_stale_s: float = field(default=60.0, converter=float, validator=ge(0.0))
    max_short: float = field(default=0.05, converter=float, validator=_share)
    max_unsound: float = field(default=0.005, converter=float, validator=_share)
    max_clock: float = field(default=0.01, converter=float, validator=_share)
    waive: tuple[str, ...] = field(default=(), converter=_words, validator=_is_waiver)
    _opened: Pool = field(init=False, default=Factory(lambda self: Pool(self.pool), takes_self=True))
    _judged: dict[int, Slots] = field(init=False, factory=dict)

    def windows(self, grid: Grid) -> Sequence[WindowRef]:
        """Every valid window in time order; `rows` is exact, `prints` an upper bound from `meta`. Reads times and flags alone."""
        slots, length = self._slots(grid), grid.window_ns
        return [
            WindowRef(self._ref(start), start, rows, self._opened.most_prints(start, start + length))
            for start, rows, reasons in zip(slots.start.tolist(), slots.rows.tolist(), slots.reasons, strict=True)
            if not reasons
        ]

    def dropped(self, grid: Grid) -> Sequence[Dropped]:
        """Every other slot that meets the span of the pool, with each reason that holds."""
        slots = self._slots(grid)
        return [Dropped(start, reasons) for start, reasons in zip(slots.start.tolist(), slots.reasons, strict=True) if reasons]

    def digest(self) -> str:
        """sha256 hex of the pool's content (DP-06)."""
        return self._opened.digest

    def window(self, ref: str, grid: Grid) -> Window:
        """One window's truth; y is read at the newest valid state at or before each knot (G-02, G-03). Raises WindowUnknown."""
        start = self._start_ns(ref, grid)
        end = start + grid.window_ns
        index = self._opened.index()
        first, until = np.searchsorted(index.ts, [start, end]).tolist()
        after = int(np.searchsorted(index.ts, end, side="right"))  # a state at the last knot is no row of the window
        place = int(np.searchsorted(index.ts[index.valid], start, side="right")) - 1
        opening = int(index.valid[place])  # there is one, or the slot were dropped for no_start
        rows = self._opened.rows(first, after)
        openings = rows.slice(opening - first, 1) if opening >= first else self._opened.rows(opening, opening + 1)
        valid = index.valid[np.searchsorted(index.valid, first) : np.searchsorted(index.valid, after)]
        mid2 = np.concatenate([_mid2(openings), _mid2(rows)[valid - first]])
        newest = np.searchsorted(index.ts[valid], grid.knots_ns(start), side="right")  # 0: the opening
        return Window(
            ref=ref,
            start_ns=start,
            grid=grid,
            y=_path(mid2[newest]),
            book=rows.slice(0, until - first),
            trades=self._opened.prints(start, end),
            opening=openings,
            tick_size=str(self._opened.meta["tick_size"]),
            lot_size=str(self._opened.meta["lot_size"]),
        )

    def describe(self) -> dict[str, Any]:
        """The pool's `meta` (DP-05)."""
        return dict(self._opened.meta)

    def _slots(self, grid: Grid) -> Slots:
        """The judged slots, kept in memory by window length."""
        if grid.window_s not in self._judged:
            every_s = self.every_s or grid.window_s
            if every_s < grid.window_s:
                raise DataError(
                    "window_too_long",
                    f"windows of {grid.window_s} s do not fit into slots of {every_s} s",
                    expected=f"grid.window_s of at most source.every_s, {every_s}",
                    do=f"set every_s = {grid.window_s} or more in [source], or a shorter window_s in [grid]",
                )
            meta = self._opened.meta
            rules = SlotRules(
                window_ns=grid.window_ns,
                every_ns=every_s * SECOND_NS,
                phase_ns=self.phase_s * SECOND_NS,
                max_stale_ns=round(self.max_stale_s * SECOND_NS),
                max_short=self.max_short,
                max_unsound=self.max_unsound,
                max_clock=self.max_clock,
            )
            self._judged[grid.window_s] = judge(self._opened.index(), meta["t0_ns"] or 0, meta["t1_ns"] or 0, meta["gaps"], rules)
        return self._judged[grid.window_s]

    def _ref(self, start_ns: int) -> str:
        return f"{self.digest()[:12]}-{start_ns}"

    def _start_ns(self, ref: object, grid: Grid) -> int:
        prefix, _, digits = ref.rpartition("-") if isinstance(ref, str) else ("", "", "")
        if prefix != self.digest()[:12] or not (digits.isascii() and digits.isdigit()) or len(digits) > 19:
            raise WindowUnknown(ref)
        start, slots = int(digits), self._slots(grid)
        place = int(np.searchsorted(slots.start, start)) if start < 2**63 else len(slots.start)
        if place >= len(slots.start) or slots.start[place] != start or slots.reasons[place] or str(start) != digits:
            raise WindowUnknown(ref)
        return start


def _mid2(rows: pa.Table) -> F64:
    """Best bid + best ask in ticks, exact in a double; NaN where a side is empty."""
    best = [
        np.asarray(rows.column(name).combine_chunks().flatten().to_numpy(zero_copy_only=False))[::DEPTH] for name in ("bid_px", "ask_px")
    ]
    total: F64 = (best[0] + best[1]).astype(np.float64)
    return total


def _path(mid2: F64) -> F64:
    """y F64[G+1] in bps of the start."""
    y: F64 = 1e4 * (mid2 - mid2[0]) / mid2[0]
    y = np.ascontiguousarray(y)
    read_only(y)
    return y
