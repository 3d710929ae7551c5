"""What moved last goes on: the sign of the window's last non-zero move, for every remaining horizon."""

from __future__ import annotations

from typing import Any


class Predictor:
    """The sign of the last non-zero move between two knots; 0 before the first."""

    def predict(self, view: Any) -> float:
        """-1, 0 or +1 for every remaining horizon; reads `view.y` alone."""
        y = view.y
        for knot in range(len(y) - 1, 0, -1):
            if y[knot] != y[knot - 1]:
                return 1.0 if y[knot] > y[knot - 1] else -1.0
        return 0.0
