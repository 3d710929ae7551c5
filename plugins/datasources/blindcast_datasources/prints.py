"""Prints on their way into a pool: what is no trade, what came twice, which ids are missing (DR-04, DR-31, DI-11)."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from blindcast.contracts import ImportReport
from blindcast.records import I64
from blindcast_datasources.columns import NULL, Prints

__all__ = ["KINDS", "Printer", "is_zero", "without_zeros"]

KINDS: Final = {"MARKET": 0, "INSURANCE_FUND": 1, "LIQUIDATION": 1, "ADL": 1}  # what Binance calls them; others are blocks or crosses
OTHER_KIND: Final = 2


def is_zero(prints: Prints) -> NDArray[np.bool_]:
    """Which prints have no price or no size: no trades, but their ids are known (DR-31)."""
    zero: NDArray[np.bool_] = (prints.px <= 0) | (prints.sz <= 0)
    return zero


def without_zeros(prints: Prints, report: ImportReport) -> Prints:
    """The prints with a price and a size; the others are counted. To be asked behind `Printer`, which sees their ids."""
    zero = is_zero(prints)
    if not zero.any():
        return prints
    report.count("zero_prints", int(zero.sum()))
    return prints.take(~zero)


class Printer:
    """Takes prints in time order, gives back those to store."""

    def __init__(self, report: ImportReport) -> None:
        self._report = report
        self._tail: Prints | None = None  # the stored prints that share the newest time
        self._top = NULL  # the largest id covered so far

    def push(self, prints: Prints) -> Prints:
        """The next prints without repeats of the same id at the same time."""
        if not len(prints):
            return prints
        carried = len(self._tail) if self._tail is not None else 0
        block = Prints.joined([self._tail, prints]) if self._tail is not None else prints
        repeated = _repeated(block)
        if repeated.any():
            self._report.count("duplicate_trades", int(repeated.sum()))
        fresh = ~repeated
        fresh[:carried] = False
        self._tail = block.take((block.ts == block.ts[-1]) & ~repeated)
        stored = block.take(fresh)
        self._holes(stored)
        return stored

    def _holes(self, prints: Prints) -> None:
        known = prints.last != NULL
        first, last = prints.first[known], prints.last[known]
        if not len(first):
            return
        before: I64 = np.maximum.accumulate(np.concatenate([[self._top], last]))
        jumps = np.where(before[:-1] == NULL, 0, first - before[:-1] - 1)
        holes = jumps > 0
        self._top = int(before[-1])
        if holes.any():
            self._report.count("trade_id_gaps", int(holes.sum()))
            self._report.count("trade_ids_missing", int(jumps[holes].sum()))


def _repeated(prints: Prints) -> NDArray[np.bool_]:
    """Which prints repeat an earlier one: same time, id, price, size and side."""
    n = len(prints)
    order = np.lexsort((np.arange(n), prints.side, prints.sz, prints.px, prints.trade_id, prints.ts))
    same = prints.trade_id[order[1:]] != NULL
    for name in ("ts", "trade_id", "px", "sz", "side"):
        values = getattr(prints, name)[order]
        same &= values[1:] == values[:-1]
    repeated = np.zeros(n, dtype=np.bool_)
    repeated[order[1:][same]] = True
    return repeated
