"""The grade object's numbers (grading.md sections 5 and 6, performance.md PF-20)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blindcast.errors import FaultError
from blindcast.grade import DIAGNOSTICS, explanation, failure_counts, grade_task, rms_step, window_counts
from blindcast.records import F64, Outcome, WindowGrade
from blindcast.walk import Failure

YS = np.array([[0.0, 1.0, 2.0], [0.0, -1.0, -3.0]])
CURVES = np.ones((2, 2, 3))


class Last:
    """Pays what the path ends at, times the first conviction; keeps what it was told."""

    version: ClassVar[int] = 1
    unit: ClassVar[str] = "bps"
    total: ClassVar[Literal["sum", "mean"]] = "sum"
    properties: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, pays: object = None) -> None:
        self.pays = pays
        self.told: list[Outcome] = []

    def grade(self, outcome: Outcome, curves: F64) -> WindowGrade:
        self.told.append(outcome)
        paid = float(outcome.y[-1] * curves[0, 1]) if self.pays is None else self.pays
        return WindowGrade(paid, {"moves": abs(float(outcome.y[-1])), "windows": 1.0})  # type: ignore[arg-type]  # a broken grader may pay anything

    def diagnostics(self, parts: Mapping[str, float]) -> Mapping[str, float | None]:
        return {"coverage": parts["moves"] / parts["windows"], "pnl_bps": None}


class Mean(Last):
    total: ClassVar[Literal["sum", "mean"]] = "mean"


class Batched(Last):
    def __init__(self, off: float) -> None:
        super().__init__()
        self.off = off

    def grade_all(self, ys: F64, curves: F64) -> F64:
        paid: F64 = ys[:, -1] * curves[:, 0, 1] + self.off
        return paid


def test_a_tasks_reward_is_the_sum_or_the_mean_over_its_targets() -> None:
    """G-30, G-50; `total` of the grader."""
    assert grade_task(Last(), YS, CURVES, 1.0).total == -1.0
    assert grade_task(Mean(), YS, CURVES, 1.0).total == -0.5
    assert grade_task(Last(), YS, CURVES, 1.0).rewards.tolist() == [2.0, -3.0]


def test_a_grader_is_told_the_path_and_the_scale() -> None:
    grader = Last()
    grade_task(grader, YS, CURVES, 7.0)
    assert [outcome.scale_bps for outcome in grader.told] == [7.0, 7.0]
    assert grader.told[1].y.tolist() == [0.0, -1.0, -3.0]


def test_diagnostics_come_from_parts_summed_over_windows() -> None:
    """Grading.md section 5: pooled, not averaged; every key is there, undefined is None."""
    shown = grade_task(Last(), YS, CURVES, 1.0).diagnostics
    assert set(shown) == set(DIAGNOSTICS)
    assert (shown["coverage"], shown["pnl_bps"], shown["direction_accuracy"]) == (2.5, None, None)


def test_a_grader_without_diagnostics_has_none() -> None:
    class Bare:
        version, unit, total, properties = 1, "bps", "sum", frozenset[str]()

        def grade(self, outcome: Outcome, curves: F64) -> WindowGrade:
            return WindowGrade(1.0)

    graded = grade_task(Bare(), YS, CURVES, 1.0)  # type: ignore[arg-type]  # what a plain function becomes
    assert (graded.total, graded.diagnostics) == (2.0, dict.fromkeys(DIAGNOSTICS))


@pytest.mark.parametrize(
    "pays", [float("nan"), float("inf"), -float("inf"), None.__class__, "1.0", True, 1j, [1.0], np.timedelta64(1, "s")]
)
def test_a_reward_that_is_no_finite_number_is_the_graders_fault(pays: object) -> None:
    """G-55: a fault of ours gives no number and is never a zero."""
    with pytest.raises(FaultError) as caught:
        grade_task(Last(pays=pays), YS, CURVES, 1.0)
    assert (caught.value.code, caught.value.exit_code) == ("grader_broken", 6)


@pytest.mark.parametrize("pays", [1, 0.5, np.float32(0.5), np.int64(2)])
def test_any_real_number_will_do(pays: object) -> None:
    assert grade_task(Last(pays=pays), YS, CURVES, 1.0).total == 2 * float(pays)  # type: ignore[arg-type]  # numbers all


def test_a_batch_must_give_the_bits_of_the_windows() -> None:
    """PF-20."""
    assert grade_task(Batched(0.0), YS, CURVES, 1.0).total == -1.0
    with pytest.raises(FaultError, match="different bits"):
        grade_task(Batched(1e-16 * 4), YS, CURVES, 1.0)


@settings(deadline=None)
@given(st.lists(st.lists(st.floats(-1e3, 1e3), min_size=3, max_size=3), min_size=1, max_size=5))
def test_the_scale_is_the_root_mean_square_step(paths: list[list[float]]) -> None:
    """G-63."""
    steps = [b - a for path in paths for a, b in pairwise(path)]
    assert rms_step(np.array(paths)) == pytest.approx((sum(s * s for s in steps) / len(steps)) ** 0.5, abs=1e-9)


def test_no_warm_up_has_no_scale() -> None:
    assert rms_step(np.zeros((0, 16))) == 0.0


def test_an_explanation_has_every_key() -> None:
    """Plugins.md: only the grader can say it; null where it says nothing."""

    class Explaining(Last):
        def explain(self, ys: F64, curves: F64, warmup_ys: F64, trials: int) -> Mapping[str, Any]:
            return {"waterfall": {"bias_bps": 1.0}, "concentration": trials, "odd": 1}

    keys = {"reward_wmean_bps", "baselines", "waterfall", "concentration"}
    assert explanation(Last(), YS, CURVES, YS, 1) == dict.fromkeys(keys)
    said = explanation(Explaining(), YS, CURVES, YS, 5)
    assert said == dict.fromkeys(keys) | {"waterfall": {"bias_bps": 1.0}, "concentration": 5}
    assert explanation(Explaining(), YS[:0], CURVES[:0], YS, 5) == dict.fromkeys(keys)


def test_windows_are_counted_by_how_they_went() -> None:
    """G-26, G-90: every word is there."""
    assert window_counts(["ok", "crashed", "ok", "not_run"], 1) == {"ok": 2, "degraded": 0, "crashed": 1, "not_run": 1, "restarts": 1}


def test_failures_are_counted_by_code() -> None:
    """G-54, G-90: `restarts_spent` was never asked, so it is no refused answer."""
    failures = [Failure(0, 1, "not_finite"), Failure(0, 2, "died"), Failure(1, 0, "not_finite"), Failure(2, None, "restarts_spent")]
    refused, every = failure_counts(failures)
    assert json.dumps(refused) == '{"died": 1, "not_finite": 2}'
    assert json.dumps(every) == '{"died": 1, "not_finite": 2, "restarts_spent": 1}'
