"""The numbers of `data describe` (DK-01): pure functions of a market sampled once a second."""

from __future__ import annotations

from typing import Final

import numpy as np

from blindcast.records import F64, Window
from blindcast_datasources.sampled import SECOND_NS, Sampled, sampled_window

__all__ = ["STATS", "market_stats", "window_stats"]

STATS: Final = (
    "sd_1s_bps", "vr_10s", "vr_60s", "kurt_1s", "kurt_10s", "acf_r_1", "acf_absr_1", "acf_absr_5", "acf_absr_10",
    "moves_1s", "p_spread_1tick", "size_ratio_2", "size_ratio_5", "size_ratio_20", "logsd_L1", "logsd_L10", "L20_bps",
    "ic_imb1_1s", "ic_imb1_10s", "ic_imb1_60s", "ic_imb20_1s", "ic_imb20_10s", "ic_imb20_60s", "acf_imb1_1s",
    "acf_imb1_10s", "acf_imb1_60s", "ofi_r2_1s", "ofi_r2_10s", "trades_per_s", "acf_sign_1", "acf_sign_10",
    "acf_sign_100", "trade_p99_ratio", "fano_1s",
)  # fmt: skip
BPS: Final = 1e4
LEAST_PAIRS: Final = 3  # below that a correlation says nothing


def window_stats(window: Window) -> dict[str, float | None]:
    """The numbers of one window, on the 1 s grid from its start; undefined is None."""
    return market_stats(sampled_window(window))


def market_stats(market: Sampled) -> dict[str, float | None]:
    """Every key of STATS; undefined is None, never NaN."""
    found = {**_returns(market), **_book(market), **_forecasts(market), **_flow(market), **_tape(market)}
    return {key: float(found[key]) if np.isfinite(found[key]) else None for key in STATS}


def _log_mid(market: Sampled) -> F64:
    mid: F64 = np.log((market.levels[:, 0, 0] + market.levels[:, 2, 0]) / 2)
    return mid


def _ahead(log_mid: F64, seconds: int) -> F64:
    """Log returns over the next `seconds`, bps; shorter than `log_mid` by that many."""
    moves: F64 = BPS * (log_mid[seconds:] - log_mid[:-seconds])
    return moves


def _finite(values: F64) -> F64:
    return values[np.isfinite(values)]


def _variance(values: F64) -> float:
    known = _finite(values)
    return float(known.var(ddof=1)) if len(known) > 1 else np.nan


def _ratio(a: float, b: float) -> float:
    return a / b if b > 0 else np.nan


def _correlation(a: F64, b: F64) -> float:
    """Pearson's, of the pairs where both are known."""
    known = np.isfinite(a) & np.isfinite(b)
    if int(known.sum()) < LEAST_PAIRS:
        return np.nan
    a, b = a[known] - a[known].mean(), b[known] - b[known].mean()
    scale = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return _ratio(float((a * b).sum()), scale)


def _autocorrelation(values: F64, lag: int) -> float:
    return _correlation(values[:-lag], values[lag:]) if len(values) > lag else np.nan


def _kurtosis(values: F64) -> float:
    """Excess: 0 for a normal law."""
    known = _finite(values)
    if len(known) < LEAST_PAIRS:
        return np.nan
    centred = known - known.mean()
    return _ratio(float((centred**4).mean()), float((centred**2).mean()) ** 2) - 3.0


def _returns(market: Sampled) -> dict[str, float]:
    log_mid = _log_mid(market)
    by_lag = {seconds: _ahead(log_mid, seconds) if len(log_mid) > seconds else np.empty(0) for seconds in (1, 10, 60)}
    one = by_lag[1]
    variance = _variance(one)
    moved = _finite(one) != 0
    return {
        "sd_1s_bps": float(np.sqrt(variance)),
        "vr_10s": _ratio(_variance(by_lag[10]), 10 * variance),
        "vr_60s": _ratio(_variance(by_lag[60]), 60 * variance),
        "kurt_1s": _kurtosis(one),
        "kurt_10s": _kurtosis(by_lag[10]),
        "acf_r_1": _autocorrelation(one, 1),
        **{f"acf_absr_{lag}": _autocorrelation(np.abs(one), lag) for lag in (1, 5, 10)},
        "moves_1s": float(moved.mean()) if len(moved) else np.nan,
    }


def _median(values: F64) -> float:
    known = _finite(values)
    return float(np.median(known)) if len(known) else np.nan


