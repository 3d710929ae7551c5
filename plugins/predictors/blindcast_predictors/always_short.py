"""Full conviction downwards at every anchor: the mirror of always-long."""

from __future__ import annotations

from typing import Any


class Predictor:
    """Always -1."""

    def predict(self, view: Any) -> float:
        """-1 for every remaining horizon."""
        return -1.0
