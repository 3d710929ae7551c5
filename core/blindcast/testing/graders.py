"""GR-01 to GR-12: what a grader must do so that a reward can be trusted (conformance.md, plugins.md 6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

import numpy as np

from blindcast.contracts import Grader
from blindcast.records import F64, Outcome, WindowGrade, read_only
from blindcast.testing.kit import Check, Subject

__all__ = ["CHECKS"]

STEPS: Final = (1, 2, 15)  # G of the checks that do not need one of their own
SCALE_BPS: Final = 10.0
CLOSE: Final = 1e-9  # relative, of GR-08 and GR-09
NULL_SEED, NULL_WINDOWS, NULL_STEPS, NULL_SD_BPS = 11, 2_000, 5, 10.0  # GR-12
STANDARD_ERRORS: Final = 4.0
LARGEST_BPS, SMALLEST_BPS = 1e6, 1e-12  # GR-02


def _frozen(values: Any) -> F64:
    array: F64 = np.array(values, dtype=np.float64)
    read_only(array)
    return array


def _spread(conviction: Any, steps: int) -> F64:
    """F64[G, G+1]: `conviction`, a number or a table, in every cell that counts and 0 where knot <= anchor."""
    return _frozen(np.triu(np.broadcast_to(conviction, (steps, steps + 1)), k=1))


def _one_cell(steps: int, anchor: int, knot: int) -> F64:
    table = np.zeros((steps, steps + 1))
    table[anchor, knot] = 1.0
    return _frozen(table)


def _drawn(seed: int, steps: int) -> tuple[F64, F64]:
    """A path of sd 10 a step and curves in [-1, 1], both drawn."""
    rng = np.random.default_rng(seed)
    path = np.concatenate([[0.0], np.cumsum(rng.normal(0.0, SCALE_BPS, steps))])
    return _frozen(path), _spread(rng.uniform(-1.0, 1.0, (steps, steps + 1)), steps)


def _grade(grader: Grader, path: F64, curves: F64) -> object:
    return grader.grade(Outcome(path, SCALE_BPS), curves)


def _reward(graded: object) -> float:
    """The number of a grade, whatever shape it has: its type is GR-05's matter alone."""
    value = graded.reward if isinstance(graded, WindowGrade) else graded
    return float(np.sum(np.asarray(value, dtype=np.float64)))


def _pay(grader: Grader, path: F64, curves: F64) -> float:
    return _reward(_grade(grader, path, curves))


def _told(path: F64, curves: F64) -> str:
    return f"y {path.tolist()}, curves {curves.tolist()}" if len(path) <= 4 else f"G {len(path) - 1}, y {path.tolist()}"


def _paths(steps: int) -> Iterator[F64]:
    """Nine paths of G steps: flat, straight, at once, at the end, to and fro, drawn, bent, tiny."""
    j = np.arange(steps + 1, dtype=np.float64)
    later = np.where(j > 0, 1.0, 0.0)
    drawn, _ = _drawn(1, steps)
    shapes = (0.0 * j, 10 * j, -10 * j, 25 * later, 25.0 * (j == steps), 8.0 * (j % 2), drawn, -2.0 * j**2, SMALLEST_BPS * j)
    yield from (_frozen(shape) for shape in shapes)


def flat_earns_nothing(subject: Subject) -> None:
    """GR-01."""
    grader = subject.make()
    for steps in STEPS:
        flat = _spread(0.0, steps)
        for path in _paths(steps):
            got = _pay(grader, path, flat)
            assert got == 0.0, f"curves all 0, {_told(path, flat)}: expected exactly 0.0, got {got!r}"


def is_finite(subject: Subject) -> None:
    """GR-02: prices stay positive, so no path falls below -1e4 bps."""
    grader = subject.make()
    for steps in STEPS:
        share = np.arange(steps + 1, dtype=np.float64) / steps
        jumps = np.where(np.arange(steps + 1) % 2 == 1, 1.0, 0.0)
        for path in (LARGEST_BPS * share, LARGEST_BPS * jumps, SMALLEST_BPS * share, -SMALLEST_BPS * share, -9_999.0 * share):
            for conviction in (1.0, -1.0):
                y, curves = _frozen(path), _spread(conviction, steps)
                graded = _grade(grader, y, curves)
                numbers = [_reward(graded), *(graded.parts.values() if isinstance(graded, WindowGrade) else ())]
                assert np.isfinite(numbers).all(), (
                    f"convictions {conviction:+.0f}, {_told(y, curves)}: expected finite numbers, got {numbers}"
                )


