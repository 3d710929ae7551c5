"""The brief's three scenarios (FE-06, FE-82, FE-83)."""

from __future__ import annotations

import numpy as np
import pytest

from blindcast.protocol import walk_answers
from blindcast_graders import EarlinessHorizon
from blindcast_predictors.scenarios import SCENARIOS, commitments

B = [0.0, 12.0, 6.0, 24.0]


def reward(y: list[float], made: dict[int, dict[int, float]]) -> float:
    steps = len(y) - 1
    answers = [list(made[anchor].values()) if anchor in made else None for anchor in range(steps)]
    return float(EarlinessHorizon().grade_all(np.array([y]), walk_answers(steps, answers).curves[None])[0])


@pytest.mark.parametrize(("name", "expected"), [("before-market", 82.0), ("observe", 18.0), ("tiled", -10 / 3)])
def test_the_worked_window_earns_what_the_page_says(name: str, expected: float) -> None:
    """FV-22: y 0 12 6 24, warm-ups rose."""
    assert reward(B, commitments(name, B, [4.0, 7.0])) == pytest.approx(expected)


def test_the_worked_commitments_of_each_scenario() -> None:
    """FE-83 on four knots."""
    assert commitments("before-market", B, [4.0]) == {0: {1: 1.0, 2: 1.0, 3: 1.0}}
    assert commitments("observe", B, [4.0]) == {1: {2: 1.0, 3: 1.0}}
    assert commitments("tiled", B, [4.0]) == {0: {1: 1.0, 2: 0.0, 3: 0.0}, 1: {2: 1.0, 3: 0.0}, 2: {3: -1.0}}


@pytest.mark.parametrize(("steps", "starts"), [(1, [0]), (2, [0, 1]), (3, [0, 1, 2]), (4, [0, 2, 3]), (15, [0, 5, 10])])
def test_tiles_start_at_the_thirds_of_the_window(steps: int, starts: list[int]) -> None:
    """FV-23: equal starts merge, none lies at G."""
    made = commitments("tiled", list(range(steps + 1)), [1.0])
    assert list(made) == starts
    for start, end in zip(starts, [*starts[1:], steps], strict=True):
        assert made[start] == {knot: float(knot <= end) for knot in range(start + 1, steps + 1)}


def test_tiles_follow_the_move_over_the_tile_before() -> None:
    """FE-83: not the move so far, and 0 where there was none."""
    made = commitments("tiled", [0, 9, 9, 5, 5, 5, 5], [-3.0])
    assert [made[anchor][anchor + 1] for anchor in (0, 2, 4)] == [-1.0, 1.0, -1.0]
    assert commitments("tiled", [0, 5, 5, 5], [0.0])[2] == {3: 0.0}


@pytest.mark.parametrize(("steps", "anchor"), [(2, 1), (3, 1), (4, 2), (15, 5), (16, 6), (90, 30)])
def test_observe_calls_at_the_first_anchor_from_a_third_on(steps: int, anchor: int) -> None:
    """FE-83: 3i >= G."""
    y = [-0.5 * knot for knot in range(steps + 1)]
    assert commitments("observe", y, [1.0]) == {anchor: dict.fromkeys(range(anchor + 1, steps + 1), -1.0)}


def test_observe_has_no_anchor_to_call_at_in_a_window_of_one_step() -> None:
    """FE-83."""
    assert commitments("observe", [0, 1], [1.0]) == {}


@pytest.mark.parametrize(("last", "sign"), [([5.0, -6.0], -1.0), ([], 0.0), ([1.0, -1.0], 0.0), (-2.0, -1.0)])
def test_before_market_takes_the_sign_of_the_warm_ups_mean(last: list[float] | float, sign: float) -> None:
    """FE-83: sign(0) = 0."""
    assert commitments("before-market", [0, 1, 2], last) == {0: {1: sign, 2: sign}}


def test_the_future_has_no_say() -> None:
    """PR-03: another end changes no commitment made before it."""
    rng = np.random.default_rng(3)
    for name in SCENARIOS:
        y = [0.0, *rng.normal(0, 9, 15)]
        for fork in (1, 7, 14):
            other = [*y[: fork + 1], *rng.normal(0, 9, 15 - fork)]
            one, two = commitments(name, y, [3.0]), commitments(name, other, [3.0])
            assert {a: c for a, c in one.items() if a <= fork} == {a: c for a, c in two.items() if a <= fork}


def test_an_unknown_scenario_and_an_empty_path_are_refused() -> None:
    """FE-06."""
    with pytest.raises(ValueError, match="known: before-market, observe, tiled"):
        commitments("imbalance", B, [1.0])
    with pytest.raises(ValueError, match="at least two"):
        commitments("tiled", [0.0], [1.0])
