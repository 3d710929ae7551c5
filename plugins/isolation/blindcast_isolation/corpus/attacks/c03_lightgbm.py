"""Honest: 50 trees of LightGBM with `num_threads=8`, fitted on the warm-ups, kept as a string and loaded from it."""

import lightgbm
import numpy as np

OPTIONS = {
    "objective": "regression",
    "num_leaves": 7,
    "min_data_in_leaf": 2,
    "min_data_in_bin": 1,
    "learning_rate": 0.1,
    "deterministic": True,
    "force_row_wise": True,
    "seed": 3,
    "verbosity": -1,
}


def features(ladder):
    """The rows, and how far each stands from the mean of those up to it."""
    rows = ladder.to_numpy(dtype=float)
    return np.column_stack([rows, rows - np.cumsum(rows, axis=0) / np.arange(1, len(rows) + 1)[:, None]])


def moves(warmup):
    """For each row the path's step that it falls into; rows come evenly."""
    return np.repeat(np.diff(warmup.y), -(-len(warmup.ladder) // (len(warmup.y) - 1)))[: len(warmup.ladder)]


class Predictor:
    threads = 8

    def __init__(self, context):
        self.text = ""

    def fit(self, warmups):
        rows = np.concatenate([features(warmup.ladder) for warmup in warmups])
        wanted = np.concatenate([moves(warmup) for warmup in warmups])
        options = OPTIONS | {"num_threads": self.threads}
        self.text = lightgbm.train(options, lightgbm.Dataset(rows, wanted, params=options), num_boost_round=50).model_to_string()

    def predict(self, view):
        if view.ladder.empty:
            return 0.0
        model = lightgbm.Booster(model_str=self.text)
        return float(np.tanh(model.predict(features(view.ladder), num_threads=self.threads).mean()))
