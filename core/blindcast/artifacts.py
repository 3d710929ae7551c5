"""Forecasts as positions: the one row of `artifacts/metrics.csv` (evidence.md section 10, E-35, E-36)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from blindcast.records import F64, Grid

__all__ = ["METRICS", "exposures", "metrics", "metrics_csv", "step_returns"]

METRICS = (  # exact columns, in order
    "trade_count",
    "bars",
    "windows",
    "sessions",
    "final_equity",
    "total_return",
    "max_drawdown",
    "sharpe_per_bar",
    "periods_per_year",
    "benchmark_return",
    "avg_exposure",
    "turnover",
    "reward_bps",
    "mean_reward_per_market_bps",
    "hit_rate",
    "crashed_windows",
)
YEAR_S = 31_536_000  # a market that never closes


def exposures(curves: F64) -> F64:
    """F64[W, G]: the stake over each step, sum_j (j-i) c_ij / sum_j (j-i) (E-35). `curves` is F64[W, G, G+1]."""
    steps = curves.shape[1]
    lags = np.maximum(0, np.arange(steps + 1)[None, :] - np.arange(steps)[:, None]).astype(np.float64)
    staked: F64 = (curves * lags).sum(axis=2) / lags.sum(axis=1)
    return staked


def step_returns(ys: F64) -> F64:
    """F64[W, G]: the simple return of each step, from paths F64[W, G+1] in bps of the window's start."""
    levels = 1 + ys / 1e4
    returns: F64 = levels[:, 1:] / levels[:, :-1] - 1
    return returns


def _trades(staked: F64) -> int:
    """Maximal runs of same-signed nonzero exposure inside one window."""
    signs = np.sign(staked)
    before = np.concatenate([np.zeros((len(signs), 1)), signs[:, :-1]], axis=1)
    return int(((signs != 0) & (signs != before)).sum())


def _turnover(staked: F64) -> float:
    """Sum of |x_j - x_(j-1)| with x_0 = 0, and |x_G| at each window's end."""
    return float(np.abs(np.diff(staked, axis=1, prepend=0.0)).sum() + np.abs(staked[:, -1]).sum())


def _sessions(starts_ns: Sequence[int]) -> int:
    return len({start // 86_400_000_000_000 for start in starts_ns})


def metrics(ys: F64, curves: F64, starts_ns: Sequence[int], grid: Grid, reward_bps: float, crashed: int) -> dict[str, Any]:
    """The row; fractions are decimal unless named _bps, undefined is None. A session is a UTC day with a window."""
    staked, moves = exposures(curves), step_returns(ys)
    returns = (staked * moves).ravel()
    equity = np.concatenate([[1.0], np.cumprod(1 + returns)])
    drawdown = float((equity / np.maximum.accumulate(equity) - 1).min())
    deviation = float(returns.std(ddof=1)) if len(returns) > 1 else 0.0
    moved = returns[returns != 0]
    return {
        "trade_count": _trades(staked),
        "bars": len(returns),
        "windows": len(ys),
        "sessions": _sessions(starts_ns),
        "final_equity": float(equity[-1]),
        "total_return": float(equity[-1] - 1),
        "max_drawdown": drawdown,
        "sharpe_per_bar": float(returns.mean() / deviation) if deviation > 1e-12 else None,
        "periods_per_year": YEAR_S * grid.steps / grid.window_s,
        "benchmark_return": float(np.prod(1 + ys[:, -1] / 1e4) - 1),
        "avg_exposure": float(np.abs(staked).mean()),
        "turnover": _turnover(staked),
        "reward_bps": reward_bps,
        "mean_reward_per_market_bps": reward_bps / len(ys),
        "hit_rate": float((moved > 0).mean()) if len(moved) else None,
        "crashed_windows": crashed,
    }


def metrics_csv(row: dict[str, Any]) -> str:
    """Header and row, LF, floats as repr, None blank."""
    cells = ["" if row[name] is None else repr(row[name]) for name in METRICS]
    return ",".join(METRICS) + "\n" + ",".join(cells) + "\n"
