"""Times in float32, vector DV-25, and levels that float32 makes equal (data.md DA-01)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blindcast_anonymizers.shown import outwards, seconds

SECOND = 10**9


@pytest.mark.parametrize(("ns", "text"), [(59_999_999_999, "59.999996"), (100_000_000, "0.099999994"), (0, "0.0"), (60 * SECOND, "60.0")])
def test_times_are_rounded_towards_zero(ns: int, text: str) -> None:
    """DV-25."""
    assert seconds(np.array([ns])).tolist() == [float(np.float32(text))]


@settings(deadline=None)
@given(st.integers(0, 2**20 * SECOND))
def test_a_time_is_the_largest_float32_not_above_the_truth(ns: int) -> None:
    """DA-01, in whole numbers: a float32 is a whole number over a power of two."""
    shown = seconds(np.array([ns]))[0]
    above = np.nextafter(shown, np.float32(np.inf))
    for value, below in ((shown, True), (above, False)):
        top, bottom = float(value).as_integer_ratio()
        assert (top * SECOND <= ns * bottom) == below


@settings(deadline=None)
@given(
    st.lists(st.floats(0, 2, width=32), min_size=1, max_size=6),
    st.lists(st.floats(0, 2, width=32), min_size=1, max_size=6),
    st.floats(-2, 2, width=32),
)
def test_moved_levels_are_strict_for_any_ties_across_zero_too(down: list[float], up: list[float], best: float) -> None:
    low, high = np.full((2, 20), np.nan, np.float32), np.full((2, 20), np.nan, np.float32)
    low[0, : len(down)] = np.float32(best) - np.sort(np.array(down, dtype=np.float32))
    high[0, : len(up)] = np.float32(best) + np.sort(np.array(up, dtype=np.float32))
    low[1, :2], high[1, :2] = (-1, -2), (1, 2)
    apart = low[1].tobytes(), high[1].tobytes()
    strict = low[0, 0] < high[0, 0] and (np.diff(low[0, : len(down)]) < 0).all() and (np.diff(high[0, : len(up)]) > 0).all()
    before = low.copy(), high.copy()
    outwards(low, high)
    assert low[0, 0] < high[0, 0]
    assert (np.diff(low[0, : len(down)]) < 0).all()
    assert (np.diff(high[0, : len(up)]) > 0).all()
    assert np.isnan(low[0, len(down) :]).all()
    assert (low[1].tobytes(), high[1].tobytes()) == apart
    assert not strict or (low.tobytes(), high.tobytes()) == (before[0].tobytes(), before[1].tobytes())
