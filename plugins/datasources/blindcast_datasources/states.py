"""States to rows: which states become rows of a pool, and their flags (B-02, DP-03); one implementation under all importers."""

from __future__ import annotations

from typing import Final

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from blindcast.contracts import ImportReport
from blindcast.records import I64
from blindcast_datasources import columns
from blindcast_datasources.columns import NULL, Rows

__all__ = ["BREAK", "RowPolicy", "Rower"]

SECOND_NS: Final = 10**9
OLDEST_NS: Final = 10 * SECOND_NS  # a grid row shows no state older than this
BREAK: Final = 1 << 20  # beside the pool's flags: the state before this one is not carried over to it
_DUE: Final = columns.SNAPSHOT | columns.AFTER_GAP | columns.PURGED
_BID_PX, _ASK_PX = 0, 2


@frozen
class RowPolicy:
    """`rows`: "change", "message" or "grid:MS"; `depth` levels a side."""

    rows: str = "change"
    depth: int = columns.DEPTH

    @property
    def grid_ns(self) -> int:
        """The step of a grid, 0 for the other two. Raises ValueError for a policy that is none."""
        if self.rows in ("change", "message"):
            return 0
        name, _, text = self.rows.partition(":")
        if name != "grid" or not (text.isascii() and text.isdigit()) or int(text) < 1:
            raise ValueError(f"rows must be change, message or grid:MS, got {self.rows!r}")
        return int(text) * 10**6


class Rower:
    """Takes states in order, clamps their times, gives back the rows they make."""

    def __init__(self, policy: RowPolicy, report: ImportReport) -> None:
        self._policy, self._report = policy, report
        self._grid_ns = policy.grid_ns
        self._last: Rows | None = None  # the newest state, one row
        self._row_ns = -SECOND_NS * 2  # time of the newest row

    def push(self, states: Rows) -> Rows:
        """The rows of the next states."""
        if not len(states):
            return states
        states = self._flagged(self._clamped(states))
        rows = self._on_grid(states) if self._grid_ns else states if self._policy.rows == "message" else self._changes(states)
        self._last = states.take(slice(-1, None))
        return _without_break(rows)

    def finish(self) -> Rows | None:
        """The last row of a grid, if the newest state lies on it."""
        if not self._grid_ns or self._last is None or int(self._last.ts[0]) % self._grid_ns:
            return None
        return _without_break(self._last)

    def _clamped(self, states: Rows) -> Rows:
        floor = int(self._last.ts[0]) if self._last is not None else int(states.ts[0])
        ts = np.maximum(np.maximum.accumulate(states.ts), floor)
        late = ts != states.ts
        if not late.any():
            return states
        self._report.count("clock", int(late.sum()))
        return Rows(ts, states.recv, states.seq, states.flags | np.where(late, columns.CLAMPED, 0), states.levels)

    def _flagged(self, states: Rows) -> Rows:
        bid, ask = states.levels[:, _BID_PX], states.levels[:, _ASK_PX]
        last = self._policy.depth - 1
        empty = (bid[:, 0] == NULL) | (ask[:, 0] == NULL)
        short = (bid[:, last] == NULL) | (ask[:, last] == NULL)
        crossed = ~empty & (bid[:, 0] > ask[:, 0])
        locked = ~empty & (bid[:, 0] == ask[:, 0])
        flags = states.flags | short * columns.SHORT | crossed * columns.CROSSED | locked * columns.LOCKED | empty * columns.ONE_SIDED
        if crossed.any():
            self._report.count("crossed_states", int(crossed.sum()))
        return Rows(states.ts, states.recv, states.seq, flags.astype(np.int64), states.levels)

    def _changes(self, states: Rows) -> Rows:
        """Every state that differs from the one before, has a flag due, or comes 1 s or more after the last row.

        Comparing with the state before is comparing with the last row: a state that made none was equal to it.
        """
        n = len(states)
        changed = np.ones(n, dtype=np.bool_)
        changed[1:] = (states.levels[1:] != states.levels[:-1]).any(axis=(1, 2))
        if self._last is not None:
            changed[0] = bool((states.levels[0] != self._last.levels[0]).any())
        changed |= (states.flags & _DUE) != 0
        kept = self._beats(states.ts, changed)
        self._report.count("unchanged", n - int(kept.sum()))
        return states.take(kept)

    def _beats(self, ts: I64, changed: NDArray[np.bool_]) -> NDArray[np.bool_]:
        newest = np.maximum.accumulate(np.where(changed, ts, self._row_ns))
        kept = changed.copy()
        beat = self._row_ns
        for index in np.flatnonzero(~changed & (ts - newest >= SECOND_NS)).tolist():
            beat = max(beat, int(newest[index]))
            if int(ts[index]) - beat >= SECOND_NS:
                kept[index] = True
                beat = int(ts[index])
        if kept.any():
            self._row_ns = int(ts[kept][-1])
        return kept

    def _on_grid(self, states: Rows) -> Rows:
        """The newest state at or before each multiple of the grid, none older than 10 s, none across a break."""
        if self._last is not None:
            states = Rows.joined([self._last, states])
        step = self._grid_ns
        ts, after = states.ts[:-1], states.ts[1:]
        until = np.where(states.flags[1:] & BREAK, ts + 1, np.minimum(after, ts + OLDEST_NS + 1))  # first ns no longer shown
        first = -(-ts // step)
        counts = np.maximum(-(-until // step) - first, 0)
        source = np.repeat(np.arange(len(ts)), counts)
        offset = np.arange(len(source)) - np.repeat(np.cumsum(counts) - counts, counts)
        rows = states.take(source)
        return Rows((first[source] + offset) * step, rows.recv, rows.seq, rows.flags, rows.levels)


def _without_break(rows: Rows) -> Rows:
    return Rows(rows.ts, rows.recv, rows.seq, rows.flags & (BREAK - 1), rows.levels)
