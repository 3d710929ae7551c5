"""Slots of a pool: which of them are windows, and why the others are dropped (W-01 to W-03)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from blindcast.records import I64
from blindcast_datasources import columns
from blindcast_datasources.pool import Index

__all__ = ["SlotRules", "Slots", "judge"]

SECOND_NS = 10**9


@frozen
class SlotRules:
    """The options of W-01, times in ns."""

    window_ns: int
    every_ns: int
    phase_ns: int
    max_stale_ns: int
    max_short: float
    max_unsound: float
    max_clock: float


@frozen(eq=False)
class Slots:
    """Every slot whose window meets the span: `start` I64[n], `rows` I64[n] in its window, why it is dropped (empty: a window)."""

    start: I64
    rows: I64
    reasons: tuple[tuple[str, ...], ...]


def judge(index: Index, t0_ns: int, t1_ns: int, gaps: Sequence[Any], rules: SlotRules) -> Slots:
    """Judge every slot by times and flags alone: no price, return, volume or number of prints has a say."""
    start = _starts(t0_ns, t1_ns, rules)
    end = start + rules.window_ns
    first, last = np.searchsorted(index.ts, start), np.searchsorted(index.ts, end)
    valid_ns = index.ts[index.valid]
    no_start = np.searchsorted(valid_ns, start, side="right") == 0
    table: dict[str, NDArray[np.bool_]] = {
        "no_start": no_start,
        "truncated": end > t1_ns,
        "stale": _stale(start, np.minimum(end, t1_ns), valid_ns, rules.max_stale_ns) & ~no_start,
        "gap": _in_gap(start, end, t1_ns, gaps),
    }
    for name, flags, most in (
        ("short", columns.SHORT, rules.max_short),
        ("unsound", columns.PURGED | columns.CROSSED, rules.max_unsound),
        ("clock", columns.CLAMPED, rules.max_clock),
    ):
        running = np.concatenate([[0], np.cumsum((index.flags & flags) != 0)])
        table[name] = running[last] - running[first] > most * (last - first)
    reasons = tuple(tuple(name for name, holds in table.items() if holds[k]) for k in range(len(start)))
    return Slots(start, (last - first).astype(np.int64), reasons)


def _starts(t0_ns: int, t1_ns: int, rules: SlotRules) -> I64:
    """s = phase + k * every with s <= t1 and s + T > t0."""
    low = (t0_ns - rules.window_ns - rules.phase_ns) // rules.every_ns + 1
    high = (t1_ns - rules.phase_ns) // rules.every_ns
    return rules.phase_ns + np.arange(low, high + 1, dtype=np.int64) * rules.every_ns


def _stale(start: I64, end: I64, valid_ns: I64, most_ns: int) -> NDArray[np.bool_]:
    """Whether some instant of [start, end] lies strictly between a valid state + max_stale and the next valid state."""
    after = np.append(valid_ns[1:], 2**63 - 1)
    opens, shuts = valid_ns + most_ns, after
    long = shuts > opens
    opens, shuts = opens[long], shuts[long]
    if not len(opens):
        return np.zeros(len(start), dtype=np.bool_)
    touched = np.searchsorted(shuts, start, side="right")  # the first stretch that ends after the start
    found = touched < len(opens)
    return found & (opens[np.minimum(touched, len(opens) - 1)] < end)


def _in_gap(start: I64, end: I64, t1_ns: int, gaps: Sequence[Any]) -> NDArray[np.bool_]:
    """Whether the open interval (from, to) of a gap meets [start, end]."""
    touched = np.zeros(len(start), dtype=np.bool_)
    for gap in gaps:
        to_ns = t1_ns if gap["to_ns"] is None else gap["to_ns"]
        if gap["from_ns"] < to_ns:
            touched |= (gap["from_ns"] < end) & (to_ns > start)
    return touched
