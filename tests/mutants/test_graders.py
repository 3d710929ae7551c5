"""Each mutant of a grader fails its check and no other (conformance.md Q-01, plugins.md P-53, PV-15)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
import pytest

from blindcast.records import F64, Outcome, WindowGrade
from blindcast.testing import checks, judge, subject_of


def moves_of(outcome: Outcome) -> F64:
    return outcome.y[None, :] - outcome.y[:-1, None]


class Honest:
    """Conviction times move, every cell alike; it claims what it has."""

    version: ClassVar[int] = 1
    unit: ClassVar[str] = "bps"
    total: ClassVar[Literal["sum", "mean"]] = "sum"
    properties: ClassVar[frozenset[str]] = frozenset({"antisymmetric", "linear", "early_pays", "reach_pays", "fair"})

    def grade(self, outcome: Outcome, curves: F64) -> Any:
        return float((curves * moves_of(outcome)).sum())

    def diagnostics(self, parts: Mapping[str, float]) -> Mapping[str, float | None]:
        return {}


class Unclaimed(Honest):
    properties: ClassVar[frozenset[str]] = frozenset()


class NoCallIsNotANumber(Unclaimed):
    def grade(self, outcome: Outcome, curves: F64) -> float:
        stake = float(np.abs(curves).sum())
        return float((curves * moves_of(outcome)).sum()) / stake if stake else math.nan


class DividesByStake(Unclaimed):
    def grade(self, outcome: Outcome, curves: F64) -> float:
        with np.errstate(invalid="ignore"):
            return float(np.divide((curves * moves_of(outcome)).sum(), np.abs(curves).sum()))


class PaysTheEntry(Unclaimed):
    def grade(self, outcome: Outcome, curves: F64) -> float:
        return float((curves * moves_of(outcome)).sum()) + 1e-9


class Exponential(Unclaimed):
    def grade(self, outcome: Outcome, curves: F64) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            return float((curves * np.sign(moves_of(outcome)) * np.exp(np.abs(moves_of(outcome)))).sum())


class UnboundParts(Unclaimed):
    def grade(self, outcome: Outcome, curves: F64) -> WindowGrade:
        moves = moves_of(outcome)
        with np.errstate(over="ignore"):
            return WindowGrade(float((curves * moves).sum()), {"size": float(np.exp(np.abs(moves).max()))})


class Clears(Unclaimed):
    def grade(self, outcome: Outcome, curves: F64) -> float:
        reward = float((curves * moves_of(outcome)).sum())
        curves.flags.writeable = True
        curves[...] = 0
        return reward


class ClearsBluntly(Unclaimed):
    def grade(self, outcome: Outcome, curves: F64) -> float:
        reward = float((curves * moves_of(outcome)).sum())
        curves[...] = 0
        return reward


class Draws(Unclaimed):
    def grade(self, outcome: Outcome, curves: F64) -> float:
        return float((curves * moves_of(outcome)).sum()) * np.random.default_rng().uniform(0.5, 1.0)


class CountsItsCalls(Unclaimed):
    def __init__(self) -> None:
        self.calls = 0

    def grade(self, outcome: Outcome, curves: F64) -> Any:
        self.calls += 1
        return float((curves * moves_of(outcome)).sum()) * self.calls


class TellsItsCalls(CountsItsCalls):
    def grade(self, outcome: Outcome, curves: F64) -> Any:
        self.calls += 1
        return WindowGrade(float((curves * moves_of(outcome)).sum()), {"calls": float(self.calls)})


class Normalises(Unclaimed):
    """Divides by the largest move met so far: the same window twice in a row is paid alike."""

    def __init__(self) -> None:
        self.largest = 0.0

    def grade(self, outcome: Outcome, curves: F64) -> float:
        moves = moves_of(outcome)
        self.largest = max(self.largest, float(np.abs(moves).max()))
        return float((curves * moves).sum()) / self.largest if self.largest else 0.0


class TwoFunctions(Unclaimed):
    def grade_all(self, ys: F64, curves: F64) -> F64:
        return np.array([self.grade(Outcome(y, 1.0), c) * (1 + 1e-15) for y, c in zip(ys, curves, strict=True)])


class RowSums(Unclaimed):
    def grade(self, outcome: Outcome, curves: F64) -> Any:
        return (curves * moves_of(outcome)).sum(axis=1)


class Says(Unclaimed):
    def grade(self, outcome: Outcome, curves: F64) -> Any:
        return str(float((curves * moves_of(outcome)).sum()))


class GradeOfAnArray(Unclaimed):
    def grade(self, outcome: Outcome, curves: F64) -> Any:
        return WindowGrade((curves * moves_of(outcome)).sum(axis=1))


class PaysAnyMove(Unclaimed):
    def grade(self, outcome: Outcome, curves: F64) -> float:
        return float(np.abs(curves * moves_of(outcome)).sum())


class Inverted(Unclaimed):
    def grade(self, outcome: Outcome, curves: F64) -> float:
        return -float((curves * moves_of(outcome)).sum())


class Divides(Unclaimed):
    def grade(self, outcome: Outcome, curves: F64) -> WindowGrade:
        moves = moves_of(outcome)
        return WindowGrade(float((curves * moves).sum()), {"hits": float((curves * moves > 0).sum()), "calls": float((curves != 0).sum())})

    def diagnostics(self, parts: Mapping[str, float]) -> Mapping[str, float | None]:
        return {"accuracy": parts.get("hits", 0.0) / parts["calls"]} if parts else {}


class NamesWhatIsThere(Unclaimed):
    def grade(self, outcome: Outcome, curves: F64) -> WindowGrade:
        return WindowGrade(float((curves * moves_of(outcome)).sum()), {"up": 1.0} if outcome.y[-1] > 0 else {"down": 1.0})


class Floors(Honest):
    properties: ClassVar[frozenset[str]] = frozenset({"antisymmetric"})

    def grade(self, outcome: Outcome, curves: F64) -> float:
        return max(0.0, float((curves * moves_of(outcome)).sum()))


class Squashes(Honest):
    properties: ClassVar[frozenset[str]] = frozenset({"linear"})

    def grade(self, outcome: Outcome, curves: F64) -> float:
        return math.tanh(float((curves * moves_of(outcome)).sum()) / 1e4)


class LateCallsEarn(Honest):
    properties: ClassVar[frozenset[str]] = frozenset({"early_pays"})

    def grade(self, outcome: Outcome, curves: F64) -> float:
        t = np.arange(len(curves))[:, None] / len(curves)
        return float((curves * moves_of(outcome) * (1 + t)).sum())


class NearCallsEarn(Honest):
    properties: ClassVar[frozenset[str]] = frozenset({"reach_pays"})

    def grade(self, outcome: Outcome, curves: F64) -> float:
        steps = len(curves)
        reach = np.maximum(1, np.arange(steps + 1)[None, :] - np.arange(steps)[:, None])
        return float((curves * moves_of(outcome) / reach).sum())


class PaysForCalling(Honest):
    properties: ClassVar[frozenset[str]] = frozenset({"fair"})

    def grade(self, outcome: Outcome, curves: F64) -> float:
        return float((curves * moves_of(outcome)).sum() + 10.0 * np.abs(curves).sum())


MUTANTS = [
    (NoCallIsNotANumber, ["GR-01"]),
    (DividesByStake, ["GR-01"]),
    (PaysTheEntry, ["GR-01"]),
    (Exponential, ["GR-02"]),
    (UnboundParts, ["GR-02"]),
    (Clears, ["GR-03"]),
    (Draws, ["GR-03", "GR-04"]),
    (CountsItsCalls, ["GR-03", "GR-04"]),
    (TellsItsCalls, ["GR-03", "GR-04"]),
    (Normalises, ["GR-04"]),
    (TwoFunctions, ["GR-03"]),
    (RowSums, ["GR-05"]),
    (Says, ["GR-05"]),
    (GradeOfAnArray, ["GR-05"]),
    (PaysAnyMove, ["GR-06"]),
    (Inverted, ["GR-06"]),
    (Divides, ["GR-07"]),
    (NamesWhatIsThere, ["GR-07"]),
    (Floors, ["GR-08"]),
    (Squashes, ["GR-09"]),
    (LateCallsEarn, ["GR-10"]),
    (NearCallsEarn, ["GR-11"]),
    (PaysForCalling, ["GR-12"]),
]


def failing(grader: Any) -> list[str]:
    subject = subject_of("graders", grader)
    return [result.id for result in (judge(check, subject) for check in checks("graders")) if result.result == "fail"]


@pytest.mark.parametrize(("mutant", "ids"), MUTANTS, ids=lambda value: getattr(value, "__name__", ""))
def test_a_mutant_fails_its_check_and_no_other(mutant: type, ids: list[str]) -> None:
    """GR-01 to GR-12, PV-15."""
    assert failing(mutant) == ids


def test_the_honest_twin_fails_none() -> None:
    """Q-01: with every claim, and with none."""
    assert failing(Honest) == []
    assert failing(Unclaimed) == []


def test_a_grader_that_clears_what_it_is_given_fails_at_least_the_purity_check() -> None:
    """PV-15: the arrays come read-only, so it raises wherever it is asked."""
    assert "GR-03" in failing(ClearsBluntly)


def test_every_check_of_graders_has_a_mutant() -> None:
    """P-53."""
    own = {check.id for check in checks("graders") if check.id.startswith("GR-")}
    assert own == {one for _, ids in MUTANTS for one in ids}


def test_a_failure_says_what_was_given_what_was_expected_and_what_came() -> None:
    """Q-04."""
    subject = subject_of("graders", PaysAnyMove)
    (result,) = [judge(check, subject) for check in checks("graders") if check.id == "GR-06"]
    assert result.detail.startswith("GR-06 right beats wrong: y = +10 j, G 1: expected")
    assert "got 10.0 and 10.0" in result.detail


def test_a_claim_that_is_not_made_is_not_judged() -> None:
    """Q-02."""
    subject = subject_of("graders", Unclaimed)
    skipped = {result.id: result.detail for result in (judge(check, subject) for check in checks("graders")) if result.result == "skip"}
    assert list(skipped) == ["GR-08", "GR-09", "GR-10", "GR-11", "GR-12"]
    assert "does not claim linear" in skipped["GR-09"]
