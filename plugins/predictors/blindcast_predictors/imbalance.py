"""Queue imbalance: the side of the book with more resting weight pushes the price to the other side."""

from __future__ import annotations

from typing import Any

LEVELS = 5  # best levels of each side


class Predictor:
    """(below - above) / (below + above) of the weight on the best levels of the newest book row, in [-1, 1].

    The sums run level by level in float64, so the same row gives the same bits on every machine.
    """

    def __init__(self, context: Any) -> None:
        columns = tuple(context.columns)
        self.below = [columns.index(f"lo_W{level}") for level in range(1, LEVELS + 1) if f"lo_W{level}" in columns]
        self.above = [columns.index(f"hi_W{level}") for level in range(1, LEVELS + 1) if f"hi_W{level}" in columns]

    def predict(self, view: Any) -> float:
        """The imbalance for every remaining horizon; 0 before the first row, and where no level is left."""
        ladder = view.ladder
        if not len(ladder):
            return 0.0
        row = ladder.to_numpy()[-1].tolist()
        below, above = _weight(row, self.below), _weight(row, self.above)
        return (below - above) / (below + above) if below + above > 0 else 0.0


def _weight(row: list[float], places: list[int]) -> float:
    total = 0.0
    for place in places:
        if 0.0 < row[place] < float("inf"):  # a missing level is NaN
            total += row[place]
    return total
