"""The model of the synthetic market: it looks like real streams, and its signal and edge are what they claim (data.md S-02 to S-04)."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pytest

from blindcast.records import F64, I64, Grid, Window
from blindcast_datasources.synthetic import Synthetic

GRID = Grid(900, 15)
SHORT = Grid(60, 5)


def numbers(table: pa.Table, name: str) -> I64:
    """A column as numbers, lists as rows of 20."""
    column = table.column(name).combine_chunks()
    if pa.types.is_fixed_size_list(column.type):
        return np.asarray(column.flatten().to_numpy().reshape(-1, column.type.list_size))
    return np.asarray(column.fill_null(0).to_numpy())


def nth(source: Synthetic, grid: Grid, k: int) -> Window:
    return source.window(source.windows(grid)[k].ref, grid)


@cache
def default_windows(strength: float = 1.0) -> tuple[Window, ...]:
    """64 windows of 900 s."""
    source = Synthetic(signal_strength=strength)
    return tuple(source.window(ref.ref, GRID) for ref in source.windows(GRID)[:64])


# --- calibration (S-02, S-03) ---


def cells(window: Window) -> dict[str, I64]:
    """The state at each whole second, opening included."""
    ts = np.concatenate((numbers(window.opening, "ts_ns"), numbers(window.book, "ts_ns")))
    newest = np.searchsorted(ts, window.grid.knots_ns(window.start_ns)[0] + np.arange(901) * 10**9, side="right") - 1
    names = ("bid_px", "bid_sz", "ask_px", "ask_sz")
    return {name: np.concatenate((numbers(window.opening, name), numbers(window.book, name)))[newest] for name in names}


def correlation(a: F64, b: F64) -> float:
    return float(np.corrcoef(a, b)[0, 1])


def imbalance(book: dict[str, I64], levels: int) -> F64:
    bid, ask = book["bid_sz"][:, :levels].sum(axis=1), book["ask_sz"][:, :levels].sum(axis=1)
    return np.asarray((bid - ask) / (bid + ask))


def order_flow(book: dict[str, I64]) -> F64:
    """Cont's OFI of the best level between seconds."""
    bid, ask, bid_sz, ask_sz = (book[name][:, 0] for name in ("bid_px", "ask_px", "bid_sz", "ask_sz"))
    bought = (bid[1:] >= bid[:-1]) * bid_sz[1:] - (bid[1:] <= bid[:-1]) * bid_sz[:-1]
    sold = (ask[1:] <= ask[:-1]) * ask_sz[1:] - (ask[1:] >= ask[:-1]) * ask_sz[:-1]
    return np.asarray(bought - sold, dtype=np.float64)


def measured(window: Window) -> dict[str, float]:
    """S-03's numbers of one window, on a grid of 1 s."""
    book = cells(window)
    log_mid = np.log(book["bid_px"][:, 0] + book["ask_px"][:, 0])
    r = 1e4 * np.diff(log_mid)
    over = {h: 1e4 * (log_mid[h:] - log_mid[:-h]) for h in (1, 10, 60)}
    found = {
        "sd_1s_bps": float(r.std(ddof=1)),
        "vr_10s": float(over[10].var() / (10 * r.var())),
        "kurt_1s": float(((r - r.mean()) ** 4).mean() / r.var() ** 2 - 3),
        "acf_r_1": correlation(r[1:], r[:-1]),
        "acf_absr_1": correlation(abs(r[1:]), abs(r[:-1])),
        "moves_1s": float((r != 0).mean()),
        "p_spread_1tick": float((book["ask_px"][:, 0] - book["bid_px"][:, 0] == 1).mean()),
        "logsd_L1": float(np.log(np.concatenate((book["bid_sz"][:, 0], book["ask_sz"][:, 0]))).std()),
        "L20_bps": float(np.median(1e4 * (book["ask_px"][:, 19] - book["bid_px"][:, 19]) / (2 * book["bid_px"][:, 0]))),
    }
    for k in (2, 5):
        found[f"size_ratio_{k}"] = float(np.median([book[s][:, k - 1] / book[s][:, 0] for s in ("bid_sz", "ask_sz")]))
    for levels, h in ((1, 1), (1, 10), (1, 60), (20, 1), (20, 10)):
        found[f"ic_imb{levels}_{h}s"] = correlation(imbalance(book, levels)[:-h], over[h])
    for h in (1, 10):
        lean, flow = imbalance(book, 1), order_flow(book).reshape(-1, h).sum(axis=1)
        found[f"acf_imb1_{h}s"] = correlation(lean[h:], lean[:-h])
        found[f"ofi_r2_{h}s"] = correlation(flow, r.reshape(-1, h).sum(axis=1)) ** 2
    return found | measured_tape(window)


