"""What counts as an answer (grading.md section 3, GV-64 to GV-85)."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blindcast.answers import Refused, flatten
from blindcast.protocol import bound, read_commitment


def refusal_of(value: object, remaining: int) -> tuple[str, int | None]:
    with pytest.raises(Refused) as caught:
        read_commitment(value, remaining)
    return caught.value.code, caught.value.position


class Lying(float):
    """A float whose methods say something else than it stores."""

    def __float__(self) -> float:
        return 7.0

    def __add__(self, other: object) -> float:
        return 7.0

    def __pos__(self) -> float:
        return 7.0

    def __le__(self, other: object) -> bool:
        return True

    def __ge__(self, other: object) -> bool:
        return True


class Count(enum.IntEnum):
    one = 1


TAKEN: list[tuple[object, list[float]]] = [
    (1, [1, 1, 1]),  # GV-64
    (np.float32(0.5), [0.5, 0.5, 0.5]),  # GV-65
    (pd.Series([0.1, 0.2, 0.3], index=[9, 8, 7]), [0.1, 0.2, 0.3]),  # GV-66: by position
    (np.array([1, 0, -1]), [1, 0, -1]),  # GV-67
    (-1.0000000005, [-1, -1, -1]),  # GV-68
    (-0.0, [0, 0, 0]),  # GV-69
    (np.array(0.25), [0.25] * 3),  # GV-80
    ((1, 0.5, np.int8(-1)), [1, 0.5, -1]),
    ([np.array(0.5), np.array(1), 0], [0.5, 1, 0]),
    (Lying(0.5), [0.5] * 3),
    ([Lying(0.5), 0, 0], [0.5, 0, 0]),
    (Count.one, [1, 1, 1]),
    (np.float16(0.5), [0.5] * 3),
    (np.longdouble("0.5"), [0.5] * 3),
    (np.uint8(1), [1] * 3),
    (np.array([0.1, 0.2, 0.3], dtype=">f8"), [0.1, 0.2, 0.3]),
    (np.array([9.0, 0.1, 9.0, 0.2, 9.0, 0.3])[1::2], [0.1, 0.2, 0.3]),
    (pd.Series([1, 0, -1], dtype="Int64"), [1, 0, -1]),
    (pd.Series([0.1, 0.2, 0.3], dtype="Float64"), [0.1, 0.2, 0.3]),
    (1.000000001, [1, 1, 1]),
]

NOT_TAKEN: list[tuple[object, str, int | None]] = [
    (True, "wrong_type", None),  # GV-70
    ("1", "wrong_type", None),  # GV-71
    ([[1, 1, 1]], "wrong_type", 0),  # GV-72
    ([], "wrong_length", None),  # GV-73
    ([1, float("nan"), 5], "not_finite", 1),  # GV-74
    ([None, 1, 1], "wrong_type", 0),  # GV-75
    (10**400, "not_finite", 0),  # GV-76
    (np.float32(1.0000001), "out_of_range", 0),  # GV-77
    (range(3), "wrong_type", None),  # GV-78
    (np.ones((3, 1)), "wrong_length", None),  # GV-79
    ((x for x in [1, 1, 1]), "wrong_type", None),  # GV-81
    (np.array([1, 0, 1], dtype=object), "wrong_type", None),  # GV-82
    ([1, "x"], "wrong_type", 1),  # GV-83: before the length
    (np.array([1.0]), "wrong_length", None),  # GV-84
    (np.array([True, False, True]), "wrong_type", None),  # GV-85
    ([1], "wrong_length", None),  # one value in a list is not spread
    ([1, 1, 1, 1], "wrong_length", None),
    (b"1", "wrong_type", None),
    (1 + 0j, "wrong_type", None),
    (np.complex128(1), "wrong_type", None),
    (Decimal("0.5"), "wrong_type", None),
    (Fraction(1, 2), "wrong_type", None),
    ({0: 1, 1: 1, 2: 1}, "wrong_type", None),
    ({1, 0, -1}, "wrong_type", None),
    (np.bool_(True), "wrong_type", None),
    ([1, np.bool_(False), 1], "wrong_type", 1),
    (np.array(True), "wrong_type", None),
    (np.timedelta64(1, "s"), "wrong_type", None),
    ([np.timedelta64(1, "s"), 1, 1], "wrong_type", 0),
    (np.datetime64("2020-01-01"), "wrong_type", None),
    (np.array([1, 0, 1], dtype="m8[s]"), "wrong_type", None),
    (pd.Timedelta(1), "wrong_type", None),
    (pd.Series([True, False, True]), "wrong_type", None),
    (pd.Series([True, None, True], dtype="boolean"), "wrong_type", None),
    (pd.Series([1, 0, 1], dtype=object), "wrong_type", None),
    (pd.Series([1, 0, 1], dtype="m8[ns]"), "wrong_type", None),
    (pd.Index([1.0, 0.0, 1.0]), "wrong_type", None),
    (pd.DataFrame({"a": [1.0, 0.0, 1.0]}), "wrong_type", None),
    (np.ma.array([1.0, 0.0, 1.0]), "wrong_type", None),
    (np.ma.masked, "wrong_type", None),
    (pd.NaT, "wrong_type", None),
    (Ellipsis, "wrong_type", None),
    (int, "wrong_type", None),
    ([[1], 1, 1], "wrong_type", 0),
    ([np.array([1.0]), 1, 1], "wrong_type", 0),
    (np.ones((3, 3)), "wrong_length", None),
    (np.ones(0), "wrong_length", None),
    (pd.Series([1.0]), "wrong_length", None),
    (pd.NA, "not_finite", 0),
    ([1, pd.NA, 1], "not_finite", 1),
    (pd.Series([1, None, 1], dtype="Int64"), "not_finite", 1),
    (pd.Series([0.1, None, 0.3], dtype="Float64"), "not_finite", 1),
    (float("inf"), "not_finite", 0),
    ([5, 1, -float("inf")], "not_finite", 2),  # before the range, wherever it stands
    ([1, 10**400, 1], "not_finite", 1),
    (np.float64("nan"), "not_finite", 0),
    (2, "out_of_range", 0),
    (Lying(2.0), "out_of_range", 0),
    ([0, 1.0000000011, 2], "out_of_range", 1),
    (np.array([0, 0, 2]), "out_of_range", 2),
    (2**70, "out_of_range", 0),
    (np.nextafter(1.000000001, 2), "out_of_range", 0),
]


@pytest.mark.parametrize(("value", "expected"), TAKEN, ids=lambda v: repr(v)[:30])
def test_a_number_or_a_sequence_of_numbers_is_taken(value: object, expected: list[float]) -> None:
    """G-22, GV-64 to GV-69, GV-80."""
    curve = read_commitment(value, 3)
    assert curve is not None
    assert curve.dtype == np.float64
    assert curve.tolist() == expected
    assert not np.signbit(curve[curve == 0]).any()


@pytest.mark.parametrize(("value", "code", "position"), NOT_TAKEN, ids=lambda v: repr(v)[:30])
def test_anything_else_is_refused_by_the_first_check_that_fails(value: object, code: str, position: int | None) -> None:
    """G-22, G-23, GV-70 to GV-85."""
    assert refusal_of(value, 3) == (code, position)


def test_none_keeps_the_standing_curve() -> None:
    """G-21."""
    assert read_commitment(None, 3) is None


def test_a_generator_is_not_consumed() -> None:
    """G-23."""
    asked: list[int] = []

    def answer() -> Iterator[float]:
        asked.append(1)
        yield 1.0

    assert refusal_of(answer(), 1)[0] == "wrong_type"
    assert not asked


def test_a_curve_is_copied_when_it_is_taken() -> None:
    """G-21: what the predictor does to its array afterwards changes nothing."""
    mine = np.array([1.0, 1.0, 1.0])
    curve = read_commitment(mine, 3)
    mine[:] = -1.0
    assert curve is not None
    assert curve.tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(ValueError, match="read-only"):
        curve[0] = 0.0


@settings(deadline=None)
@given(st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=80))
def test_every_form_of_the_same_answer_is_the_same_curve(values: list[float]) -> None:
    """PF-26: a list, a tuple, an array and a Series, short ones without numpy and long ones with it."""
    forms: list[Callable[[list[float]], Any]] = [list, tuple, np.array, pd.Series, lambda v: pd.Series(v, dtype="Float64")]
    curves = [read_commitment(form(values), len(values)) for form in forms]
    for curve in curves:
        assert curve is not None
        assert curve.tobytes() == (np.array(values) + 0.0).tobytes()


@settings(deadline=None)
@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=80))
def test_what_is_bounded_is_finite_and_in_range_or_refused(values: list[float]) -> None:
    """G-23: the parent's half trusts nothing, at any length."""
    finite = [bool(np.isfinite(v)) for v in values]
    inside = [abs(v) <= 1.000000001 for v in values]
    if not all(inside):
        with pytest.raises(Refused) as caught:
            bound(values)
        expected = ("not_finite", finite.index(False)) if not all(finite) else ("out_of_range", inside.index(False))
        assert (caught.value.code, caught.value.position) == expected
    else:
        curve = np.asarray(bound(values))
        assert (np.abs(curve) <= 1.0).all()
        assert (curve == np.clip(values, -1, 1)).all()
        assert not np.signbit(curve[curve == 0]).any()


def test_the_childs_half_bounds_nothing() -> None:
    """G-27: range and finiteness are the parent's to judge."""
    assert flatten([float("inf"), 5.0], 2) == [float("inf"), 5.0]
