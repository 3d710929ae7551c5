"""The official grader: its worked numbers, its properties, and the bits it keeps (grading.md 4 and 10, performance.md PF-20 to PF-22)."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blindcast.contracts import Grader
from blindcast.protocol import DIED, LATE, walk_answers
from blindcast.records import F64, Outcome
from blindcast_graders import EarlinessHorizon, grader_id, pairs, total_weight, weights
from blindcast_graders.kernel import paid, priced

Returns = Literal["window_bps", "simple_bps", "log_bps"]

A = [0, 10, 30]
B = [0, 12, 6, 24]
C = [0, 6, 12, 18, 24, 30, 36]
P = [0, 3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9]
N = None
NAN = float("nan")


def sparse(**at: object) -> list[object]:
    """Answers on P: `_5=1` is a 1 at anchor 5, None elsewhere."""
    return [at.get(f"_{anchor}") for anchor in range(15)]


def tile(sign: float, anchor: int) -> list[float]:
    return [sign] * 5 + [0.0] * (15 - anchor - 5)


def reward(y: list[int] | list[float], curves: F64, alpha: float = 1.0, returns: Returns = "window_bps") -> float:
    return EarlinessHorizon(alpha, returns).grade(Outcome(np.array(y, dtype=float), 1.0), curves).reward


def book_of(windows: int, steps: int, seed: int = 0) -> tuple[F64, F64]:
    """(ys, curves) of a random walk and random convictions."""
    rng = np.random.default_rng(seed)
    ys = np.concatenate([np.zeros((windows, 1)), np.cumsum(rng.normal(0, 10, (windows, steps)), axis=1)], axis=1)
    return ys, np.triu(rng.uniform(-1, 1, (windows, steps, steps + 1)), 1)


def literal(y: F64, c: F64, alpha: float, returns: str = "window_bps") -> float:
    """G-30 word by word."""
    steps, total = len(c), []
    for i in range(steps):
        for j in range(i + 1, steps + 1):
            ratio = (1 + y[j] / 1e4) / (1 + y[i] / 1e4)
            r = {"window_bps": y[j] - y[i], "simple_bps": 1e4 * (ratio - 1), "log_bps": 1e4 * math.log(ratio)}[returns]
            total.append(c[i, j] * r * (1 + alpha * (1 - i / steps)) * (j - i) / steps)
    return math.fsum(total)


VECTORS = [
    ("GV-01", A, [1, N], 1.0, 85),
    ("GV-02", A, [1, 1], 1.0, 85),
    ("GV-03", A, [1, N], 0.0, 45),
    ("GV-04", A, [1, N], 3.0, 165),
    ("GV-05", A, [1, N], 0.5, 65),
    ("GV-06", A, [N, 1], 1.0, 15),
    ("GV-07", A, [N, N], 1.0, 0),
    ("GV-08", A, [-1, N], 1.0, -85),
    ("GV-09", A, [0.25, N], 1.0, Fraction(85, 4)),
    ("GV-10", A, [1, 0.0], 1.0, 70),
    ("GV-11", A, [[1, -0.5], N], 1.0, Fraction(-55, 2)),
    ("GV-12", A, [[1, -0.5], 1], 1.0, -5),
    ("GV-13", A, [1, NAN], 1.0, 70),
    ("GV-14", A, [2.5, 1], 1.0, 15),
    ("GV-15", A, [[1], 1], 1.0, 15),
    ("GV-16", A, [1, [1, 1]], 1.0, 70),
    ("GV-17", A, [1 + 5e-10, N], 1.0, 85),
    ("GV-18", A, [ValueError(), 1], 1.0, 15),
    ("GV-19", A, [LATE, 1], 1.0, 0),
    ("GV-20", B, [1, N, N], 1.0, 82),
    ("GV-21", B, [N, 1, N], 1.0, 18),
    ("GV-22", B, [1, -1, 1], 1.0, 62),
    ("GV-23", B, [[1, 0, 0], [-1, 0], 1], 1.0, Fraction(58, 3)),
    ("GV-24", B, [[1, -0.5, 1], N, N], 1.0, 75),
    ("GV-25", B, [[0, 0, 1], N, N], 1.0, Fraction(208, 3)),
    ("GV-26", B, ["a", NAN, 7], 1.0, 0),
    ("GV-27", B, [1, -1, N], 1.0, 46),
    ("GV-28", B, [1, 0.0, N], 1.0, 64),
    ("GV-29", C, [1, N, N, N, N, N], 1.0, Fraction(1085, 3)),
    ("GV-30", C, [1, NAN, NAN, NAN, 1, 1], 1.0, 182),
    ("GV-31", C, [1, NAN, NAN, 1, NAN, NAN], 1.0, 203),
    ("GV-32", C, [1, 1, DIED, 1, 1, 1], 1.0, Fraction(1697, 6)),
    ("GV-33", C, [NAN, NAN, 1, N, N, N], 1.0, Fraction(473, 6)),
    ("GV-34", P, sparse(_0=1), 1.0, Fraction(70318, 225)),
    ("GV-35", P, sparse(_5=1), 1.0, Fraction(8948, 225)),
    ("GV-36", P, sparse(_0=tile(1, 0), _5=tile(-1, 5), _10=1), 1.0, Fraction(5414, 225)),
    ("GV-37", P, sparse(_0=0.5, _7=0.0), 1.0, Fraction(30868, 225)),
    ("GV-38", P, sparse(_0=1), 3.0, Fraction(44638, 75)),
]


@pytest.mark.parametrize(("y", "answers", "alpha", "expected"), [v[1:] for v in VECTORS], ids=[v[0] for v in VECTORS])
def test_the_worked_windows_earn_what_the_page_says(y: list[int], answers: list[object], alpha: float, expected: float) -> None:
    """GV-01 to GV-38 (G-00)."""
    exact = float(expected)
    assert reward(y, walk_answers(len(y) - 1, answers).curves, alpha) == pytest.approx(exact, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("y", "answers", "returns", "expected"),
    [
        ([0, 100, 200], [1, N], "window_bps", 575.0),
        ([0, 100, 200], [1, N], "simple_bps", 58000 / 101),
        ([0, 100, 200], [1, N], "log_bps", 569.4480777779),
        ([0, -50, 125], [1, -1], "log_bps", 67.5620180699),
    ],
    ids=["window", "GV-39", "GV-40", "GV-41"],
)
def test_the_three_kinds_of_return_pay_by_their_own_ratio(y: list[float], answers: list[object], returns: Returns, expected: float) -> None:
    """GV-39 to GV-41 (G-05)."""
    assert reward(y, walk_answers(2, answers).curves, 1.0, returns) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("returns", ["window_bps", "simple_bps", "log_bps"])
@pytest.mark.parametrize(("steps", "alpha"), [(1, 1.0), (2, 0.0), (15, 1.0), (15, 2.5), (60, 0.3)])
def test_the_reward_is_the_literal_sum(steps: int, alpha: float, returns: Returns) -> None:
    """G-30, G-05."""
    ys, curves = book_of(5, steps)
    got = EarlinessHorizon(alpha, returns).grade_all(ys, curves)
    for window in range(5):
        assert got[window] == pytest.approx(literal(ys[window], curves[window], alpha, returns), rel=1e-9, abs=1e-9)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 30), st.integers(1, 40), st.sampled_from(["window_bps", "simple_bps", "log_bps"]), st.randoms(use_true_random=False))
def test_a_window_has_the_same_bits_in_every_batch_order_and_layout(steps: int, windows: int, returns: Returns, dice: object) -> None:
    """PF-20, PF-21, BV-07."""
    ys, curves = book_of(windows, steps, seed=dice.randrange(1 << 30))  # type: ignore[attr-defined]  # hypothesis has no type for it
    grader = EarlinessHorizon(1.0, returns)
    batch = grader.grade_all(ys, curves)
    alone = [grader.grade(Outcome(y, 1.0), c).reward for y, c in zip(ys, curves, strict=True)]
    chunks = [grader.grade_all(ys[start : start + 7], curves[start : start + 7]) for start in range(0, windows, 7)]
    assert batch.tobytes() == np.array(alone).tobytes() == np.concatenate(chunks).tobytes()
    assert grader.grade_all(ys[::-1], curves[::-1])[::-1].tobytes() == batch.tobytes()
    assert grader.grade_all(np.asfortranarray(ys), np.asfortranarray(curves)).tobytes() == batch.tobytes()
    wide = np.zeros((windows, 2 * steps, 2 * steps + 2))
    wide[:, ::2, ::2] = curves
    assert grader.grade_all(ys, wide[:, ::2, ::2]).tobytes() == batch.tobytes()


def test_the_bits_hold_where_a_window_is_larger_than_a_block() -> None:
    """PF-21, PF-22: 400 steps are 80,200 cells, summed in stretches that depend on the grid alone."""
    ys, curves = book_of(5, 400)
    grader = EarlinessHorizon()
    batch = grader.grade_all(ys, curves)
    alone = [grader.grade_all(ys[w : w + 1], np.asfortranarray(curves[w : w + 1]))[0] for w in range(5)]
    assert batch.tobytes() == np.array(alone).tobytes()
    assert batch[3] == pytest.approx(literal(ys[3], curves[3], 1.0), rel=1e-9)


@pytest.mark.parametrize("windows", [1, 2, 133, 134, 300])
def test_the_bits_hold_across_block_borders_and_with_moves_priced_once(windows: int) -> None:
    """PF-20 to PF-22: 133 windows of 15 steps fill a block."""
    ys, curves = book_of(windows, 15)
    grader = EarlinessHorizon()
    batch = grader.grade_all(ys, curves)
    assert paid(priced(ys, 1.0, "window_bps"), curves).tobytes() == batch.tobytes()
    assert batch[-1] == grader.grade_all(ys[-1:], curves[-1:])[0]


def test_grading_leaves_read_only_arrays_as_they_were() -> None:
    """GR-03."""
    ys, curves = book_of(3, 15)
    before = ys.tobytes(), curves.tobytes()
    ys.flags.writeable = curves.flags.writeable = False
    EarlinessHorizon().grade_all(ys, curves)
    EarlinessHorizon().explain(ys, curves, ys, 3)
    assert (ys.tobytes(), curves.tobytes()) == before


def test_no_windows_and_unlike_shapes_are_told_apart() -> None:
    """Nothing earns nothing; numpy must not spread one window over many in silence."""
    assert EarlinessHorizon().grade_all(np.zeros((0, 4)), np.zeros((0, 3, 4))).shape == (0,)
    with pytest.raises(ValueError, match="curves must be"):
        EarlinessHorizon().grade_all(np.zeros((2, 4)), np.zeros((1, 3, 4)))


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 20), st.floats(0, 5), st.integers(0, 1 << 30), st.sampled_from(["window_bps", "simple_bps", "log_bps"]))
def test_pay_is_linear_antisymmetric_and_nothing_for_flat(steps: int, alpha: float, seed: int, returns: Returns) -> None:
    """G-33, GR-01, GR-08, GR-09."""
    ys, curves = book_of(4, steps, seed)
    _, others = book_of(4, steps, seed + 1)
    grader = EarlinessHorizon(alpha, returns)
    paid_, scale = grader.grade_all(ys, curves), 1 + np.abs(grader.grade_all(ys, curves))
    assert (grader.grade_all(ys, -curves) == -paid_).all()
    both = grader.grade_all(ys, curves + others)
    assert (np.abs(both - paid_ - grader.grade_all(ys, others)) <= 1e-9 * (scale + np.abs(both))).all()
    flat = grader.grade_all(ys, 0 * curves)
    assert not flat.any()
    assert not np.signbit(flat).any()
    assert not grader.grade_all(0 * ys, curves).any()


@pytest.mark.parametrize("returns", ["window_bps", "simple_bps", "log_bps"])
@pytest.mark.parametrize("steps", [1, 2, 15])
def test_the_claimed_properties_hold_for_every_kind_of_return(returns: Returns, steps: int) -> None:
    """GR-06, GR-10, GR-11: right beats wrong, early pays, reach pays."""
    grader = EarlinessHorizon(1.0, returns)
    up = np.arange(0.0, 10.0 * steps + 5.0, 10.0)[None]
    ones = np.triu(np.ones((1, steps, steps + 1)), 1)
    for path in (up, -up):
        assert np.sign(path[0, -1]) * grader.grade_all(path, ones)[0] > 0 > np.sign(path[0, -1]) * grader.grade_all(path, -ones)[0]
    late, soon = np.zeros((1, steps + 1)), np.full((1, steps + 1), 10.0)
    late[0, -1], soon[0, 0] = 10.0, 0.0
    singles = np.zeros((steps, steps, steps + 1))
    singles[np.arange(steps), np.arange(steps), -1] = 1
    early = grader.grade_all(np.repeat(late, steps, 0), singles)
    assert (np.diff(early) <= 0).all()
    singles = np.zeros((steps, steps, steps + 1))
    singles[np.arange(steps), 0, np.arange(1, steps + 1)] = 1
    assert (np.diff(grader.grade_all(np.repeat(soon, steps, 0), singles)) >= 0).all()


@pytest.mark.parametrize("returns", ["window_bps", "simple_bps", "log_bps"])
def test_no_skill_earns_nothing_on_the_mean(returns: Returns) -> None:
    """GR-12: 2,000 null windows, always long and a coin an anchor."""
    rng = np.random.default_rng(11)
    ys = np.concatenate([np.zeros((2000, 1)), np.cumsum(rng.normal(0, 10, (2000, 5)), axis=1)], axis=1)
    ones = np.triu(np.ones((2000, 5, 6)), 1)
    for curves in (ones, ones * rng.choice([-1.0, 1.0], (2000, 5, 1))):
        x = EarlinessHorizon(1.0, returns).grade_all(ys, curves)
        assert abs(x.mean()) <= 4 * x.std(ddof=1) / math.sqrt(len(x))


def test_huge_and_tiny_paths_earn_finite_numbers() -> None:
    """GR-02."""
    ones = np.triu(np.ones((1, 15, 16)), 1)
    for size in (1e6, 1e-12):
        assert np.isfinite(EarlinessHorizon().grade_all(np.linspace(0.0, size, 16)[None], ones)).all()


@pytest.mark.parametrize("fault", [ValueError("x"), DIED, LATE, NAN])
def test_a_crash_never_pays_more_than_going_flat(fault: object) -> None:
    """G-33, G-24."""
    flat = reward(C, walk_answers(6, [1, 1, 0.0, N, N, N]).curves)
    assert reward(C, walk_answers(6, [1, 1, fault, N, N, N]).curves) == flat


def test_a_task_adds_up_its_windows_and_keeps_its_denominator() -> None:
    """GV-107 (G-50)."""
    answers: list[list[object]] = [[1, N], [DIED, N], [N, -1]]
    got = [reward(A, walk_answers(2, answer).curves) for answer in answers]
    assert got == [85.0, 0.0, -15.0]


@pytest.mark.parametrize(
    ("steps", "alpha", "total"),
    [
        (1, 1.0, Fraction(2)),
        (2, 1.0, Fraction(15, 4)),
        (3, 1.0, Fraction(55, 9)),
        (15, 1.0, Fraction(3604, 45)),
        (90, 1.0, Fraction(1320683, 540)),
        (30, 0.5, Fraction(10261, 45)),
        (15, 0.0, Fraction(136, 3)),
        (15, 3.0, Fraction(748, 5)),
    ],
)
def test_the_weights_add_up_to_v(steps: int, alpha: float, total: Fraction) -> None:
    """GV-98, GV-99 (G-31)."""
    assert total_weight(steps, alpha) == pytest.approx(float(total), rel=1e-12)
    assert weights(steps, alpha).sum() == pytest.approx(float(total), rel=1e-12)
    assert not np.tril(weights(steps, alpha)).any()
    assert EarlinessHorizon(alpha).total_weight(steps) == total_weight(steps, alpha)


@pytest.mark.parametrize(("steps", "total", "mean"), [(1, 60.0, 30.0), (3, 125.6, 20.5), (15, 1319.5, 16.5), (90, 38162.6, 15.6)])
def test_straight_drift_reads_across_resolutions_as_a_weighted_mean(steps: int, total: float, mean: float) -> None:
    """G-31: 30 bps of straight drift, held from the start."""
    got = EarlinessHorizon().grade_all(np.linspace(0, 30, steps + 1)[None], np.triu(np.ones((1, steps, steps + 1)), 1))[0]
    assert got == pytest.approx(total, abs=0.051)
    assert got / total_weight(steps, 1.0) == pytest.approx(mean, abs=0.051)


@pytest.mark.parametrize(
    ("steps", "alpha", "returns", "expected"),
    [
        (15, 1, "window_bps", "earliness_x_horizon/1;G=15;alpha=1;returns=window_bps"),
        (30, 0.5, "log_bps", "earliness_x_horizon/1;G=30;alpha=0.5;returns=log_bps"),
        (15, 0.1 + 0.2, "window_bps", "earliness_x_horizon/1;G=15;alpha=0.30000000000000004;returns=window_bps"),
        (2, -0.0, "simple_bps", "earliness_x_horizon/1;G=2;alpha=0;returns=simple_bps"),
    ],
)
def test_the_id_carries_version_grid_alpha_and_return_kind(steps: int, alpha: float, returns: Returns, expected: str) -> None:
    """GV-94 to GV-96 (G-32, P-33)."""
    assert grader_id(steps, alpha, returns) == expected


@pytest.mark.parametrize("alpha", [-0.1, NAN, float("inf"), -float("inf"), True, "1", None, 10**400, 1j, [1.0]])
def test_an_alpha_that_is_no_finite_number_from_zero_up_is_refused(alpha: object) -> None:
    """GV-117 to GV-119, PV-13 (G-32)."""
    with pytest.raises(ValueError, match="must be"):
        EarlinessHorizon(alpha=alpha)  # type: ignore[arg-type]  # the point of the test


def test_zero_alpha_and_whole_alpha_are_taken() -> None:
    """GV-120."""
    assert EarlinessHorizon(alpha=0).alpha == 0.0
    assert EarlinessHorizon(alpha=2) == EarlinessHorizon(alpha=2.0)
    with pytest.raises(ValueError, match="must be >= 0"):
        EarlinessHorizon(alpha=-1)


@pytest.mark.parametrize("returns", ["bps", "", None, 1, ["log_bps"]])
def test_an_unknown_kind_of_return_is_refused(returns: object) -> None:
    """G-05."""
    with pytest.raises(ValueError, match="must be window_bps, simple_bps or log_bps"):
        EarlinessHorizon(returns=returns)  # type: ignore[arg-type]  # the point of the test


@pytest.mark.parametrize("returns", ["window_bps", "simple_bps", "log_bps"])
def test_pairs_hold_each_curve_on_each_path(returns: Returns) -> None:
    """Section 0: [a, b] is the curve of a on the path of b; the diagonal is the official reward, to the bit."""
    ys, curves = book_of(7, 6)
    made = pairs(ys, curves, 0.7, returns)
    assert made.shape == (7, 7)
    for a in range(7):
        for b in range(7):
            assert made[a, b] == pytest.approx(literal(ys[b], curves[a], 0.7, returns), rel=1e-9, abs=1e-9)
    grader = EarlinessHorizon(0.7, returns)
    assert np.diagonal(made).tobytes() == grader.grade_all(ys, curves).tobytes()
    assert grader.pairs(ys, curves).tobytes() == made.tobytes()


def test_the_formula_told_to_agents_follows_the_options() -> None:
    """FE-41: alpha and the return kind appear; no other number moves."""
    told = EarlinessHorizon().describe()
    assert EarlinessHorizon(alpha=2.5).describe() == told.replace("(1 + 1 * ", "(1 + 2.5 * ")
    assert "ln(" in EarlinessHorizon(returns="log_bps").describe()


def test_the_official_grader_is_a_grader() -> None:
    """P-40."""
    grader: Grader = EarlinessHorizon()
    assert (grader.version, grader.unit, grader.total) == (1, "bps", "sum")
    assert grader.properties == {"antisymmetric", "linear", "early_pays", "reach_pays", "fair"}


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 12), st.integers(0, 1 << 30), st.floats(0.01, 100))
def test_the_price_scale_has_no_say(steps: int, seed: int, scale: float) -> None:
    """G-33: y is made of price ratios, so prices times anything earn the same."""
    rng = np.random.default_rng(seed)
    mids = 100 * np.exp(np.cumsum(rng.normal(0, 1e-3, (3, steps + 1)), axis=1))
    _, curves = book_of(3, steps, seed)

    def earned(prices: F64) -> F64:
        return EarlinessHorizon().grade_all(1e4 * (prices - prices[:, :1]) / prices[:, :1], curves)

    assert earned(mids) == pytest.approx(earned(scale * mids), rel=1e-8, abs=1e-7)