def _bits(graded: object) -> tuple[str, ...]:
    """Reward and parts as text that tells every bit."""
    parts = graded.parts if isinstance(graded, WindowGrade) else {}
    return (repr(_reward(graded)), *(f"{name} {float(value)!r}" for name, value in sorted(parts.items())))


def is_pure(subject: Subject) -> None:
    """GR-03: one object, asked twice; `grade_all` is the same function."""
    grader = subject.make()
    for steps in STEPS:
        path, curves = _drawn(3 + steps, steps)
        before = path.tobytes(), curves.tobytes()
        first, second = _bits(_grade(grader, path, curves)), _bits(_grade(grader, path, curves))
        assert first == second, f"the same input twice, {_told(path, curves)}: expected equal bits, got {first} and {second}"
        assert (path.tobytes(), curves.tobytes()) == before, f"{_told(path, curves)}: expected y and curves unchanged, got them overwritten"
        grade_all = getattr(grader, "grade_all", None)
        if grade_all is not None:
            every = np.asarray(grade_all(_frozen([path, path]), _frozen([curves, curves])), dtype=np.float64)
            same = [repr(value) for value in every.tolist()] == [first[0]] * 2
            assert same, f"grade_all, {_told(path, curves)}: expected {first[0]} twice, got {every.tolist()}"


def has_no_memory(subject: Subject) -> None:
    """GR-04: six windows, forward by one object and backward by another."""
    one, other = subject.make(), subject.make()
    forward = [_bits(_grade(one, *_drawn(seed, 15))) for seed in range(20, 26)]
    backward = [_bits(_grade(other, *_drawn(seed, 15))) for seed in reversed(range(20, 26))][::-1]
    differs = [(seed, a, b) for seed, a, b in zip(range(20, 26), forward, backward, strict=True) if a != b]
    said = "six windows (seeds 20 to 25, G 15), forward and backward: expected equal grades"
    assert not differs, f"{said}, got {differs[0][1]} and {differs[0][2]} for seed {differs[0][0]}"


def pays_a_real_number(subject: Subject) -> None:
    """GR-05."""
    grader = subject.make()
    for steps in STEPS:
        path, curves = _drawn(5, steps)
        graded = _grade(grader, path, curves)
        value = graded.reward if isinstance(graded, WindowGrade) else graded
        is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
        assert is_number, f"{_told(path, curves)}: expected one real number or a WindowGrade of one, got {type(value).__name__} {value!r}"


def right_beats_wrong(subject: Subject) -> None:
    """GR-06."""
    grader = subject.make()
    for steps in STEPS:
        for sign in (1.0, -1.0):
            path = _frozen(sign * 10.0 * np.arange(steps + 1))
            right, wrong = (_pay(grader, path, _spread(call, steps)) for call in (sign, -sign))
            said = f"y = {sign * 10:+.0f} j, G {steps}: expected {sign:+.0f} everywhere to earn more than {-sign:+.0f}"
            assert right > wrong, f"{said}, got {right} and {wrong}"


def parts_hold(subject: Subject) -> None:
    """GR-07."""
    grader = subject.make()
    kept: Mapping[str, float] | None = None
    for seed in range(6):
        path, curves = _drawn(70 + seed, 15)
        graded = _grade(grader, path, curves)
        parts: Mapping[str, float] = graded.parts if isinstance(graded, WindowGrade) else {}
        bad = {name: value for name, value in parts.items() if not np.isfinite(value)}
        assert not bad, f"seed {70 + seed}, {_told(path, curves)}: expected finite parts, got {bad}"
        assert kept is None or set(parts) == set(kept), f"seed {70 + seed}: expected the parts {sorted(kept or ())}, got {sorted(parts)}"
        kept = parts
    diagnostics = getattr(grader, "diagnostics", None)
    if diagnostics is None:
        return  # CO-04's matter
    zeros = dict.fromkeys(kept or (), 0.0)
    said = diagnostics(zeros)
    bad = {name: value for name, value in said.items() if value is not None and not np.isfinite(value)}
    assert not bad, f"diagnostics of {zeros}: expected None or finite numbers, got {bad}"


def _assert_close(what: str, expected: float, got: float, size: float) -> None:
    assert abs(got - expected) <= CLOSE * max(size, abs(expected), abs(got)), f"{what}: expected {expected!r}, got {got!r}"


