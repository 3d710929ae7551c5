"""An invented window and the seat of a predictor, for every test of this folder."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blindcast.local import construct
from blindcast.records import F64, Grid
from blindcast.view import Context, View

LEVELS = 20
COLUMNS = ("t", *(f"{side}_{kind}{level}" for side in ("lo", "hi") for level in range(1, LEVELS + 1) for kind in "LW"))
ROW_S = 1.0


class InventedWindow:
    """A window of one book row a second whose mid follows `path`, and views of its prefixes (G-04)."""

    def __init__(self, grid: Grid, seed: int, flat: bool) -> None:
        rng = np.random.default_rng(seed)
        rows = int(grid.window_s / ROW_S)
        t = (np.arange(rows) + 0.5) * ROW_S
        mid = np.zeros(rows) if flat else np.cumsum(rng.normal(0, 0.5, rows))
        table = np.empty((len(COLUMNS), rows), dtype=np.float32)
        table[0] = t
        for side, sign in ((0, -1), (1, 1)):
            for level in range(LEVELS):
                table[1 + 2 * (side * LEVELS + level)] = mid + sign * (level + 0.5)
                table[2 + 2 * (side * LEVELS + level)] = np.exp(rng.normal(0, 1, rows))
        self.grid, self.table = grid, table
        self.prints = np.stack([np.sort(rng.uniform(0, grid.window_s, rows)), rng.normal(0, 1, rows)]).astype(np.float32)
        knots_s = np.arange(grid.steps + 1) * grid.window_s / grid.steps
        self.y: F64 = np.where(knots_s > 0, mid[np.minimum(np.searchsorted(t, knots_s, side="right") - 1, rows - 1)], 0.0)
        for array in (self.table, self.prints, self.y):
            array.flags.writeable = False

    def view(self, anchor: int) -> View:
        """The prefix of `anchor` on memory that ends there; G is the whole window."""
        until_s = anchor * self.grid.window_s / self.grid.steps
        rows, prints = (int(np.searchsorted(table[0], until_s, side="left")) for table in (self.table, self.prints))
        parts = self.table[:, :rows].copy(), self.prints[:, :prints].copy(), self.y[: anchor + 1].copy()
        for part in parts:
            part.flags.writeable = False
        return View(self.grid, COLUMNS, anchor, *parts)


Make = Callable[..., InventedWindow]
Seat = Callable[..., Any]


@pytest.fixture
def invented() -> Make:
    """invented(steps=15, seed=0, window_s=900, flat=False) -> a window."""

    def make(steps: int = 15, seed: int = 0, window_s: int = 900, flat: bool = False) -> InventedWindow:
        return InventedWindow(Grid(window_s, steps), seed, flat)

    return make


@pytest.fixture
def seated() -> Seat:
    """seated(module, steps=15, seed=0, window_s=900, warmups=()) -> a fitted predictor of `blindcast_predictors`."""

    def make(module: str, steps: int = 15, seed: int = 0, window_s: int = 900, warmups: Any = ()) -> Any:
        kind = import_module(f"blindcast_predictors.{module}").Predictor
        predictor = construct(kind, Context(Grid(window_s, steps), 1.0, COLUMNS, seed))
        if hasattr(predictor, "fit"):
            predictor.fit(list(warmups))
        return predictor

    return make


@pytest.fixture(autouse=True)
def closed_world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The cheater sees no folder of this machine and no network: only what a test opens below `tmp_path`."""
    from blindcast_predictors import peek

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(peek, "FOLDERS", (".",))
    monkeypatch.setattr(peek, "PORTS", ())
    monkeypatch.setenv("BLINDCAST_HOME", str(tmp_path / "home"))
