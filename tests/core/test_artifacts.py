"""Forecasts as positions (evidence.md section 10, E-35 and E-36)."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blindcast.artifacts import METRICS, exposures, metrics, metrics_csv, step_returns
from blindcast.protocol import walk_answers
from blindcast.records import F64, Grid

DAY_NS = 86_400_000_000_000
GRID = Grid(window_s=900, steps=3)


def curves_of(*windows: Sequence[object]) -> F64:
    return np.array([walk_answers(len(answers), answers).curves for answers in windows])


def naive_exposure(curve: F64, anchor: int) -> float:
    steps = len(curve)
    knots = range(anchor + 1, steps + 1)
    return sum((j - anchor) * float(curve[anchor, j]) for j in knots) / sum(j - anchor for j in knots)


@settings(deadline=None)
@given(st.lists(st.one_of(st.none(), st.floats(-1, 1)), min_size=1, max_size=7))
def test_the_stake_of_a_step_is_the_weighted_mean_of_what_stands(answers: list[object]) -> None:
    """E-35: x = sum (j-i) c_ij / sum (j-i)."""
    curves = curves_of(answers)
    staked = exposures(curves)[0]
    assert np.allclose(staked, [naive_exposure(curves[0], anchor) for anchor in range(len(answers))], atol=1e-15)
    assert (np.abs(staked) <= 1 + 1e-12).all()


def test_a_calls_reach_counts_in_its_stake() -> None:
    """E-35: [1, 0, -1] stands for knots 1, 2, 3: (1*1 + 2*0 - 3*1) / 6."""
    assert exposures(curves_of([[1, 0, -1], None, 0.5]))[0].tolist() == pytest.approx([-1 / 3, -2 / 3, 0.5])


def test_a_steps_return_is_that_of_the_price() -> None:
    """E-35: y is bps of the window's start, a step's return of where it began."""
    assert step_returns(np.array([[0.0, 100.0, 50.0]]))[0].tolist() == pytest.approx([0.01, 1.005 / 1.01 - 1])


def test_the_row_of_one_window() -> None:
    """E-35, E-36, by hand: long, long, then short."""
    ys = np.array([[0.0, 100.0, 50.0, 100.0]])
    row = metrics(ys, curves_of([1, None, -1]), [0], GRID, 12.5, 0)
    down, up = 1.005 / 1.01 - 1, 1.01 / 1.005 - 1
    returns = [0.01, down, -up]
    equity = [1.01, 1.01 * (1 + down), 1.01 * (1 + down) * (1 - up)]
    mean = sum(returns) / 3
    deviation = math.sqrt(sum((r - mean) ** 2 for r in returns) / 2)
    expected = {
        "trade_count": 2,
        "bars": 3,
        "windows": 1,
        "sessions": 1,
        "final_equity": equity[-1],
        "total_return": equity[-1] - 1,
        "max_drawdown": equity[-1] / 1.01 - 1,
        "sharpe_per_bar": mean / deviation,
        "periods_per_year": 31_536_000 / 300,
        "benchmark_return": 0.01,
        "avg_exposure": 1.0,
        "turnover": 1 + 0 + 2 + 1,
        "reward_bps": 12.5,
        "mean_reward_per_market_bps": 12.5,
        "hit_rate": 1 / 3,
        "crashed_windows": 0,
    }
    assert list(row) == list(METRICS)
    assert row == pytest.approx(expected)


@pytest.mark.parametrize(
    ("answers", "trades"),
    [([1, None, None], 1), ([0, 1, None], 1), ([1, 0.0, 1], 2), ([1, -1, 1], 3), ([None, None, None], 0), ([0.1, 0.2, 0.9], 1)],
)
def test_a_trade_is_a_run_of_one_sign_inside_a_window(answers: list[object], trades: int) -> None:
    """E-36: a flip is an exit and an entry."""
    flat = np.zeros((2, 4))
    assert metrics(flat, curves_of(answers, answers), [0, 900], GRID, 0.0, 0)["trade_count"] == 2 * trades


def test_every_window_ends_flat() -> None:
    """E-36: turnover in and out of each, though the call is the same in both."""
    assert metrics(np.zeros((2, 4)), curves_of([1, None, None], [1, None, None]), [0, 900], GRID, 0.0, 0)["turnover"] == 4.0


def test_a_session_is_a_day_with_a_window() -> None:
    curves = curves_of(*[[0, 0, 0]] * 4)
    assert metrics(np.zeros((4, 4)), curves, [DAY_NS - 1, DAY_NS, DAY_NS + 1, 5 * DAY_NS], GRID, 0.0, 0)["sessions"] == 3


def test_what_is_undefined_is_null_and_a_drawdown_of_nothing_is_0() -> None:
    row = metrics(np.array([[0.0, 10.0, 20.0, 5.0]]), curves_of([0, 0, 0]), [0], GRID, 0.0, 0)
    assert (row["sharpe_per_bar"], row["hit_rate"], row["max_drawdown"], row["final_equity"]) == (None, None, 0.0, 1.0)
    one = metrics(np.array([[0.0, 10.0]]), curves_of([1]), [0], Grid(60, 1), 10.0, 0)
    assert (one["sharpe_per_bar"], one["hit_rate"]) == (None, 1.0)


def test_the_csv_is_one_header_and_one_row_that_read_back_exactly() -> None:
    """Evidence.md section 10: LF, floats as repr, blank for null, exact columns."""
    row = metrics(np.array([[0.0, 1.0, 2.0, 1.7]]), curves_of([0.3, None, 0.1]), [0], GRID, 0.1 + 0.2, 1)
    text = metrics_csv(row | {"hit_rate": None})
    assert text.count("\n") == 2
    assert "\r" not in text
    assert "np." not in text
    (read,) = csv.DictReader(io.StringIO(text))
    assert list(read) == list(METRICS)
    assert read["hit_rate"] == ""
    assert read["reward_bps"] == "0.30000000000000004"
    assert all(float(read[name]) == row[name] for name in METRICS if read[name])
    assert (read["trade_count"], read["crashed_windows"]) == ("1", "1")
