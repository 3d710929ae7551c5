"""Diagnostics segment by segment (G-40 to G-42)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blindcast.protocol import walk_answers
from blindcast.records import Outcome
from blindcast_graders import EarlinessHorizon, diagnostics
from blindcast_graders.segments import PARTS, last_move_sign

B = [0, 12, 6, 24]
N = None
KEYS = ("direction_accuracy", "coverage", "skill_score_vs_flat", "pnl_bps", "persistence_pnl_bps", "skill_vs_persistence_bps")
TILED: list[object] = [[1, 0, 0], [-1, 0], 1]

Case = tuple[list[tuple[list[float], list[object]]], list[float | None]]
VECTORS: dict[str, Case] = {
    "GV-42": ([([0, 12, 6, 24], [1, N, N])], [5 / 6, 1, -0.1547005384, 24, -24, 48]),
    "GV-43": ([([0, 12, 6, 24], TILED)], [1, 1, 1, 36, -24, 60]),
    "GV-44": ([([0, 12, 6, 24], [N, N, N])], [None, 0, 0, 0, -24, 24]),
    "GV-45": ([([0, 0, 0], [1, N])], [None, 1, None, 0, 0, 0]),
    "GV-46": ([([0, 12, 6, 24], [0.5, N, N])], [5 / 6, 1, 0.0425728922, 12, -24, 36]),
    "GV-47": ([([0, 12, 6, 24], [1, N, N]), ([0, 10, 30, 25], [-1, N, N])], [35 / 71, 1, -0.4142135624, -1, -9, 8]),
}


@pytest.mark.parametrize(("windows", "expected"), VECTORS.values(), ids=VECTORS.keys())
def test_the_worked_windows_are_diagnosed_as_the_page_says(
    windows: list[tuple[list[float], list[object]]], expected: list[float | None]
) -> None:
    """GV-42 to GV-47."""
    ys = np.array([y for y, _ in windows], dtype=float)
    curves = np.array([walk_answers(len(y) - 1, answers).curves for y, answers in windows])
    got = diagnostics(ys, curves)
    assert tuple(got) == KEYS
    for key, value in zip(KEYS, expected, strict=True):
        assert got[key] is None if value is None else got[key] == pytest.approx(value, rel=1e-9, abs=1e-9), key


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 20), st.integers(1, 12), st.integers(0, 1 << 30))
def test_parts_summed_over_windows_give_the_pooled_numbers(steps: int, windows: int, seed: int) -> None:
    """G-40 to G-42, GR-07: one division at the end, whichever way the sums were made."""
    rng = np.random.default_rng(seed)
    ys = np.concatenate([np.zeros((windows, 1)), np.cumsum(rng.integers(-2, 3, (windows, steps)), axis=1, dtype=np.float64)], axis=1)
    curves = np.triu(rng.choice([-1.0, -0.3, 0.0, 0.5], (windows, steps, steps + 1)), 1)
    grader = EarlinessHorizon()
    graded = [grader.grade(Outcome(y, 1.0), c).parts for y, c in zip(ys, curves, strict=True)]
    summed = {name: sum(parts[name] for parts in graded) for name in PARTS}
    pooled = diagnostics(ys, curves)
    for key, value in grader.diagnostics(summed).items():
        assert value is None if pooled[key] is None else value == pytest.approx(pooled[key], rel=1e-12, abs=1e-9), key


def test_parts_of_nothing_are_diagnosed_without_a_division_by_zero() -> None:
    """GR-07."""
    got = EarlinessHorizon().diagnostics(dict.fromkeys(PARTS, 0.0))
    assert got["direction_accuracy"] is None
    assert got["coverage"] is None
    assert got["skill_score_vs_flat"] is None
    assert diagnostics(np.zeros((0, 4)), np.zeros((0, 3, 4))) == dict(got)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from([-2.0, 0.0, 3.0]), min_size=1, max_size=12))
def test_persistence_follows_the_last_move_that_was_one(moves: list[float]) -> None:
    """G-42: zero moves are looked through; 0 before the first."""
    expected, sign = [], 0.0
    for move in moves:
        expected.append(sign)
        sign = float(np.sign(move)) or sign
    assert last_move_sign(np.array([moves])).tolist() == [expected]


def test_a_full_conviction_coin_scores_worse_than_flat() -> None:
    """G-41's footnote: half right at +-1 is -0.41."""
    got = diagnostics(np.array([[0.0, 1.0, 0.0]]), np.array([[[0.0, 1.0, 1.0], [0.0, 0.0, 1.0]]]))
    assert got["skill_score_vs_flat"] == pytest.approx(1 - np.sqrt(2))
