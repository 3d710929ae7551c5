"""Honest: a grid search over random forests with `n_jobs=-1`, and histogram gradient boosting, fitted on the warm-ups."""

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.model_selection import GridSearchCV, KFold


class Predictor:
    jobs = -1

    def fit(self, warmups):
        rows = np.concatenate([warmup.ladder.to_numpy(dtype=float) for warmup in warmups])
        moves = np.sin(3 * rows[:, 0]) + (rows[:, 1] - rows[:, 1].mean()) / 4
        forest = RandomForestRegressor(n_estimators=8, max_depth=4, random_state=4, n_jobs=self.jobs)
        self.search = GridSearchCV(forest, {"max_depth": [2, 4]}, cv=KFold(2), n_jobs=self.jobs).fit(rows, moves)
        self.boosting = HistGradientBoostingRegressor(max_iter=20, min_samples_leaf=4, early_stopping=False, random_state=4).fit(
            rows, moves
        )

    def predict(self, view):
        if view.ladder.empty:
            return 0.0
        rows = view.ladder.to_numpy(dtype=float)[-8:]
        lean = float(self.search.predict(rows).mean() + self.boosting.predict(rows).mean())
        return [float(np.tanh(lean) * 0.9**i) for i in range(len(view.horizons))]
