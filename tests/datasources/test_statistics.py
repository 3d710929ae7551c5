"""The numbers of `data describe`: hand-made markets with known answers."""

from __future__ import annotations

import numpy as np
import pytest

from blindcast.records import F64, Grid
from blindcast_datasources.sampled import Sampled, sampled_window
from blindcast_datasources.statistics import STATS, imbalance, market_stats, order_flow, window_stats
from blindcast_datasources.synthetic import Synthetic

KEYS = (
    "sd_1s_bps vr_10s vr_60s kurt_1s kurt_10s acf_r_1 acf_absr_1 acf_absr_5 acf_absr_10 moves_1s p_spread_1tick "
    "size_ratio_2 size_ratio_5 size_ratio_20 logsd_L1 logsd_L10 L20_bps ic_imb1_1s ic_imb1_10s ic_imb1_60s "
    "ic_imb20_1s ic_imb20_10s ic_imb20_60s "
    "acf_imb1_1s acf_imb1_10s acf_imb1_60s "
    "ofi_r2_1s ofi_r2_10s trades_per_s acf_sign_1 acf_sign_10 acf_sign_100 trade_p99_ratio fano_1s"
).split()


def _levels(bids: F64, bid_sizes: F64, ask_sizes: F64) -> F64:
    levels = np.empty((len(bids), 4, 20))
    levels[:, 0] = bids[:, None] - np.arange(20)
    levels[:, 2] = bids[:, None] + 1 + np.arange(20)
    levels[:, 1], levels[:, 3] = bid_sizes[:, None], ask_sizes[:, None]
    return levels


def _quiet(levels: F64) -> Sampled:
    none = np.empty(0, dtype=np.int64)
    return Sampled(levels, none, np.empty(0), none)


def test_the_keys_are_those_of_the_page() -> None:
    """DK-01."""
    assert list(STATS) == KEYS


def test_a_still_market_has_few_numbers_and_no_nan() -> None:
    """DK-01: null where undefined."""
    still = np.full(100, 1000.0)
    stats = market_stats(_quiet(_levels(still, still, still)))
    assert (stats["sd_1s_bps"], stats["moves_1s"], stats["p_spread_1tick"], stats["trades_per_s"]) == (0.0, 0.0, 1.0, 0.0)
    assert (stats["vr_10s"], stats["ic_imb1_1s"], stats["fano_1s"]) == (None, None, None)
    assert set(market_stats(_quiet(np.empty((0, 4, 20)))).values()) == {None}


def test_a_book_that_leans_before_each_move_has_an_ic_of_one() -> None:
    """DK-01: I(k) and the return that follows."""
    draw = np.random.default_rng(5)
    steps = draw.choice([-1.0, 1.0], 300)
    bids = 100_000 + np.concatenate([[0.0], np.cumsum(steps)])
    lean = np.append(steps, 0.0)
    stats = market_stats(_quiet(_levels(bids, 10 + lean, 10 - lean)))
    assert stats["ic_imb1_1s"] == pytest.approx(1.0, abs=1e-3)
    assert stats["ic_imb20_1s"] == pytest.approx(stats["ic_imb1_1s"])
    assert stats["sd_1s_bps"] == pytest.approx(1e4 / 100_000.5 * float(steps.std(ddof=1)), rel=1e-2)


def test_imbalance_counts_the_levels_asked_for() -> None:
    """DK-01."""
    levels = _levels(np.array([100.0]), np.array([3.0]), np.array([1.0]))
    levels[0, 3, 1:] = np.nan
    assert imbalance(levels, 1).tolist() == [0.5]
    assert imbalance(levels, 2).tolist() == [5 / 7]


def test_order_flow_is_conts() -> None:
    """DK-01: a better bid adds its size, a worse one takes the old away; asks the other way round."""
    levels = _levels(np.array([100.0, 100.0, 101.0, 100.0]), np.array([5.0, 8.0, 2.0, 4.0]), np.array([5.0, 1.0, 3.0, 6.0]))
    assert order_flow(levels).tolist() == [3.0 + 4.0, 2.0 + 1.0, -2.0 - 6.0]


def test_prints_are_counted_per_second_and_by_side() -> None:
    """DK-01."""
    still = np.full(11, 1000.0)
    at = np.repeat(np.arange(10), 2) * 10**9
    side = np.tile([1, -1], 10)
    stats = market_stats(Sampled(_levels(still, still, still), at, np.arange(1.0, 21.0), side))
    assert (stats["trades_per_s"], stats["fano_1s"]) == (2.0, 0.0)
    assert stats["acf_sign_1"] == pytest.approx(-1.0)


def test_a_window_is_looked_at_from_its_start_to_its_end() -> None:
    """S-03: a window of 60 s has 61 whole seconds, and every number that it can have."""
    source, grid = Synthetic(windows=1), Grid(60, 15)
    window = source.window(source.windows(grid)[0].ref, grid)
    market = sampled_window(window)
    assert len(market.levels) == 61
    first = market.levels[0, 0, 0] + market.levels[0, 2, 0]
    last = market.levels[60, 0, 0] + market.levels[60, 2, 0]
    assert 1e4 * (last - first) / first == pytest.approx(window.y[-1], rel=1e-12)
    stats = window_stats(window)
    assert list(stats) == KEYS
    assert stats["sd_1s_bps"]
