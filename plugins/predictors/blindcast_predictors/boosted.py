"""Gradient-boosted trees that learn the warm-ups: book, flow and path at many instants against the move to the horizons.

The mid at every instant of a warm-up is read from its ladder, so four windows give some thousand examples. One model serves
all horizons: the lag is a feature and the target is the move in units of what is usual at that lag.
"""

from __future__ import annotations

from typing import Any

import lightgbm
import numpy as np

INSTANTS = 300  # examples a warm-up and lag
FEWEST = 100  # examples below which nothing is learnt
LAGS = 6  # lags an instant is set against, spread over the grid
TREES = 100
PARAMETERS = {
    "objective": "regression",
    "learning_rate": 0.05,
    "num_leaves": 7,
    "min_data_in_leaf": 40,
    "feature_fraction": 0.8,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "num_threads": 1,
    "deterministic": True,
    "force_row_wise": True,
    "verbosity": -1,
}


class Predictor:
    """Conviction = the expected move in units of its usual size, clipped to [-1, 1]; flat where nothing could be learnt."""

    def __init__(self, context: Any) -> None:
        self.place = {name: place for place, name in enumerate(context.columns)}
        self.steps = context.grid.steps
        self.step_s = context.grid.window_s / context.grid.steps
        self.seed = int(context.seed) % (1 << 31)
        self.model: lightgbm.Booster | None = None

    def fit(self, warmups: Any) -> None:
        """Train on the warm-ups; without any, or on paths that never move, stay flat."""
        self.model = None
        lags = sorted({max(1, round(self.steps * share / LAGS)) for share in range(1, LAGS + 1)})
        examples = [example for view in warmups if len(view.ladder) for example in self._examples(view, lags)]
        if not examples or not {"t", "lo_L1", "hi_L1"} <= self.place.keys():
            return
        features, moves = (np.concatenate(side) for side in zip(*examples, strict=True))
        reach = np.sqrt(features[:, -1])
        usual = float(np.sqrt(np.mean((moves / reach) ** 2))) if len(moves) >= FEWEST else 0.0
        if not usual > 0:
            return
        data = lightgbm.Dataset(features, np.clip(moves / (usual * reach), -3.0, 3.0), params={"verbosity": -1})
        self.model = lightgbm.train({**PARAMETERS, "seed": self.seed}, data, num_boost_round=TREES)

    def predict(self, view: Any) -> Any:
        """One conviction per remaining horizon; 0 before the first book row."""
        if self.model is None or not len(view.ladder):
            return 0.0
        lags = np.asarray(view.horizons, dtype=np.float64) - view.anchor
        state = self._state(view.ladder.to_numpy(), view.events.to_numpy(), np.array([view.clock_s]))
        features = np.column_stack([np.repeat(state, len(lags), axis=0), lags])
        return np.clip(np.asarray(self.model.predict(features, num_threads=1)), -1.0, 1.0)

    def _examples(self, view: Any, lags: list[int]) -> list[tuple[Any, Any]]:
        """(features [n, f], moves [n] in bps) of one warm-up, for each lag."""
        ladder, events = view.ladder.to_numpy(), view.events.to_numpy()
        t, mid = self._column(ladder, "t"), self._mid(ladder)
        examples = []
        for lag in lags:
            ahead_s = lag * self.step_s
            at = (
                np.linspace(self.step_s / 10, self.steps * self.step_s - ahead_s, INSTANTS)
                if lag < self.steps
                else np.array([self.step_s / 10])
            )
            now, then = np.searchsorted(t, at, side="left") - 1, np.searchsorted(t, at + ahead_s, side="right") - 1
            known = (now >= 0) & (at >= 0)
            moves = mid[then[known]] - mid[now[known]]
            features = np.column_stack([self._state(ladder, events, at[known]), np.full(known.sum(), float(lag))])
            examples.append((features[np.isfinite(moves)], moves[np.isfinite(moves)]))
        return examples

    def _state(self, ladder: Any, events: Any, at: Any) -> Any:
        """[n, f]: what is known just before each instant of `at`, from the rows and prints before it."""
        t, mid = self._column(ladder, "t"), self._mid(ladder)
        stretches = self.step_s / 6, self.step_s
        now, *before = (np.maximum(np.searchsorted(t, at - back, side="left") - 1, 0) for back in (0.0, *stretches))
        spread = self._column(ladder, "hi_L1")[now] - self._column(ladder, "lo_L1")[now]
        shape = [self._imbalance(ladder[now], levels) for levels in (1, 5, 20)]
        return np.column_stack([*shape, spread, *(mid[now] - mid[then] for then in before), *_flow(events, at, stretches)])

    def _imbalance(self, rows: Any, levels: int) -> Any:
        """[n]: (below - above) / (below + above) of the weight on the best levels; 0 where there is none."""
        below, above = (
            np.nansum(rows[:, [self.place[name] for level in range(1, levels + 1) if (name := f"{side}_W{level}") in self.place]], axis=1)
            for side in ("lo", "hi")
        )
        return np.divide(below - above, below + above, out=np.zeros(len(rows)), where=below + above > 0)

    def _mid(self, ladder: Any) -> Any:
        return (self._column(ladder, "lo_L1") + self._column(ladder, "hi_L1")) / 2

    def _column(self, ladder: Any, name: str) -> Any:
        return ladder[:, self.place[name]].astype(np.float64)


def _flow(events: Any, at: Any, stretches: tuple[float, ...]) -> list[Any]:
    """Net signed weight of the prints of each stretch before each instant, as a share of all of it."""
    t, value = events[:, 0].astype(np.float64), events[:, 1].astype(np.float64)
    net, gross = (np.concatenate([[0.0], np.cumsum(side)]) for side in (value, np.abs(value)))
    until = np.searchsorted(t, at, side="left")
    flows = []
    for back in stretches:
        since = np.searchsorted(t, at - back, side="left")
        total = gross[until] - gross[since]
        flows.append(np.divide(net[until] - net[since], total, out=np.zeros(len(at)), where=total > 0))
    return flows