def measured_tape(window: Window) -> dict[str, float]:
    side, size = numbers(window.trades, "side").astype(np.float64), numbers(window.trades, "sz")
    counts = np.bincount((numbers(window.trades, "ts_ns") - window.start_ns) // 10**9, minlength=window.grid.window_s)
    return {
        "trades_per_s": float(counts.mean()),
        "acf_sign_1": correlation(side[1:], side[:-1]),
        "acf_sign_10": correlation(side[10:], side[:-10]),
        "trade_p99_ratio": float(np.quantile(size, 0.99) / np.median(size)),
        "fano_1s": float(counts.var() / counts.mean()),
    }


RANGES = {
    "sd_1s_bps": (0.318, 1.449), "vr_10s": (0.87, 1.89), "kurt_1s": (1.6, 13), "acf_r_1": (-0.01, 0.26), "acf_absr_1": (0, 0.25),
    "moves_1s": (0.08, 0.65), "p_spread_1tick": (0.984, 1), "size_ratio_2": (0.008, 0.385), "size_ratio_5": (0.008, 0.61),
    "logsd_L1": (1.3, 2.0), "L20_bps": (0.76, 3.5), "trades_per_s": (0.16, 41), "ic_imb1_1s": (0.134, 0.386),
    "ic_imb1_10s": (0.037, 0.34), "ic_imb1_60s": (-0.11, 0.21), "ic_imb20_1s": (0.06, 0.385), "ic_imb20_10s": (-0.04, 0.39),
    "acf_imb1_1s": (0.19, 0.88), "acf_imb1_10s": (-0.01, 0.45), "ofi_r2_1s": (0.11, 0.42), "ofi_r2_10s": (0.33, 0.70),
    "acf_sign_1": (0.72, 0.84), "acf_sign_10": (0.18, 0.61), "trade_p99_ratio": (23, 490), "fano_1s": (6.8, 221),
}  # fmt: skip


@cache
def medians() -> dict[str, float]:
    found = [measured(window) for window in default_windows()]
    return {name: float(np.median([one[name] for one in found])) for name in found[0]}


@pytest.mark.parametrize("name", RANGES)
def test_the_market_looks_like_real_streams(name: str) -> None:
    """S-03: all 25 numbers, the range widened by a tenth of its width."""
    low, high = RANGES[name]
    slack = 0.1 * (high - low)
    assert low - slack <= medians()[name] <= high + slack


# --- signal, edge, twin (S-04, S-05) ---


def reach_of_segments(steps: int) -> F64:
    """F64[G]: what the official grader pays, per bps of each segment, for +1 held from anchor 1 (G-30, alpha 1)."""
    reach = np.zeros(steps)
    for i in range(1, steps):
        for j in range(i + 1, steps + 1):
            reach[i:j] += (1 + (1 - i / steps)) * (j - i) / steps
    return reach


def planted_sign(window: Window) -> int:
    """Read off levels 16 to 20 of the first row."""
    bid, ask = (numbers(window.book, name)[0, 15:20] for name in ("bid_sz", "ask_sz"))
    return 1 if bid.sum() > ask.sum() else -1


def pooled_ic(strength: float) -> float:
    """Mean I(10) of 60 s against the next 60 s, over all windows."""
    windows = default_windows(strength)
    lean = np.array([imbalance(cells(w), 10)[1:].reshape(15, 60).mean(axis=1)[:-1] for w in windows])
    then = np.array([np.diff(w.y)[1:] for w in windows])
    return correlation(lean.ravel(), then.ravel())


def test_without_signal_the_book_says_nothing() -> None:
    """S-04, strength 0: |IC| below 3 standard errors, 64 windows of 14 pairs."""
    assert abs(pooled_ic(0.0)) < 3 / np.sqrt(64 * 14)


def test_with_strength_five_the_market_is_easy() -> None:
    """S-04."""
    assert pooled_ic(5.0) >= 0.3


def test_levels_16_to_20_lean_by_the_planted_sign_in_every_row() -> None:
    """S-04."""
    source = Synthetic(edge=0.05)
    signs = []
    for k in range(12):
        window = nth(source, SHORT, k)
        bid, ask = (numbers(window.book, name)[:, 15:20] for name in ("bid_sz", "ask_sz"))
        signs.append(planted_sign(window))
        assert ((bid - ask) * signs[-1] >= 0).all()
    assert set(signs) == {1, -1}


def test_a_bet_on_the_planted_sign_has_the_planted_ic() -> None:
    """S-04: rho .25 +- .05, paired with the same market without edge, so that 400 windows suffice."""
    edged, plain = Synthetic(windows=400, edge=0.25), Synthetic(windows=400)
    reach, bets, luck = reach_of_segments(15), [], []
    for with_edge, without in zip(edged.windows(GRID), plain.windows(GRID), strict=True):
        window = edged.window(with_edge.ref, GRID)
        sign = planted_sign(window)
        bets.append(sign * float((reach * np.diff(window.y)).sum()))
        luck.append(sign * float((reach * np.diff(plain.window(without.ref, GRID).y)).sum()))
    ic = (np.mean(bets) - np.mean(luck)) / np.std(bets, ddof=1)
    assert ic == pytest.approx(0.25, abs=0.05)


def test_the_edge_begins_after_a_fifteenth_of_the_window() -> None:
    """S-04: before knot 1 of 15 the moves are those of the market without edge."""
    for k in range(8):
        edged, plain = (nth(Synthetic(edge=edge), GRID, k) for edge in (1.0, 0.0))
        assert edged.y[:2].tobytes() == plain.y[:2].tobytes()
        assert edged.y.tobytes() != plain.y.tobytes()


def test_the_twin_shares_times_and_sizes_of_moves_and_prints() -> None:
    """S-04."""
    base, twin = (nth(Synthetic(edge=0.5, twin=twin), GRID, 4) for twin in (False, True))
    for name in ("ts_ns", "sz"):
        assert numbers(base.trades, name).tobytes() == numbers(twin.trades, name).tobytes()
    moves = [np.diff(cells(window)["bid_px"][:, 0] + cells(window)["ask_px"][:, 0]) for window in (base, twin)]
    assert (abs(moves[0]) == abs(moves[1])).all()
    assert (moves[0] != moves[1]).any()
