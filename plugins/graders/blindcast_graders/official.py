"""The official grader, earliness x horizon: early and far-reaching correct calls are paid more (G-30 to G-33)."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from attrs import Attribute, field, frozen

from blindcast.records import F64, Outcome, WindowGrade
from blindcast_graders.explain import explain
from blindcast_graders.kernel import Returns, cells_of, checked, paid, priced, rewards, total_weight
from blindcast_graders.segments import PARTS, from_parts, window_parts

__all__ = ["EarlinessHorizon", "grader_id", "pairs"]

PAIR_CELLS = 4_000_000  # 32 MB of float64: how much of the curves `pairs` packs at once


def _check_alpha(_grader: object, _attribute: "Attribute[Any]", value: object) -> None:
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise ValueError(f"must be a number, got {value!r}")
    try:
        finite = math.isfinite(value)
    except OverflowError:  # an integer beyond float64
        finite = False
    if not finite:
        raise ValueError(f"must be a finite number, got {value!r}")
    if value < 0:
        raise ValueError(f"must be >= 0, got {value!r}")


def _check_returns(_grader: object, _attribute: "Attribute[Any]", value: object) -> None:
    if not isinstance(value, str) or value not in ("window_bps", "simple_bps", "log_bps"):
        raise ValueError(f"must be window_bps, simple_bps or log_bps, got {value!r}")


@frozen
class EarlinessHorizon:
    """Pay the sum over i < j of c * r * w, w = (1 + alpha * (1 - i/G)) * (j - i)/G, in bps (G-30).

    `alpha` says how much more an early call earns, `returns` how the move from anchor i to knot j is measured (G-05).
    With `log_bps` a martingale price loses half its variance, some thousandths of a bps a step: `fair` holds up to that.
    """

    version: ClassVar[int] = 1
    unit: ClassVar[str] = "bps"
    total: ClassVar[Literal["sum", "mean"]] = "sum"
    properties: ClassVar[frozenset[str]] = frozenset({"antisymmetric", "linear", "early_pays", "reach_pays", "fair"})

    alpha: float = field(default=1.0, validator=_check_alpha)
    returns: Returns = field(default="window_bps", validator=_check_returns)  # pyright: ignore[reportAssignmentType]  # it widens the literal

    def grade(self, outcome: Outcome, curves: F64) -> WindowGrade:
        """One window's reward in bps, and the parts of its diagnostics; `curves` F64[G, G+1]."""
        ys, cube = checked(np.asarray(outcome.y)[None], np.asarray(curves)[None])
        parts = dict(zip(PARTS, window_parts(ys, cube)[0].tolist(), strict=True))
        return WindowGrade(reward=float(self.grade_all(ys, cube)[0]), parts=parts)

    def grade_all(self, ys: F64, curves: F64) -> F64:
        """F64[W] in bps for `ys` F64[W, G+1], `curves` F64[W, G, G+1]; the bits of `grade`, in any batch (PF-20, PF-21)."""
        return rewards(ys, curves, self.alpha, self.returns)

    def parts_all(self, ys: F64, curves: F64) -> Mapping[str, float]:
        """The parts of all windows, summed: what `diagnostics` is made of, in one pass."""
        ys, curves = checked(ys, curves)
        return dict(zip(PARTS, window_parts(ys, curves).sum(axis=0).tolist(), strict=True))

    def diagnostics(self, parts: Mapping[str, float]) -> Mapping[str, float | None]:
        """The six diagnostics of G-40 to G-42 from parts summed over windows."""
        return from_parts(parts)

    def pairs(self, ys: F64, curves: F64) -> F64:
        """F64[n, n]: [a, b] is the reward of the curves of target a on the path of target b."""
        return pairs(ys, curves, self.alpha, self.returns)

    def total_weight(self, steps: int) -> float:
        """V of G-31: a task's reward divided by V and by its targets is `reward_wmean_bps`."""
        return total_weight(steps, self.alpha)

    def explain(self, ys: F64, curves: F64, warmup_ys: F64, trials: int) -> Mapping[str, Any]:
        """`reward_wmean_bps`, `baselines`, `waterfall`, `concentration` of the grade object (G-43 to G-45, G-90).

        `companion` and `e_value` are None until they are built.
        """
        return explain(ys, curves, warmup_ys, trials, self.alpha, self.returns)

    def describe(self) -> str:
        """The formula in words and signs, for the prompt of an agent."""
        move = {
            "window_bps": "y_j - y_i",
            "simple_bps": "1e4 * ((1 + y_j/1e4) / (1 + y_i/1e4) - 1)",
            "log_bps": "1e4 * ln((1 + y_j/1e4) / (1 + y_i/1e4))",
        }[self.returns]
        alpha = _number(self.alpha)
        return (
            f"reward_bps = sum over anchors i < knots j of c[i,j] * r(i,j) * w(i,j), with r(i,j) = {move} in bps and\n"
            f"w(i,j) = (1 + {alpha} * (1 - i/G)) * (j - i)/G. c[i,j] in [-1, 1] is the conviction for knot j that stands at anchor i.\n"
            "Calls that are right earn more the earlier they stand and the farther they reach; wrong ones lose as much.\n"
            "A commitment stands at every later anchor until it is replaced. A task's reward is the sum over its targets."
        )


def _number(value: float) -> str:
    """Shortest text that reads back as `value`, without `.0`; -0.0 is 0."""
    return repr(float(value) + 0.0).removesuffix(".0")


def grader_id(steps: int, alpha: float = 1.0, returns: Returns = "window_bps") -> str:
    """The grade's identity (G-32): `earliness_x_horizon/1;G=15;alpha=1;returns=window_bps`."""
    grader = EarlinessHorizon(alpha, returns)
    return f"earliness_x_horizon/{grader.version};G={steps};alpha={_number(grader.alpha)};returns={grader.returns}"


def pairs(ys: F64, curves: F64, alpha: float = 1.0, returns: Returns = "window_bps") -> F64:
    """F64[n, n] in bps: [a, b] is the reward of the curves of target a on the path of target b.

    The diagonal holds the official rewards, bit for bit; the rest is made by BLAS, for nulls that allow for rounding (G-62).
    """
    ys, curves = checked(ys, curves)
    targets, steps = curves.shape[:2]
    place = cells_of(steps).place
    moves, made = priced(ys, alpha, returns), np.zeros((targets, targets))
    stretch = max(1, PAIR_CELLS // max(1, targets))
    for start in range(0, len(place), stretch):
        convictions = curves.reshape(targets, -1)[:, place[start : start + stretch]]
        made += convictions @ moves[:, start : start + stretch].T
    np.fill_diagonal(made, paid(moves, curves))
    return made
