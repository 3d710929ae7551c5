"""Statistics over windows (grading.md section 7)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from blindcast.inference import expected_best


@pytest.mark.parametrize(("n", "mean"), [(1, 0.0), (2, 0.564190), (10, 1.538753), (50, 2.249074), (200, 2.746042)])
def test_the_best_of_n_normals_has_the_exact_mean(n: int, mean: float) -> None:
    """GV-86 (G-66)."""
    assert expected_best(n) == pytest.approx(mean, abs=5e-7)


def test_small_counts_agree_with_their_closed_forms() -> None:
    """G-66: 1/sqrt(pi) for two, 3/(2 sqrt(pi)) for three."""
    assert expected_best(1) == 0.0
    assert expected_best(2) == pytest.approx(1 / np.sqrt(np.pi), rel=1e-12)
    assert expected_best(3) == pytest.approx(1.5 / np.sqrt(np.pi), rel=1e-12)


def test_the_mean_grows_with_the_count_however_large() -> None:
    """G-66: no approximation breaks down."""
    means = [expected_best(10**power) for power in range(13)]
    assert all(np.diff(means) > 0)
    assert means[12] == pytest.approx(7.11246368, abs=1e-7)


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "2", None])
def test_a_count_of_trials_is_an_integer_from_one_up(n: Any) -> None:
    """G-66."""
    with pytest.raises(ValueError, match="integer >= 1"):
        expected_best(n)


def test_a_count_of_numpy_is_a_count() -> None:
    """G-66."""
    assert [expected_best(np.int64(n)) for n in (1, 10)] == [expected_best(n) for n in (1, 10)]
