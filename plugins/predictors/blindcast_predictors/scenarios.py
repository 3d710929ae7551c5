"""The brief's scenarios played in process: which knots they commit to at which anchors (FE-06, FE-83)."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    import pandas as pd

    from blindcast.records import F64, I64

__all__ = ["SCENARIOS", "commitments"]

SCENARIOS = ("before-market", "observe", "tiled")


@frozen
class _Grid:
    window_s: int
    steps: int


@frozen
class _Context:
    grid: _Grid
    alpha: float = 1.0
    columns: tuple[str, ...] = ("t",)
    seed: int = 0


@frozen(eq=False)
class _View:
    """A view of a path without a book."""

    grid: _Grid
    y: F64

    @property
    def anchor(self) -> int:
        return len(self.y) - 1

    @property
    def t(self) -> float:
        return self.anchor / self.grid.steps

    @property
    def clock_s(self) -> float:
        return self.t * self.grid.window_s

    @property
    def horizons(self) -> I64:
        import numpy as np

        return np.arange(self.anchor + 1, self.grid.steps + 1, dtype=np.int64)

    @property
    def ladder(self) -> pd.DataFrame:
        import pandas as pd

        return pd.DataFrame({"t": []}, dtype="float32")

    @property
    def events(self) -> pd.DataFrame:
        import pandas as pd

        return pd.DataFrame({"t": [], "value": []}, dtype="float32")


def commitments(name: str, y: Sequence[float], warmup_last: Sequence[float] | float) -> dict[int, dict[int, float]]:
    """{anchor: {knot: conviction}} of the shipped predictor `name` on the path `y` (G + 1 values, bps).

    `warmup_last` holds the last y of each warm-up, or of the only one. Anchors at which it keeps what stands are left out.
    Raises ValueError for another name than `SCENARIOS` lists, or a path without a step.

    >>> commitments("observe", [0, 12, 6, 24], [5.0])
    {1: {2: 1.0, 3: 1.0}}
    """
    import numpy as np

    if name not in SCENARIOS:
        raise ValueError(f"unknown scenario {name!r}; known: {', '.join(SCENARIOS)}")
    path = np.array(y, dtype=np.float64)
    if path.ndim != 1 or len(path) < 2:
        raise ValueError(f"a path has at least two values, got {y!r}")
    grid = _Grid(window_s=60 * (len(path) - 1), steps=len(path) - 1)
    kind = import_module(f"blindcast_predictors.{name.replace('-', '_')}").Predictor
    predictor = kind(_Context(grid)) if "__init__" in vars(kind) else kind()
    ends = np.atleast_1d(np.asarray(warmup_last, dtype=np.float64)).tolist()
    if hasattr(predictor, "fit"):
        predictor.fit([_View(grid, np.linspace(0.0, end, grid.steps + 1)) for end in ends])
    made: dict[int, dict[int, float]] = {}
    for anchor in range(grid.steps):
        view = _View(grid, path[: anchor + 1])
        answer = predictor.predict(view)
        if answer is not None:
            knots = view.horizons.tolist()
            curve = answer if isinstance(answer, list) else [answer] * len(knots)
            made[anchor] = dict(zip(knots, map(float, curve), strict=True))
    return made
