"""What stands, what a refusal does, and the sealed chain (grading.md section 3, GV-10 to GV-33)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from fractions import Fraction
from hashlib import sha256
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blindcast.protocol import DIED, LATE, Standing, Walk, link, walk_answers

A = (0, 10, 30)
B = (0, 12, 6, 24)
C = (0, 6, 12, 18, 24, 30, 36)
P = (0, 3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9)
N = None
NAN = float("nan")


def reward(y: tuple[int, ...], walk: Walk, alpha: int = 1) -> Fraction:
    """G-30, in exact arithmetic."""
    steps = len(y) - 1
    return sum(
        (
            Fraction(float(walk.curves[i, j])) * (y[j] - y[i]) * (1 + alpha * (1 - Fraction(i, steps))) * Fraction(j - i, steps)
            for i in range(steps)
            for j in range(i + 1, steps + 1)
        ),
        Fraction(0),
    )


def on_p(**answers: object) -> list[object]:
    return [answers.get(f"at{anchor}", N) for anchor in range(15)]


@pytest.mark.parametrize(
    ("vector", "y", "answers", "pay", "status", "refused"),
    [
        ("GV-01", A, [1, N], 85, "ok", []),
        ("GV-02", A, [1, 1], 85, "ok", []),
        ("GV-06", A, [N, 1], 15, "ok", []),
        ("GV-07", A, [N, N], 0, "ok", []),
        ("GV-08", A, [-1, N], -85, "ok", []),
        ("GV-09", A, [0.25, N], Fraction(85, 4), "ok", []),
        ("GV-10", A, [1, 0.0], 70, "ok", []),
        ("GV-11", A, [[1, -0.5], N], Fraction(-55, 2), "ok", []),
        ("GV-12", A, [[1, -0.5], 1], -5, "ok", []),
        ("GV-13", A, [1, NAN], 70, "degraded", [("not_finite", 1, 2)]),
        ("GV-14", A, [2.5, 1], 15, "degraded", [("out_of_range", 0, 1)]),
        ("GV-15", A, [[1], 1], 15, "degraded", [("wrong_length", 0, N)]),
        ("GV-16", A, [1, [1, 1]], 70, "degraded", [("wrong_length", 1, N)]),
        ("GV-17", A, [1 + 5e-10, N], 85, "ok", []),
        ("GV-18", A, [ValueError("no"), 1], 15, "degraded", [("exception", 0, N)]),
        ("GV-19", A, [LATE, 1], 0, "crashed", [("deadline", 0, N)]),
        ("GV-20", B, [1, N, N], 82, "ok", []),
        ("GV-21", B, [N, 1, N], 18, "ok", []),
        ("GV-22", B, [[1, -1, 1], N, N], None, "ok", []),
        ("GV-23", B, [[1, 0, 0], [-1, 0], 1], Fraction(58, 3), "ok", []),
        ("GV-24", B, [[1, -0.5, 1], N, N], 75, "ok", []),
        ("GV-25", B, [[0, 0, 1], N, N], Fraction(208, 3), "ok", []),
        ("GV-26", B, ["a", NAN, 7], 0, "crashed", [("wrong_type", 0, N), ("not_finite", 1, 2), ("out_of_range", 2, 3)]),
        ("GV-27", B, [1, -1, N], 46, "ok", []),
        ("GV-28", B, [1, 0.0, N], 64, "ok", []),
        ("GV-29", C, [1, N, N, N, N, N], Fraction(1085, 3), "ok", []),
        ("GV-30", C, [1, NAN, NAN, NAN, 1, 1], 182, "crashed", [("not_finite", 1, 2), ("not_finite", 2, 3), ("not_finite", 3, 4)]),
        ("GV-31", C, [1, NAN, NAN, 1, NAN, NAN], 203, "degraded", [("not_finite", a, a + 1) for a in (1, 2, 4, 5)]),
        ("GV-32", C, [1, 1, DIED, 1, 1, 1], Fraction(1697, 6), "crashed", [("died", 2, N)]),
        ("GV-33", C, [NAN, NAN, 1, N, N, N], Fraction(473, 6), "degraded", [("not_finite", 0, 1), ("not_finite", 1, 2)]),
        ("GV-34", P, on_p(at0=1), Fraction(70318, 225), "ok", []),
        ("GV-35", P, on_p(at5=1), Fraction(8948, 225), "ok", []),
        ("GV-36", P, on_p(at0=[1] * 5 + [0] * 10, at5=[-1] * 5 + [0] * 5, at10=1), Fraction(5414, 225), "ok", []),
        ("GV-37", P, on_p(at0=0.5, at7=0.0), Fraction(30868, 225), "ok", []),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_what_answers_earn(
    vector: str, y: tuple[int, ...], answers: list[object], pay: Any, status: str, refused: list[tuple[str, int, int | None]]
) -> None:
    """GV-01 to GV-37."""
    walk = walk_answers(len(y) - 1, answers)
    assert (walk.status, walk.refused) == (status, refused)
    assert pay is None or reward(y, walk) == pay


def test_three_numbers_at_the_start() -> None:
    """GV-22: [1, -1, 1], one number an anchor."""
    assert reward(B, walk_answers(3, [1, -1, 1])) == 62


@pytest.mark.parametrize(("alpha", "pay"), [(0, 45), (3, 165)])
def test_alpha_pays_for_earliness(alpha: int, pay: int) -> None:
    """GV-03, GV-04."""
    assert reward(A, walk_answers(2, [1, N]), alpha) == pay


def test_a_window_that_is_over_is_asked_no_further() -> None:
    """G-25, GV-19: the answer after a deadline is never asked for."""

    def answers() -> Iterator[object]:
        yield 1
        yield LATE
        raise AssertionError("asked again")

    assert walk_answers(6, answers()).status == "crashed"


def test_none_is_a_good_answer_and_ends_a_streak() -> None:
    """G-24: and it keeps flat, it does not bring the old curve back."""
    walk = walk_answers(6, [1, NAN, NAN, N, NAN, NAN])
    assert walk.status == "degraded"
    assert not walk.curves[1:].any()


def test_a_refusal_in_a_class_or_an_instance_is_an_exception() -> None:
    """G-23: SystemExit and KeyboardInterrupt included."""
    assert [code for code, _, _ in walk_answers(3, [SystemExit, KeyboardInterrupt(), 1]).refused] == ["exception", "exception"]


def test_curves_are_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        walk_answers(2, [1, N]).curves[0, 1] = 5.0


ANSWERS = st.one_of(
    st.none(),
    st.floats(-1, 1),
    st.sampled_from([NAN, 2.0, "a", True, RuntimeError("x"), LATE, DIED]),
    st.lists(st.floats(-1, 1), max_size=8),
)


def naive(steps: int, answers: list[Any]) -> list[list[float]]:
    """G-21, G-24 and G-25 read literally, over cells."""
    table = [[0.0] * (steps + 1) for _ in range(steps)]
    standing = [0.0] * (steps + 1)
    streak = 0
    for anchor, answer in enumerate(answers[:steps]):
        remaining = steps - anchor
        if answer is None:
            streak = 0
        elif isinstance(answer, list) and len(answer) == remaining:
            streak = 0
            standing[anchor + 1 :] = answer
        elif isinstance(answer, float) and abs(answer) <= 1:
            streak = 0
            standing[anchor + 1 :] = [answer] * remaining
        else:
            streak += 1
            standing = [0.0] * (steps + 1)
        table[anchor][anchor + 1 :] = standing[anchor + 1 :]
        if streak == 3 or answer is LATE or answer is DIED:
            break
    return table


@settings(deadline=None, max_examples=300)
@given(st.integers(1, 8), st.lists(ANSWERS, min_size=8, max_size=8))
def test_a_commitment_stands_until_it_is_replaced(steps: int, answers: list[Any]) -> None:
    """G-21, G-24, G-25: against a reading of the rules cell by cell."""
    assert (walk_answers(steps, answers).curves == np.array(naive(steps, answers))).all()


@settings(deadline=None)
@given(
    st.integers(1, 8),
    st.lists(st.one_of(st.none(), st.floats(-1, 1)), min_size=8, max_size=8),
    st.integers(0, 7),
    st.sampled_from([DIED, LATE]),
)
def test_a_crash_never_pays_more_than_going_flat(steps: int, answers: list[Any], at: int, ending: object) -> None:
    """G-33: it earns what 0.0 from that anchor on would, to the bit."""
    crashed = walk_answers(steps, [*answers[:at], ending, *answers[at:]])
    flat = walk_answers(steps, [*answers[:at], *[0.0] * 8])
    assert crashed.curves.tobytes() == flat.curves.tobytes()


@settings(deadline=None)
@given(st.integers(1, 8), st.lists(ANSWERS, min_size=8, max_size=8), st.integers(0, 7))
def test_a_refused_answer_is_a_committed_zero(steps: int, answers: list[Any], at: int) -> None:
    """G-24: as if 0.0 had been committed, while the window goes on."""
    refused = walk_answers(steps, [*answers[:at], "no", *answers[at + 1 :]])
    flat = walk_answers(steps, [*answers[:at], 0.0, *answers[at + 1 :]])
    if "crashed" not in (refused.status, flat.status):
        assert refused.curves.tobytes() == flat.curves.tobytes()


def test_a_link_is_the_hash_of_its_fields() -> None:
    """DESIGN 4: previous link, ordinal and anchor as u32, kind and code, the standing curve, the prefix's digest."""
    curve = struct.pack("<2d", 0.5, -1.0)
    expected = sha256(bytes(32) + b"\x03\0\0\0" + b"\x01\0\0\0" + b"refused:not_finite" + curve + b"\7" * 32).digest()
    assert link(bytes(32), 3, 1, b"refused:not_finite", curve, b"\7" * 32) == expected


def test_a_standing_curve_has_a_tail_per_anchor() -> None:
    """G-27: what stands after the answer, knots i+1..G."""
    standing = Standing(3)
    standing.commit(0, [0.1, 0.2, 0.3])
    standing.commit(1, None)
    standing.refuse(2, "not_finite", 0)
    assert standing.curves().tolist() == [[0, 0.1, 0.2, 0.3], [0, 0, 0.2, 0.3], [0, 0, 0, 0]]
    assert (standing.status, standing.refused) == ("degraded", [("not_finite", 2, 3)])


def test_a_walk_unpacks_in_the_order_of_the_page() -> None:
    """Section 0: Walk(curves, refused, status)."""
    curves, refused, status = walk_answers(2, [1, float("nan")])
    assert (curves.tolist(), refused, status) == ([[0.0, 1.0, 1.0], [0.0, 0.0, 0.0]], [("not_finite", 1, 2)], "degraded")
