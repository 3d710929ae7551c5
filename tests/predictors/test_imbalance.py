"""Queue imbalance: bounded, mirrored, fixed to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest


class Book:
    """A view of one newest row."""

    def __init__(self, columns: list[str], rows: list[list[float]]) -> None:
        self.ladder = pd.DataFrame(np.array(rows, dtype=np.float32).reshape(-1, len(columns)), columns=columns)


def row(below: list[float], above: list[float]) -> list[float]:
    sides = []
    for weights in (below, above):
        weights = [*weights, *[float("nan")] * (20 - len(weights))]
        sides += [value for weight in weights for value in (1.0, weight)]
    return [0.5, *sides]


@pytest.fixture
def imbalance(invented: Any, seated: Any) -> Any:
    columns = list(invented().view(1).ladder.columns)
    return lambda *rows: seated("imbalance").predict(Book(columns, list(rows)))


def test_the_heavier_side_is_backed(imbalance: Any) -> None:
    """(below - above) / (below + above) of the newest row."""
    assert imbalance(row([1.0], [9.0]), row([3.0], [1.0])) == 0.5
    assert imbalance(row([1.0], [3.0])) == -0.5


def test_five_levels_count_and_the_sixth_does_not(imbalance: Any) -> None:
    """The best five of each side."""
    assert imbalance(row([1, 1, 1, 1, 1, 50], [1, 1, 1, 1, 1])) == 0.0


def test_missing_levels_and_an_empty_book_are_no_reason_to_fail(imbalance: Any, invented: Any, seated: Any) -> None:
    """PR-07, G-04: anchor 0 shows no row."""
    nan = float("nan")
    assert imbalance(row([nan, 2.0], [nan, nan, 2.0])) == 0.0
    assert imbalance(row([], [])) == 0.0
    assert imbalance(row([2.0], [])) == 1.0
    assert seated("imbalance").predict(invented().view(0)) == 0.0


def test_the_mirrored_book_gives_the_opposite_to_the_bit(imbalance: Any) -> None:
    """G-84: sides turned, sign turned."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        below, above = rng.lognormal(0, 3, 5).tolist(), rng.lognormal(0, 3, 5).tolist()
        assert imbalance(row(below, above)) == -imbalance(row(above, below))
        assert -1.0 <= imbalance(row(below, above)) <= 1.0


def test_a_known_row_gives_known_bits(imbalance: Any) -> None:
    """Sums run level by level in float64: the same bits on every machine."""
    below, above = [0.1, 0.7, 1.3, 0.33, 2.1], [0.9, 0.2, 0.05, 1.7, 0.6]
    low, high = 0.0, 0.0
    for a, b in zip(below, above, strict=True):
        low += float(np.float32(a))
        high += float(np.float32(b))
    assert imbalance(row(below, above)).hex() == ((low - high) / (low + high)).hex()
