"""Where a task's reward comes from: baselines, waterfall, concentration (G-43 to G-45)."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from attrs import frozen

from blindcast.records import F64
from blindcast_graders.kernel import (
    Returns,
    Room,
    blocks,
    cells_of,
    checked,
    packed_weights,
    parts,
    path,
    price,
    sums,
    taken,
    total_weight,
)
from blindcast_graders.segments import last_move_sign

__all__ = ["Tally", "baselines", "concentration", "explain", "tally", "waterfall"]


@frozen(eq=False)
class Tally:
    """What one pass over a task's windows adds up: F64[cells] over all windows, F64[W] per window.

    Per cell: `sizes` sum of |c|, `signs` of sgn c, `moves` of b = r * w, `signed` of sgn(c) * b, `earned` of c * b.
    Per window, as the grader would pay them, to the bit: `rewards` of the curves, `long` of a standing +1, `persistence` (G-43).
    """

    sizes: F64
    signs: F64
    moves: F64
    signed: F64
    earned: F64
    rewards: F64
    long: F64
    persistence: F64


def tally(ys: F64, curves: F64, alpha: float = 1.0, returns: Returns = "window_bps") -> Tally:
    """One pass in blocks over `ys` F64[W, G+1] and `curves` F64[W, G, G+1]."""
    ys, curves = checked(ys, curves)
    windows, steps = curves.shape[:2]
    ready, weight, cells = path(ys, returns), packed_weights(steps, alpha), cells_of(steps)
    last = last_move_sign(np.diff(ys, axis=1))
    totals, partial = np.zeros((5, len(weight))), np.empty((3, windows, parts(steps)))
    rooms = Room(), Room(), Room()
    for block in blocks(windows, steps):
        moves, convictions, work = (room.of(block) for room in rooms)
        price(ready, weight, cells, block, moves, work)
        taken(curves, block, cells.place, convictions)
        total, paid = totals[:, block.cells], partial[:, block.windows, block.part]
        total[0] += np.abs(convictions, out=work).sum(axis=0)
        total[1] += np.sign(convictions, out=work).sum(axis=0)
        total[2] += moves.sum(axis=0)
        total[3] += np.multiply(work, moves, out=work).sum(axis=0)
        total[4] += np.multiply(moves, convictions, out=work).sum(axis=0)
        paid[0], paid[1] = sums(work), sums(moves)
        paid[2] = sums(np.multiply(moves, taken(last, block, cells.anchor, work), out=work))
    return Tally(*totals, *(sums(part) + 0.0 for part in partial))


def baselines(
    ys: F64, warmup_ys: F64 | Sequence[Sequence[float]], alpha: float = 1.0, trials: int = 1, returns: Returns = "window_bps"
) -> dict[str, float | None]:
    """Task totals in bps of what needs no skill, by the same grader and from y alone (G-43).

    `warmup_ys` F64[k, G+1], k may be 0. `best_of_n_coins` is None before the first trial.
    """
    ys = np.asarray(ys, dtype=np.float64)
    flat = np.broadcast_to(np.float64(0.0), (len(ys), ys.shape[1] - 1, ys.shape[1]))
    return _baselines(tally(ys, flat, alpha, returns), warmup_ys, trials)


def _baselines(done: Tally, warmup_ys: F64 | Sequence[Sequence[float]], trials: int) -> dict[str, float | None]:
    drift = math.fsum(float(warmup[-1]) for warmup in warmup_ys)
    always_long = float(done.long.sum())
    return {
        "flat": 0.0,
        "always_long": always_long,
        "always_short": 0.0 - always_long,
        "warmup_drift": always_long * ((drift > 0) - (drift < 0)) + 0.0,
        "persistence": float(done.persistence.sum()),
        "best_of_n_coins": _best_of_coins(done.long, trials),
    }


def _best_of_coins(long: F64, trials: int) -> float | None:
    from blindcast.inference import expected_best

    return expected_best(trials) * math.sqrt(float((long**2).sum())) if trials >= 1 else None


def _waterfall(done: Tally, steps: int) -> dict[str, object]:
    windows, cells = max(1, len(done.rewards)), cells_of(steps)
    size = done.sizes / windows  # mean |c| of a cell, so that e = sgn(c) * size
    bias = float((size * done.signs * done.moves).sum()) / windows
    expected, earned = float((size * done.signed).sum()), float(done.earned.sum())
    return {
        "bias_bps": bias,
        "timing_bps": expected - bias,
        "sizing_bps": earned - expected,
        "by_anchor_bps": np.bincount(cells.anchor, weights=done.earned).tolist(),
        "by_lag_bps": np.bincount(cells.knot - cells.anchor - 1, weights=done.earned).tolist(),
    }


def waterfall(ys: F64, curves: F64, alpha: float = 1.0, returns: Returns = "window_bps") -> dict[str, object]:
    """The reward split exactly in bias, timing and sizing, and by anchor and by lag, all in bps (G-44).

    The five calls 1 1 1 -1 -.5 on one-step moves of 10 20 -10 -30 40 bps earn 60 = 10.8 + 7.2 + 42.
    """
    ys, curves = checked(ys, curves)
    return _waterfall(tally(ys, curves, alpha, returns), curves.shape[1])


def concentration(rewards: F64, sign_only_bps: float) -> dict[str, float | None]:
    """How many windows carry the reward (G-45): `rewards` F64[W] in bps; shares of nothing are None."""
    sizes = np.abs(rewards)
    largest = np.argsort(-sizes, kind="stable")[:5]
    total, squares = float(sizes.sum()), float((rewards**2).sum())
    return {
        "top5_share": float(sizes[largest].sum()) / total if total > 0 else None,
        "without_top5_bps": float(np.delete(rewards, largest).sum()),
        "effective_windows": total**2 / squares if squares > 0 else None,
        "sign_only_bps": sign_only_bps,
    }


def explain(ys: F64, curves: F64, warmup_ys: F64, trials: int, alpha: float, returns: Returns) -> Mapping[str, object]:
    """The parts of the grade object that only the official grader can fill (G-90)."""
    ys, curves = checked(ys, curves)
    done = tally(ys, curves, alpha, returns)
    windows, steps = curves.shape[:2]
    total = float(done.rewards.sum())
    return {
        "reward_wmean_bps": total / windows / total_weight(steps, alpha) if windows else None,
        "baselines": _baselines(done, warmup_ys, trials),
        "waterfall": _waterfall(done, steps),
        "concentration": concentration(done.rewards, float(done.signed.sum())),
        "companion": None,
        "e_value": None,
    }
