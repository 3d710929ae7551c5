"""The planted edge (data.md S-04): one sign per window, readable in levels 16 to 20 and followed by the moves.

The odds shift from 1/15 of the window on, whatever its grid, so that grids agree (DS-03); at 15 steps that is knot 1.
"""

from __future__ import annotations

import math

import numpy as np

from blindcast.records import F64, I64

__all__ = ["MOVES_PER_S", "lean", "odds_shift"]

LEVELS = slice(15, 20)  # levels 16 to 20
FIRST_PART = 15  # nothing is shifted before window / FIRST_PART
MOVES_PER_S = 0.4  # of the market
SHIFT = 1.17  # so that a bet on the sign held from anchor 1 of 15 has ic = edge (measured at strength 0 and 1, 60 and 900 s)


def odds_shift(sign: int, edge: float, offsets_ns: I64, window_ns: int, growth: float) -> F64:
    """F64[rows]: what is added to the probability that a move goes up; `offsets_ns` are the rows' times since the start.

    The expected drift grows with time and its noise with the root of it, so the shift falls with the root of the window's moves;
    `growth` is the variance of the window's return over that of a fair coin's.
    """
    shift = 0.5 * SHIFT * edge * math.sqrt(growth / (MOVES_PER_S * window_ns / 1e9))
    late = offsets_ns * FIRST_PART > window_ns
    return np.where(late, sign * shift, 0.0)


def lean(bid_sz: I64, ask_sz: I64, sign: int) -> None:
    """In place: of each pair of levels 16 to 20 the larger size goes to the bid if sign is +1, to the ask if -1."""
    bids, asks = bid_sz[:, LEVELS], ask_sz[:, LEVELS]
    small, large = np.minimum(bids, asks), np.maximum(bids, asks)
    bids[...], asks[...] = (large, small) if sign > 0 else (small, large)
