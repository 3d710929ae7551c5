"""What a predictor sees: the revealed prefix of one window, without a copy (data.md DA-01, isolation.md I-42)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

from blindcast.records import F32, F64, I64, Grid, read_only

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["EVENT_COLUMNS", "Context", "View", "shared_frame"]

EVENT_COLUMNS = ("t", "value")


@frozen
class Context:
    """What a predictor is told at the start: no ids, no dates.

    `alpha` is None where the grader has none; `columns` are the ladder's; `seed` is the task's.
    """

    grid: Grid
    alpha: float | None
    columns: tuple[str, ...]
    seed: int


def shared_frame(table: F32, columns: tuple[str, ...]) -> pd.DataFrame:
    """A DataFrame over `table` F32[columns, rows] that shares its memory: no row is copied."""
    import pandas as pd

    return pd.DataFrame(table.T, columns=_labels(columns), copy=False)


_LABELS: dict[tuple[str, ...], Any] = {}


def _labels(columns: tuple[str, ...]) -> Any:
    import pandas as pd

    if columns not in _LABELS:
        _LABELS[columns] = pd.Index(columns)
    return _LABELS[columns]


class View:
    """The revealed prefix at one anchor. DataFrames are built on first touch, once per anchor (PF-26).

    `ladder_table` F32[columns, rows] and `event_table` F32[2, rows] are the revealed prefixes, column-major;
    `path` F64[anchor + 1] is the path so far in bps of the window's start, as shown.
    """

    __slots__ = ("_columns", "_event_table", "_events", "_grid", "_ladder", "_ladder_table", "anchor", "y")

    def __init__(self, grid: Grid, columns: tuple[str, ...], anchor: int, ladder_table: F32, event_table: F32, path: F64) -> None:
        self._grid = grid
        self._columns = columns
        self._ladder_table = ladder_table
        self._event_table = event_table
        self._ladder: pd.DataFrame | None = None
        self._events: pd.DataFrame | None = None
        self.anchor = anchor
        self.y = path

    @property
    def t(self) -> float:
        """The fraction i/G of the window that has passed."""
        return self.anchor / self._grid.steps

    @property
    def clock_s(self) -> float:
        """Seconds since the window's start."""
        return self.anchor * self._grid.window_s / self._grid.steps

    @property
    def horizons(self) -> I64:
        """The remaining knots i+1..G, read-only; none in a warm-up."""
        knots = np.arange(self.anchor + 1, self._grid.steps + 1, dtype=np.int64)
        read_only(knots)
        return knots

    @property
    def ladder(self) -> pd.DataFrame:
        """The revealed book rows, read-only; `.copy()` to change or keep them."""
        if self._ladder is None:
            self._ladder = shared_frame(self._ladder_table, self._columns)
        return self._ladder

    @property
    def events(self) -> pd.DataFrame:
        """The revealed signed prints, read-only; `.copy()` to change or keep them."""
        if self._events is None:
            self._events = shared_frame(self._event_table, EVENT_COLUMNS)
        return self._events

    def copy(self) -> View:
        """The same view on memory of its own, which may be kept and written."""
        return View(self._grid, self._columns, self.anchor, self._ladder_table.copy(), self._event_table.copy(), self.y.copy())
