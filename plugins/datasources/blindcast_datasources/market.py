"""The model of the synthetic market (data.md S-02): rows of an invented order book, from raw generator words.

A latent pressure leans on the sizes and on the odds of the next move. Row r depends on words of rows 0..r alone, so a shorter
window is the beginning of a longer one. Index 0 is the state before the window's start. All arithmetic is of `portable`.
"""

from __future__ import annotations

import math

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from blindcast.records import F64, I64
from blindcast_datasources import edge as planted
from blindcast_datasources.portable import U64, exp, normals, tanh, uniforms

__all__ = ["HEADER_WORDS", "LEVELS", "ROW_WORDS", "States", "states"]

LEVELS = 20
DEEP = 2 * (LEVELS - 1)  # levels 2 to 20 of both sides

# Ornstein-Uhlenbeck processes: correlation time in s and stationary sd, in the order of the normal words of a row.
FAST, SLOW, DRIFT, VOL_FAST, VOL_SLOW, DEPTH, BID, ASK, BURST = range(9)
OU_S = (1.2, 45.0, 600.0, 4.0, 240.0, 180.0, 6.0, 6.0, 10.0)
OU_SD = (1.0, 0.22, 0.16, 0.3, 0.25, 1.42, 0.2, 0.2, 1.1)
DEEP_S, DEEP_SD = 3.0, 2.25

MOVE_RATE = 0.545  # per s: 1 - exp(-.545) = 42 % of seconds
WINDOW_VOL_SD = 0.2  # of the log of the draw per window
ODDS = 0.7
MOVE_TICKS, MOVE_SD = 36.0, 0.45  # median and log sd of a move's size
UNEVEN = 0.82  # (mean size)^2 over mean size^2
PRICE_TICKS = (450_000, 150_000)  # least, and how many more
LEAN_L1, LEAN_MOVE, LEAN_DEEP = 0.4, 0.55, 0.4
L1_LOTS = 4000.0
DEEP_SHARE = np.array([0.04 + 0.03 * k / 18 for k in range(LEVELS - 1)])  # of L1, levels 2 to 20
LOTS_MOST = 1e9
GAP_MEAN, GAP_REDRAW = 4.3, 0.15
WIDE = 0.004  # share of rows whose spread is 3 ticks instead of 1; the mid stays

HEADER_WORDS = 4  # price, volatility, planted sign, sign of the move before
_MOVE, _UP, _WIDE, _PRINTS, _FOLLOW, _SIZE = range(6)
_OU = 6
_DEEP = _OU + len(OU_S)
_GAPS = _DEEP + DEEP
ROW_WORDS = _GAPS + DEEP // 2


@frozen(eq=False)
class States:
    """n + 1 states of the book, the first before the window; sizes in lots, prices in ticks.

    `move` I64[n+1] ticks (0: none); `burst` F64[n+1] is the activity of prints; `prints_u` and `follow_u` are F64[n+1] uniforms
    for the tape.
    """

    bid_px: I64
    bid_sz: I64
    ask_px: I64
    ask_sz: I64
    move: I64
    burst: F64
    prints_u: F64
    follow_u: F64


def _ou(noise: F64, step_s: float, tau_s: F64, sd: F64) -> F64:
    """F64[n, m]: m stationary OU processes over n rows, from their noise; doubling, so the order of sums is fixed."""
    decay = exp(-step_s / tau_s)
    x = noise * sd
    x[1:] *= np.sqrt(1.0 - decay * decay)
    gap = 1
    while gap < len(x) and decay.max() > 2.0**-60:  # what is older leaves no trace in a double
        x[gap:] += x[:-gap] * decay
        decay = decay * decay
        gap *= 2
    return np.asarray(x)


def _held(values: I64, fresh: NDArray[np.bool_]) -> I64:
    """Each row's newest value that is fresh, down the rows; row 0 must be fresh."""
    index = np.where(fresh, np.arange(len(values)).reshape((-1,) + (1,) * (values.ndim - 1)), 0)
    np.maximum.accumulate(index, axis=0, out=index)
    return np.asarray(np.take_along_axis(values, index, axis=0))


def _gap_table() -> F64:
    """F64[255]: the odds that a geometric gap is at most 1, 2, .. ticks."""
    stay, odds, table = 1.0 - 1.0 / GAP_MEAN, 1.0, []
    for _ in range(255):
        odds *= stay
        table.append(1.0 - odds)
    return np.array(table)


_GAP_TABLE = _gap_table()


def _gaps(words: U64) -> I64:
    """I64[n, 38] ticks: gaps between neighbouring levels, each half word a gap; a redraw spends the same number."""
    halves = np.concatenate((words >> np.uint64(32), words & np.uint64(0xFFFFFFFF)), axis=1)
    u = halves.astype(np.float64) * 2.0**-32
    fresh = u < GAP_REDRAW
    ticks = np.ones(u.shape, dtype=np.int64)
    u[0] *= GAP_REDRAW  # the first row draws all
    fresh[0] = True
    ticks[fresh] += np.searchsorted(_GAP_TABLE, u[fresh] * (1.0 / GAP_REDRAW), side="right")
    return _held(ticks, fresh)


