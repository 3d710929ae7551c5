"""Where the window has gone so far, it goes on: the sign of y at each anchor."""

from __future__ import annotations

from typing import Any


class Predictor:
    """The sign of the window's move so far."""

    def predict(self, view: Any) -> float:
        """-1, 0 or +1 for every remaining horizon; reads `view.y` alone."""
        now = float(view.y[-1])
        return float((now > 0) - (now < 0))
