"""The grade object: what one run earned and how (grading.md sections 5, 6 and 9). Pure: from paths and curves alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from attrs import frozen

from blindcast.contracts import Grader
from blindcast.errors import FaultError
from blindcast.records import F64, Outcome
from blindcast.walk import Failure

__all__ = ["DIAGNOSTICS", "Graded", "explanation", "failure_counts", "grade_task", "rms_step", "window_counts"]

DIAGNOSTICS: Final = (
    "direction_accuracy",
    "coverage",
    "skill_score_vs_flat",
    "pnl_bps",
    "persistence_pnl_bps",
    "skill_vs_persistence_bps",
)
NOT_BUILT: Final = "inference_not_built: intervals, nulls and the verdict come with a later version; a score alone proves nothing"


@frozen(eq=False)
class Graded:
    """Rewards F64[W] in the grader's unit, failed targets included, and the diagnostics of the whole task."""

    rewards: F64
    total: float
    diagnostics: Mapping[str, float | None]


def rms_step(ys: F64) -> float:
    """Root mean square of the steps of the warm-ups' paths F64[k, G+1], in bps; 0.0 without any."""
    steps = np.diff(ys, axis=1)
    return float(np.sqrt((steps**2).mean())) if steps.size else 0.0


def grade_task(grader: Grader, ys: F64, curves: F64, scale_bps: float) -> Graded:
    """Grade `curves` F64[W, G, G+1] on `ys` F64[W, G+1], in one pass where the grader has one (PF-20).

    Raises FaultError `grader_broken` for a reward that is no finite number, or where `grade_all` and `grade` disagree.
    """
    grade_all, parts_all = getattr(grader, "grade_all", None), getattr(grader, "parts_all", None)
    if grade_all is not None and parts_all is not None:
        rewards, parts = np.asarray(grade_all(ys, curves), dtype=np.float64), dict(parts_all(ys, curves))
    else:
        rewards, parts = _window_by_window(grader, ys, curves, scale_bps)
        if grade_all is not None and not np.array_equal(grade_all(ys, curves), rewards):
            raise _broken("its `grade_all` and its `grade` give different bits")
    if not np.isfinite(rewards).all():
        raise _broken(f"its reward of window {int(np.flatnonzero(~np.isfinite(rewards))[0])} is not finite")
    diagnostics = getattr(grader, "diagnostics", None)
    shown = diagnostics(parts) if diagnostics is not None and parts else {}
    total = float(rewards.mean() if grader.total == "mean" else sum(rewards.tolist()))
    return Graded(rewards, total, dict.fromkeys(DIAGNOSTICS) | dict(shown))


def _window_by_window(grader: Grader, ys: F64, curves: F64, scale_bps: float) -> tuple[F64, dict[str, float]]:
    """(rewards F64[W], parts summed over windows) of a grader that knows one window at a time."""
    grades = [grader.grade(Outcome(y, scale_bps), curve) for y, curve in zip(ys, curves, strict=True)]
    odd = [type(grade.reward).__name__ for grade in grades if not _is_number(grade.reward)]
    if odd:
        raise _broken(f"its reward is a {odd[0]}")
    parts: dict[str, float] = {}
    for grade in grades:
        for name, value in grade.parts.items():
            parts[name] = parts.get(name, 0.0) + value
    return np.array([grade.reward for grade in grades], dtype=np.float64), parts


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool | np.timedelta64)


def _broken(what: str) -> FaultError:
    return FaultError(
        "grader_broken",
        f"the grader is broken: {what}",
        expected="one finite number a window",
        do="`blindcast plugins doctor` checks graders",
    )


def explanation(grader: Grader, ys: F64, curves: F64, warmup_ys: F64, trials: int) -> dict[str, Any]:
    """What only the grader can say of its rewards: waterfall, baselines, concentration, wmean; null where it says nothing."""
    keys = ("reward_wmean_bps", "baselines", "waterfall", "concentration")
    explain = getattr(grader, "explain", None)
    said = explain(ys, curves, warmup_ys, trials) if explain is not None and len(ys) else {}
    return {key: said.get(key) for key in keys}


def window_counts(statuses: Sequence[str], restarts: int) -> dict[str, int]:
    """How many targets went how (G-26)."""
    counted = Counter(statuses)
    return {name: counted[name] for name in ("ok", "degraded", "crashed", "not_run")} | {"restarts": restarts}


def failure_counts(failures: Sequence[Failure]) -> tuple[dict[str, int], dict[str, int]]:
    """(refused answers by code, all failures by code), both sorted by code; `restarts_spent` was never asked."""
    every = Counter(failure.code for failure in failures)
    refused = {code: n for code, n in sorted(every.items()) if code != "restarts_spent"}
    return refused, dict(sorted(every.items()))