def _prices(best: I64, wide: I64, gaps: I64) -> tuple[I64, I64]:
    """I64[n, 20] ticks each: bids below and asks above, from the best bid of a 1-tick spread."""
    bid_px = np.empty((len(best), LEVELS), dtype=np.int64)
    ask_px = np.empty((len(best), LEVELS), dtype=np.int64)
    bid_px[:, 0], ask_px[:, 0] = best - wide, best + 1 + wide
    half = DEEP // 2
    bid_px[:, 1:] = bid_px[:, :1] - np.cumsum(gaps[:, :half], axis=1)
    ask_px[:, 1:] = ask_px[:, :1] + np.cumsum(gaps[:, half:], axis=1)
    return bid_px, ask_px


def _sizes(ou: F64, deep: F64, pressure: F64, last_sign: I64) -> tuple[I64, I64]:
    """I64[n, 20] lots each: a common depth, and a lean by the pressure and by the last move."""
    tilt = LEAN_L1 * pressure + LEAN_MOVE * last_sign
    side = np.empty((2, len(ou), LEVELS))
    side[0, :, 0] = ou[:, BID] + tilt
    side[1, :, 0] = ou[:, ASK] - tilt
    side[0, :, 1:] = deep[:, : DEEP // 2] + (LEAN_DEEP * pressure)[:, None]
    side[1, :, 1:] = deep[:, DEEP // 2 :] - (LEAN_DEEP * pressure)[:, None]
    side += ou[:, DEPTH, None]
    lots = exp(side) * L1_LOTS
    lots[:, :, 1:] *= DEEP_SHARE
    whole = np.minimum(lots, LOTS_MOST).astype(np.int64) + 1
    return whole[0], whole[1]


def _growth(strength: float, window_s: float) -> float:
    """The variance of the window's return over a fair coin's: each part of the pressure is a drift that lasts its time (an
    OU's integral), flattened by the swift part's tanh, E[1/cosh(v z)^2] = 1/sqrt(1 + pi/2 v^2) nearly, and by uneven sizes."""
    flat = ODDS / math.sqrt(1.0 + 1.5708 * (ODDS * strength) * (ODDS * strength))
    total = 1.0
    for part, power in ((FAST, strength), (SLOW, strength), (DRIFT, strength * strength)):
        tau_s, drift = OU_S[part], flat * power * OU_SD[part]
        gone = 1.0 - float(exp(np.array(-window_s / tau_s)))
        total += UNEVEN * planted.MOVES_PER_S * drift * drift * 2.0 * tau_s * (1.0 - gone * tau_s / window_s)
    return total


def states(header: U64, words: U64, *, row_ns: int, window_ns: int, strength: float, edge: float) -> States:
    """The book of one window: `header` U64[4], `words` U64[n + 1, ROW_WORDS]; states lie `row_ns` apart, row 1 half a row in."""
    step_s, n = row_ns / 1e9, len(words)
    ou = _ou(normals(words[:, _OU:_DEEP]), step_s, np.array(OU_S), np.array(OU_SD))
    deep = _ou(normals(words[:, _DEEP:_GAPS]), step_s, np.array([DEEP_S]), np.array([DEEP_SD]))
    vol = exp(ou[:, VOL_FAST] + ou[:, VOL_SLOW] + WINDOW_VOL_SD * normals(header[1:2]))
    planted_sign, last_sign = (1 if word >> 63 else -1 for word in header[2:4].tolist())

    swift = ou[:, FAST] + ou[:, SLOW]
    pressure = swift + ou[:, DRIFT]
    up = 0.5 + 0.5 * tanh(ODDS * (strength * swift + strength * strength * ou[:, DRIFT]))
    up[1:] = up[:-1]  # a move answers the state before its row
    offsets = np.arange(n, dtype=np.int64) * row_ns - row_ns // 2
    if edge:
        up += planted.odds_shift(planted_sign, edge, offsets, window_ns, _growth(strength, window_ns / 1e9))

    moved = uniforms(words[:, _MOVE]) < 1.0 - exp(-MOVE_RATE * step_s * vol)
    moved[0] = False
    sign = np.where(uniforms(words[:, _UP]) < up, 1, -1)
    size = (MOVE_TICKS * exp(MOVE_SD * normals(words[:, _SIZE])) + 0.5).astype(np.int64)
    move = np.where(moved, sign * size, 0)
    sign[0], fresh = last_sign, moved.copy()
    fresh[0] = True

    first = PRICE_TICKS[0] + int(header[0]) % PRICE_TICKS[1]
    wide = (uniforms(words[:, _WIDE]) < WIDE).astype(np.int64)
    bid_px, ask_px = _prices(first + np.cumsum(move), wide, _gaps(words[:, _GAPS:]))
    bid_sz, ask_sz = _sizes(ou, deep, pressure, _held(sign, fresh))
    if edge:
        planted.lean(bid_sz, ask_sz, planted_sign)
    burst = exp(ou[:, BURST]) * vol
    return States(bid_px, bid_sz, ask_px, ask_sz, move, burst, uniforms(words[:, _PRINTS]), uniforms(words[:, _FOLLOW]))
