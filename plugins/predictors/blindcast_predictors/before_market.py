"""Before the market opens: one call from the warm-ups alone, which then stands to the end (the brief's first scenario)."""

from __future__ import annotations

import math
from typing import Any


class Predictor:
    """The sign of the warm-ups' mean last y, committed once at anchor 0 for all knots."""

    sign = 0.0

    def fit(self, warmups: Any) -> None:
        """Note where the warm-ups ended on the mean."""
        drift = math.fsum(float(view.y[-1]) for view in warmups)  # the mean has the sign of the sum
        self.sign = float((drift > 0) - (drift < 0))

    def predict(self, view: Any) -> float | None:
        """The call at anchor 0, then None: it stands."""
        return self.sign if view.anchor == 0 else None
