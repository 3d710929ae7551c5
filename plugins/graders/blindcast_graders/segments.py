"""Diagnostics of convictions segment by segment: pooled over all windows, never part of the reward (G-40 to G-42)."""

from collections.abc import Mapping
from math import sqrt

import numpy as np

from blindcast.records import F64

__all__ = ["PARTS", "diagnostics", "from_parts", "last_move_sign", "window_parts"]

PARTS: tuple[str, ...] = ("segments", "called", "called_bps", "hit_bps", "squared_error", "moved", "pnl_bps", "persistence_pnl_bps")


def last_move_sign(moves: F64) -> F64:
    """F64[W, G]: before each segment, the sign of the window's last non-zero move; 0 before the first (G-42)."""
    signs = np.sign(moves)
    before = np.zeros_like(signs)
    before[:, 1:] = signs[:, :-1]
    for segment in range(2, moves.shape[1] if not before[:, 1:].all() else 0):
        np.copyto(before[:, segment], before[:, segment - 1], where=before[:, segment] == 0)
    return before


def _segments(ys: F64, curves: F64) -> tuple[F64, ...]:
    """The terms that `PARTS` names, F64[W, G] each."""
    ys, curves = np.asarray(ys, dtype=np.float64), np.asarray(curves, dtype=np.float64)
    moves = np.diff(ys, axis=1)
    active = np.ascontiguousarray(np.diagonal(curves, offset=1, axis1=1, axis2=2))  # c[i, i+1]
    directions, sizes = np.sign(moves), np.abs(moves)
    called = (active != 0).astype(np.float64)
    hit = (np.sign(active) == directions) * called
    return (
        np.ones_like(moves),
        called,
        called * sizes,
        hit * sizes,
        (active - directions) ** 2,
        np.abs(directions),
        active * moves,
        last_move_sign(moves) * moves,
    )


def window_parts(ys: F64, curves: F64) -> F64:
    """F64[W, 8]: for each window the sums that `PARTS` names, over its segments; `ys` F64[W, G+1], `curves` F64[W, G, G+1]."""
    return np.stack([term.sum(axis=1) for term in _segments(ys, curves)], axis=1)


def from_parts(parts: Mapping[str, float]) -> dict[str, float | None]:
    """The six diagnostics of G-90 from parts summed over windows; undefined is None."""
    called, moved = parts["called_bps"], parts["moved"]
    return {
        "direction_accuracy": parts["hit_bps"] / called if called > 0 else None,
        "coverage": parts["called"] / parts["segments"] if parts["segments"] > 0 else None,
        "skill_score_vs_flat": 1.0 - sqrt(parts["squared_error"] / moved) if moved > 0 else None,
        "pnl_bps": parts["pnl_bps"],
        "persistence_pnl_bps": parts["persistence_pnl_bps"],
        "skill_vs_persistence_bps": parts["pnl_bps"] - parts["persistence_pnl_bps"],
    }


def diagnostics(ys: F64, curves: F64) -> dict[str, float | None]:
    """The six diagnostics of G-90 for all windows at once, pooled: one division at the end."""
    return from_parts({name: float(term.sum()) for name, term in zip(PARTS, _segments(ys, curves), strict=True)})
