"""Honest: Arrow's compute on the frames, a model file from its own folder, four threads in `observe`.

It tries to keep its model up to date in that file, is refused, and goes on with what it has in memory.
"""

import json
import math
import os
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.compute as pc

MODEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "model.json")


def drift(column):
    """How far the last row of a column stands from its mean."""
    return pc.subtract(column[-1], pc.mean(column)).as_py() if len(column) else 0.0


class Predictor:
    def __init__(self, context):
        with open(MODEL) as file:
            self.model = json.load(file)
        self.drifts, self.refused = [0.0], ""
        self.keep()

    def keep(self):
        """Write the model back; it may be read, not written."""
        try:
            with open(MODEL, "r+") as file:
                json.dump(self.model | {"runs": self.model.get("runs", 0) + 1}, file)
        except OSError as error:
            self.refused = str(error)

    def observe(self, view):
        table = pa.Table.from_pandas(view.ladder, preserve_index=False)
        with ThreadPoolExecutor(4) as pool:
            self.drifts = list(pool.map(drift, table.columns))

    def predict(self, view):
        events = pa.array(view.events["value"].to_numpy(dtype=float))
        sides = pc.value_counts(pc.greater(events, 0.0)).to_pylist()
        most = max((side["counts"] for side in sides), default=0)
        lean = sum(self.drifts) * self.model["weight"] + most * self.model["bias"]
        return [math.tanh(lean) / (1 + i) for i in range(len(view.horizons))]
