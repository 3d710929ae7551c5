"""The tape of the synthetic market (data.md S-02): bursts of prints, more on moves, sides in runs with heavy tails.

A print follows its row within half a row: the tape answers moves and never announces one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from attrs import frozen

from blindcast.records import F64, I64
from blindcast_datasources.market import States
from blindcast_datasources.portable import U64, exp, normals, uniforms

__all__ = ["MOST_PER_ROW", "Tape", "tape"]

MOST_PER_ROW = 64
RATE_PER_S = 1.0  # quiet rows
RATE_MOVE = 8.0  # times the quiet rate, added per s in rows that move
RATE_MOST = 40.0  # expected prints of a row
FOLLOW = 0.6  # share of moving rows whose prints all take the move's side
RUN_MOST = 400  # prints; a run is longer than n with odds 1/n
LOTS, LOTS_SD = 60.0, 1.95  # median and log sd of a print's size
STRAY = 12  # of 256 prints take the other side of their run
_TIME, _SIZE, _RUN = range(3)
PRINT_WORDS = 3


@frozen(eq=False)
class Tape:
    """Prints in time order: I64[m] ns since the window's start, ticks, lots; int8[m] side, +1 the taker bought."""

    offset_ns: I64
    px: I64
    sz: I64
    side: I64


def _poisson(u: F64, mean: F64) -> I64:
    """I64[n]: the count at which the distribution function of each mean passes u, at most MOST_PER_ROW."""
    odds = exp(-mean)
    passed, count = odds.copy(), np.zeros(len(u), dtype=np.int64)
    for k in range(1, MOST_PER_ROW + 1):
        more = u >= passed
        if not more.any():
            break
        count += more
        odds = odds * mean / k
        passed += odds
    return count


def _runs(words: U64) -> I64:
    """I64[m]: signs in runs of floor(1/u) prints. Run j spends word j, its lowest bit being the sign; print k bits 1 to 8 of word k."""
    lengths = np.minimum(1.0 / np.maximum(uniforms(words), 1.0 / RUN_MOST), RUN_MOST).astype(np.int64)
    signs = np.where(words & np.uint64(1), 1, -1)
    stray = ((words >> np.uint64(1)) & np.uint64(0xFF)) < STRAY
    return np.asarray(np.where(stray, -1, 1) * np.repeat(signs, lengths)[: len(words)])


def tape(book: States, draw: Callable[[int], U64], row_ns: int) -> Tape:
    """The tape of `book`; `draw(m)` gives m raw words of the tape's own stream."""
    moved = book.move != 0
    mean = book.burst * ((RATE_PER_S + (RATE_PER_S * RATE_MOVE) * moved) * (row_ns / 1e9))
    mean[0] = 0.0
    row = np.repeat(np.arange(len(mean)), _poisson(book.prints_u, np.minimum(mean, RATE_MOST)))
    words = draw(PRINT_WORDS * len(row)).reshape(-1, PRINT_WORDS)
    follows = moved & (book.follow_u < FOLLOW)
    side = np.where(follows[row], np.where(book.move[row] > 0, 1, -1), _runs(words[:, _RUN]))
    half = row_ns // 2
    offset = row * row_ns - half + np.floor(uniforms(words[:, _TIME]) * half).astype(np.int64)
    offset.sort()  # rows do not overlap: only within a row
    size = (LOTS * exp(LOTS_SD * normals(words[:, _SIZE]))).astype(np.int64) + 1
    return Tape(offset, np.where(side > 0, book.ask_px[row, 0], book.bid_px[row, 0]), size, side)