def sign_flips(subject: Subject) -> None:
    """GR-08."""
    grader = subject.make()
    for seed in range(8):
        path, curves = _drawn(80 + seed, (1, 2, 15, 15)[seed % 4])
        one, other = _pay(grader, path, curves), _pay(grader, path, _frozen(-curves))
        _assert_close(f"reward(-c), {_told(path, curves)}", -one, other, abs(one))


def adds_up(subject: Subject) -> None:
    """GR-09."""
    grader = subject.make()
    for seed in range(8):
        path, c = _drawn(90 + seed, (1, 2, 15, 15)[seed % 4])
        _, d = _drawn(190 + seed, len(path) - 1)
        c, d = _frozen(c / 2), _frozen(d / 2)
        one, other = _pay(grader, path, c), _pay(grader, path, d)
        _assert_close(f"reward(c + d), {_told(path, c)}", one + other, _pay(grader, path, _frozen(c + d)), abs(one) + abs(other))


def _never_less(rewards: list[float], what: Callable[[int], str]) -> None:
    for k, (less, more) in enumerate(pairwise(rewards)):
        assert more >= less - CLOSE * abs(less), f"{what(k)}: expected at least {less!r}, got {more!r}"


def early_pays(subject: Subject) -> None:
    """GR-10: cells (i, G), the latest first."""
    grader = subject.make()
    for steps in (2, 15):
        path = _frozen([0.0] * steps + [10.0])
        rewards = [_pay(grader, path, _one_cell(steps, anchor, steps)) for anchor in range(steps - 1, -1, -1)]
        _never_less(rewards, lambda k, g=steps: f"y flat, then +10; one cell ({g - 2 - k}, {g}) against ({g - 1 - k}, {g})")  # type: ignore[misc]  # a defaulted lambda


def reach_pays(subject: Subject) -> None:
    """GR-11: cells (0, j), the nearest first."""
    grader = subject.make()
    for steps in (2, 15):
        path = _frozen([0.0] + [10.0] * steps)
        rewards = [_pay(grader, path, _one_cell(steps, 0, knot)) for knot in range(1, steps + 1)]
        _never_less(rewards, lambda k: f"y +10 at once, then flat; one cell (0, {k + 2}) against (0, {k + 1})")


def is_fair(subject: Subject) -> None:
    """GR-12: 2,000 null windows, seed 11, G 5, sd 10; a coin is tossed for every cell."""
    grader = subject.make()
    rng = np.random.default_rng(NULL_SEED)
    steps = rng.normal(0.0, NULL_SD_BPS, (NULL_WINDOWS, NULL_STEPS))
    paths = np.concatenate([np.zeros((NULL_WINDOWS, 1)), np.cumsum(steps, axis=1)], axis=1)
    coins = rng.choice([-1.0, 1.0], (NULL_WINDOWS, NULL_STEPS, NULL_STEPS + 1))
    long = _spread(1.0, NULL_STEPS)
    for name, curves in (("always-long", [long] * NULL_WINDOWS), ("coin", [_spread(coin, NULL_STEPS) for coin in coins])):
        rewards = np.array([_pay(grader, _frozen(path), curve) for path, curve in zip(paths, curves, strict=True)])
        mean, error = float(rewards.mean()), float(rewards.std(ddof=1) / np.sqrt(NULL_WINDOWS))
        said = f"{NULL_WINDOWS} null windows (seed {NULL_SEED}, G {NULL_STEPS}, sd {NULL_SD_BPS:.0f}), {name}"
        assert abs(mean) <= STANDARD_ERRORS * error, f"{said}: expected a mean within {STANDARD_ERRORS * error:.4g} of 0, got {mean:.4g}"


CHECKS: tuple[Check, ...] = (
    Check("GR-01", "flat earns nothing", flat_earns_nothing),
    Check("GR-02", "finite", is_finite),
    Check("GR-03", "pure", is_pure),
    Check("GR-04", "no memory", has_no_memory),
    Check("GR-05", "a real number", pays_a_real_number),
    Check("GR-06", "right beats wrong", right_beats_wrong),
    Check("GR-07", "parts hold", parts_hold),
    Check("GR-08", "sign flips [antisymmetric]", sign_flips, claim="antisymmetric"),
    Check("GR-09", "adds up [linear]", adds_up, claim="linear"),
    Check("GR-10", "early pays [early_pays]", early_pays, claim="early_pays"),
    Check("GR-11", "reach pays [reach_pays]", reach_pays, claim="reach_pays"),
    Check("GR-12", "fair [fair]", is_fair, claim="fair"),
)
