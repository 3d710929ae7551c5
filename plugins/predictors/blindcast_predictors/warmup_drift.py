"""Hold the direction in which the warm-ups ended: the sign of the sum of their last y."""

from __future__ import annotations

import math
from typing import Any


class Predictor:
    """The sign of the warm-ups' drift, held through every window."""

    sign = 0.0

    def fit(self, warmups: Any) -> None:
        """Add up where the warm-ups ended; none at all is no drift."""
        drift = math.fsum(float(view.y[-1]) for view in warmups)
        self.sign = float((drift > 0) - (drift < 0))

    def predict(self, view: Any) -> float | None:
        """The sign before the window; then it stands."""
        return self.sign if view.anchor == 0 else None