def _book(market: Sampled) -> dict[str, float]:
    levels = market.levels
    spread = _finite(levels[:, 2, 0] - levels[:, 0, 0])
    sizes = levels[:, 1::2]  # F64[S, 2, 20]
    both = sizes.sum(axis=1)  # F64[S, 20]: what rests at a level on the two sides together
    mid = (levels[:, 0, 0] + levels[:, 2, 0]) / 2
    return {
        "p_spread_1tick": float((spread == 1).mean()) if len(spread) else np.nan,
        **{f"size_ratio_{k}": _ratio(_median(both[:, k - 1]), _median(both[:, 0])) for k in (2, 5, 20)},
        **{f"logsd_L{k}": float(np.sqrt(_variance(np.log(sizes[:, :, k - 1]).ravel()))) for k in (1, 10)},
        "L20_bps": _median(BPS * (mid - levels[:, 0, 19]) / mid),  # of the bid side
    }


def imbalance(levels: F64, k: int) -> F64:
    """I(k) = (sum of the first k bid sizes - asks) / (sum of both); NaN where no state is valid."""
    bid, ask = (np.nansum(levels[:, side, :k], axis=1) for side in (1, 3))
    total = bid + ask
    with np.errstate(invalid="ignore", divide="ignore"):
        lean: F64 = np.where(np.isnan(levels[:, 0, 0]) | (total <= 0), np.nan, (bid - ask) / total)
    return lean


def _forecasts(market: Sampled) -> dict[str, float]:
    log_mid = _log_mid(market)
    found: dict[str, float] = {}
    for k in (1, 20):
        lean = imbalance(market.levels, k)
        for seconds in (1, 10, 60):
            long = len(log_mid) > seconds
            found[f"ic_imb{k}_{seconds}s"] = _correlation(lean[:-seconds], _ahead(log_mid, seconds)) if long else np.nan
            found[f"acf_imb1_{seconds}s"] = _autocorrelation(imbalance(market.levels, 1), seconds)
    return found


def order_flow(levels: F64) -> F64:
    """Order flow imbalance of best prices between seconds: Cont, Kukanov and Stoikov (2014), eq. 4; F64[S - 1]."""
    bid_px, bid_sz, ask_px, ask_sz = levels[:, 0, 0], levels[:, 1, 0], levels[:, 2, 0], levels[:, 3, 0]
    bid = np.where(bid_px[1:] >= bid_px[:-1], bid_sz[1:], 0.0) - np.where(bid_px[1:] <= bid_px[:-1], bid_sz[:-1], 0.0)
    ask = np.where(ask_px[1:] <= ask_px[:-1], ask_sz[1:], 0.0) - np.where(ask_px[1:] >= ask_px[:-1], ask_sz[:-1], 0.0)
    known = np.isfinite(bid_px + ask_px)
    flow: F64 = np.where(known[1:] & known[:-1], bid - ask, np.nan)
    return flow


def _flow(market: Sampled) -> dict[str, float]:
    flow, log_mid = order_flow(market.levels), _log_mid(market)
    found: dict[str, float] = {}
    for seconds in (1, 10):
        if len(flow) < seconds:
            found[f"ofi_r2_{seconds}s"] = np.nan
            continue
        sums = np.convolve(flow, np.ones(seconds), "valid")  # overlapping; NaN where a second is unknown
        found[f"ofi_r2_{seconds}s"] = _correlation(sums, _ahead(log_mid, seconds)) ** 2
    return found


def _tape(market: Sampled) -> dict[str, float]:
    seconds = max(len(market.levels) - 1, 0)
    sign = market.side[market.side != 0].astype(np.float64)
    return {
        "trades_per_s": len(market.print_ns) / seconds if seconds else np.nan,
        **{f"acf_sign_{lag}": _autocorrelation(sign, lag) for lag in (1, 10, 100)},
        "trade_p99_ratio": _ratio(float(np.quantile(market.print_sz, 0.99)), float(np.median(market.print_sz)))
        if len(market.print_sz)
        else np.nan,
        "fano_1s": _fano(market, seconds),
    }


def _fano(market: Sampled, seconds: int) -> float:
    """Variance over mean of the prints per whole second."""
    if not len(market.print_ns) or seconds < 2:
        return np.nan
    second = market.print_ns // SECOND_NS
    counts = np.bincount(second - second[0], minlength=seconds).astype(np.float64)
    return _ratio(float(counts.var(ddof=1)), float(counts.mean()))
