"""No conviction, ever: what every other predictor has to beat."""

from __future__ import annotations

from typing import Any


class Predictor:
    """Always flat."""

    def predict(self, view: Any) -> float:
        """0.0 for every remaining horizon."""
        return 0.0
