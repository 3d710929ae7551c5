"""Baselines, waterfall and concentration (G-43 to G-45)."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blindcast.inference import expected_best
from blindcast.protocol import walk_answers
from blindcast.records import F64
from blindcast_graders import EarlinessHorizon, baselines, waterfall
from blindcast_graders.explain import concentration

N = None
Returns = Literal["window_bps", "simple_bps", "log_bps"]


def split(ys: list[list[float]], answers: list[list[object]]) -> dict[str, Any]:
    curves = np.array([walk_answers(len(y) - 1, answer).curves for y, answer in zip(ys, answers, strict=True)])
    return waterfall(np.array(ys, dtype=float), curves, 1.0)


def test_five_one_step_windows_split_as_the_page_says() -> None:
    """GV-90."""
    got = split([[0, 10], [0, 20], [0, -10], [0, -30], [0, 40]], [[1], [1], [1], [-1], [-0.5]])
    assert [got[key] for key in ("bias_bps", "timing_bps", "sizing_bps")] == pytest.approx([10.8, 7.2, 42.0])
    assert got["by_anchor_bps"] == got["by_lag_bps"] == pytest.approx([60.0])


def test_four_two_step_windows_split_as_the_page_says() -> None:
    """GV-91."""
    got = split([[0, 10, 30], [0, -5, -20], [0, 4, -8], [0, 6, 2]], [[1, N], [-1, N], [0.5, -1], [N, 0.5]])
    assert [got[key] for key in ("bias_bps", "timing_bps", "sizing_bps")] == pytest.approx([3.59375, 89.0, 50.15625])


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 20), st.integers(1, 30), st.integers(0, 1 << 30), st.sampled_from(["window_bps", "simple_bps", "log_bps"]))
def test_the_parts_of_the_waterfall_add_up_to_the_reward(steps: int, windows: int, seed: int, returns: Returns) -> None:
    """G-44: bias, timing and sizing; anchors; lags."""
    ys, curves = _random(windows, steps, seed)
    total = EarlinessHorizon(0.7, returns).grade_all(ys, curves).sum()
    got: dict[str, Any] = waterfall(ys, curves, 0.7, returns)
    for parts in ([got["bias_bps"], got["timing_bps"], got["sizing_bps"]], got["by_anchor_bps"], got["by_lag_bps"]):
        assert sum(parts) == pytest.approx(total, rel=1e-9, abs=1e-7)
    assert len(got["by_anchor_bps"]) == len(got["by_lag_bps"]) == steps


def test_the_waterfall_is_the_formula_word_by_word() -> None:
    """G-44 against plain loops over the cells."""
    ys, curves = _random(6, 4, 3)
    anchor, knot = np.triu_indices(4, 1, 5)
    b = (ys[:, knot] - ys[:, anchor]) * (2 - anchor / 4) * (knot - anchor) / 4
    c = curves[:, anchor, knot]
    e = np.sign(c) * np.abs(c).mean(axis=0)
    got: dict[str, Any] = waterfall(ys, curves, 1.0)
    assert got["bias_bps"] == pytest.approx(6 * (e.mean(axis=0) * b.mean(axis=0)).sum())
    assert got["timing_bps"] == pytest.approx((e * b).sum() - got["bias_bps"])
    assert got["sizing_bps"] == pytest.approx(((c - e) * b).sum())
    assert got["by_anchor_bps"] == pytest.approx([(c * b)[:, anchor == i].sum() for i in range(4)])
    assert got["by_lag_bps"] == pytest.approx([(c * b)[:, knot - anchor == lag].sum() for lag in range(1, 5)])


def test_a_standing_call_is_all_bias() -> None:
    """G-44: a constant has no timing and no sizing."""
    ys, _ = _random(20, 15, 1)
    got: dict[str, Any] = waterfall(ys, np.triu(np.ones((20, 15, 16)), 1), 1.0)
    assert got["timing_bps"] == pytest.approx(0.0, abs=1e-7)
    assert got["sizing_bps"] == pytest.approx(0.0, abs=1e-7)


def test_the_baselines_of_one_window() -> None:
    """GV-97, GV-20 (G-43)."""
    got = baselines(np.array([[0.0, 12, 6, 24]]), [[0.0, 1, 2, 3], [0.0, 0, 0, -5]], 1.0, 2)
    assert got == {
        "flat": 0.0,
        "always_long": pytest.approx(82.0),
        "always_short": pytest.approx(-82.0),
        "warmup_drift": pytest.approx(-82.0),
        "persistence": pytest.approx(2.0),
        "best_of_n_coins": pytest.approx(82.0 * 0.564189583548),
    }


def test_baselines_are_what_the_grader_would_have_paid_to_the_bit() -> None:
    """G-43: by the same grader."""
    ys, _ = _random(50, 15, 5)
    ones = np.triu(np.ones((50, 15, 16)), 1)
    moves = np.sign(np.diff(ys, axis=1))
    last = np.concatenate([np.zeros((50, 1)), moves[:, :-1]], axis=1)
    grader, got = EarlinessHorizon(), baselines(ys, ys[:4], 1.0, 1)
    assert got["always_long"] == grader.grade_all(ys, ones).sum()
    assert got["persistence"] == grader.grade_all(ys, ones * last[:, :, None]).sum()
    assert got["best_of_n_coins"] == 0.0


def test_no_warm_up_is_no_drift_and_no_trial_no_best_of_coins() -> None:
    """G-43: `fit([])` and dry runs."""
    got = baselines(np.array([[0.0, 12, 6, 24]]), np.zeros((0, 4)), 1.0, 0)
    assert got["warmup_drift"] == 0.0
    assert got["best_of_n_coins"] is None


def test_the_best_of_n_coins_grows_with_the_trials() -> None:
    """G-43, G-66."""
    ys, _ = _random(40, 15, 2)
    long = EarlinessHorizon().grade_all(ys, np.triu(np.ones((40, 15, 16)), 1))
    got = baselines(ys, ys[:4], 1.0, 50)["best_of_n_coins"]
    assert got == pytest.approx(expected_best(50) * np.sqrt((long**2).sum()))


def test_concentration_counts_the_windows_that_carry_the_reward() -> None:
    """G-45."""
    got = concentration(np.array([10.0, -8, 6, 4, -2, 1, 1, -1]), 3.0)
    assert got == {
        "top5_share": pytest.approx(30 / 33),
        "without_top5_bps": pytest.approx(1.0),
        "effective_windows": pytest.approx(33**2 / 223),
        "sign_only_bps": 3.0,
    }


def test_concentration_of_nothing_is_null_never_nan() -> None:
    """G-45."""
    got = concentration(np.zeros(7), 0.0)
    assert got == {"top5_share": None, "without_top5_bps": 0.0, "effective_windows": None, "sign_only_bps": 0.0}
    assert concentration(np.array([]), 0.0)["top5_share"] is None
    assert concentration(np.array([3.0, 1.0]), 4.0)["without_top5_bps"] == 0.0


def test_the_grader_explains_a_task_in_the_words_of_the_grade_object() -> None:
    """G-90."""
    ys, curves = _random(9, 15, 8)
    grader = EarlinessHorizon(2.0)
    got = grader.explain(ys, curves, ys[:3], 4)
    assert set(got) == {"reward_wmean_bps", "baselines", "waterfall", "concentration", "companion", "e_value"}
    assert got["reward_wmean_bps"] == grader.grade_all(ys, curves).sum() / 9 / grader.total_weight(15)
    assert got["waterfall"] == waterfall(ys, curves, 2.0)
    assert got["baselines"] == baselines(ys, ys[:3], 2.0, 4)
    assert got["concentration"]["sign_only_bps"] == pytest.approx(grader.grade_all(ys, np.sign(curves)).sum())
    assert got["companion"] is got["e_value"] is None


def test_an_empty_task_is_explained_without_a_number() -> None:
    """G-50: no target, no mean."""
    got = EarlinessHorizon().explain(np.zeros((0, 4)), np.zeros((0, 3, 4)), np.zeros((0, 4)), 1)
    assert got["reward_wmean_bps"] is None
    assert got["waterfall"]["bias_bps"] == 0.0


def _random(windows: int, steps: int, seed: int) -> tuple[F64, F64]:
    rng = np.random.default_rng(seed)
    ys = np.concatenate([np.zeros((windows, 1)), np.cumsum(rng.normal(0, 10, (windows, steps)), axis=1)], axis=1)
    return ys, np.triu(np.round(rng.uniform(-1, 1, (windows, steps, steps + 1)), 1), 1)


def test_lists_of_numbers_will_do() -> None:
    """GV-90: paths and curves need not be arrays."""
    ys, calls = [[0, 10], [0, 20], [0, -10], [0, -30], [0, 40]], [[[0, c]] for c in (1, 1, 1, -1, -0.5)]
    split = waterfall(ys, calls)  # type: ignore[arg-type]  # lists on purpose
    assert [split[name] for name in ("bias_bps", "timing_bps", "sizing_bps")] == pytest.approx([10.8, 7.2, 42])
