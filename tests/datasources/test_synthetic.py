"""The synthetic market: repeatable, sane, calibrated, and true to what it says of itself (data.md section 8)."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blindcast.contracts import DataSource
from blindcast.errors import DataError, WindowUnknown
from blindcast.records import I64, Grid, Window
from blindcast_datasources.columns import BOOK, TRADES
from blindcast_datasources.synthetic import Synthetic, truth

GRID = Grid(900, 15)
SHORT = Grid(60, 5)
BYTES_SHA = "4511d6b609934813ab72cab09b7bcc3182b6dbc9edf9dd5236ecd471c3ebb596"
BYTES_SCRIPT = """
import sys
sys.path[:] = {path!r}
import importlib.util
spec = importlib.util.spec_from_file_location("these_tests", {file!r})
tests = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tests)
print(tests.content_sha(tests.Synthetic(edge=0.25), tests.GRID, (7, 0)[::-1]))
"""


def numbers(table: pa.Table, name: str) -> I64:
    """A column as numbers, lists as rows of 20."""
    column = table.column(name).combine_chunks()
    if pa.types.is_fixed_size_list(column.type):
        return np.asarray(column.flatten().to_numpy().reshape(-1, column.type.list_size))
    return np.asarray(column.fill_null(0).to_numpy())


def nth(source: Synthetic, grid: Grid, k: int) -> Window:
    return source.window(source.windows(grid)[k].ref, grid)


def content(window: Window) -> bytes:
    tables = (window.opening, window.book, window.trades)
    return b"".join(numbers(table, name).tobytes() for table in tables for name in table.column_names) + window.y.tobytes()


def content_sha(source: Synthetic, grid: Grid, windows: tuple[int, ...]) -> str:
    return hashlib.sha256(b"".join(content(nth(source, grid, k)) for k in windows)).hexdigest()


# --- the same everywhere (S-01) ---


def test_the_class_is_a_data_source() -> None:
    """P-40."""
    source: DataSource = Synthetic()
    assert len(source.windows(GRID)) == 288


def test_the_digest_is_pinned() -> None:
    """S-01."""
    assert Synthetic().digest() == "37a4b81c76f86a5b6d34e3c650ddbaf886959c782c80cf92059b187f4752dab1"


def test_the_bytes_of_two_windows_are_pinned() -> None:
    """S-01: a change here is a new `version`."""
    assert content_sha(Synthetic(edge=0.25), GRID, (0, 7)) == BYTES_SHA


def test_a_window_is_made_alone_whatever_was_made_before() -> None:
    """S-01."""
    source = Synthetic(windows=9)
    alone = content(nth(Synthetic(windows=9), SHORT, 5))
    for k in (8, 0, 5, 3):
        again = content(nth(source, SHORT, k))
        assert (again == alone) == (k == 5)


def test_another_cpu_makes_the_same_bytes() -> None:
    """S-01: numpy's own exp differs once its AVX code is off; the market does not."""
    umath = pytest.importorskip("numpy._core._multiarray_umath")
    features = " ".join(umath.__cpu_dispatch__)
    script = BYTES_SCRIPT.format(path=sys.path, file=__file__)
    env = {**os.environ, "NPY_DISABLE_CPU_FEATURES": features}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], env=env, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.returncode) == (BYTES_SHA, 0), done.stderr


@settings(deadline=None, max_examples=10)
@given(st.integers(1, 300), st.integers(1, 300), st.integers(0, 2**63 - 1), st.sampled_from([0.25, 0.7, 1.0, 2.5]))
def test_a_shorter_window_is_the_beginning_of_a_longer_one(a: int, b: int, seed: int, row_s: float) -> None:
    """S-01: rows know only what lies before them."""
    short_s, long_s = sorted((a, b))
    source = Synthetic(windows=2, seed=seed, row_s=row_s)
    short, long = (nth(source, Grid(length, 1), 1) for length in (short_s, long_s))
    for name in ("book", "trades"):
        part, whole = getattr(short, name), getattr(long, name)
        assert part.equals(whole.slice(0, part.num_rows))
    assert short.opening.equals(long.opening)


@pytest.mark.parametrize("option", [{"seed": 1}, {"signal_strength": 2.0}, {"edge": 0.1}, {"row_s": 0.5}])
def test_every_option_of_content_changes_digest_and_content(option: dict[str, float]) -> None:
    """S-01, DS-08."""
    other = Synthetic(**option)  # type: ignore[arg-type]  # one option of each type
    assert other.digest() != Synthetic().digest()
    assert content(nth(other, GRID, 0)) != content(nth(Synthetic(), GRID, 0))


def test_equal_numbers_of_either_type_give_equal_digests() -> None:
    assert Synthetic(signal_strength=1, edge=-0.0, row_s=1).digest() == Synthetic().digest()


@pytest.mark.parametrize(
    "option",
    [{"windows": 0}, {"seed": -1}, {"seed": 2**63}, {"signal_strength": -1.0}, {"signal_strength": float("nan")}, {"edge": 1.5},
     {"edge": -0.1}, {"row_s": 0.0}, {"row_s": 61.0}, {"every_s": 0}, {"version": 2}],
)  # fmt: skip
def test_a_bad_option_is_refused_when_the_source_is_built(option: dict[str, float]) -> None:
    """P-31."""
    with pytest.raises(ValueError, match=next(iter(option))):
        Synthetic(**option)  # type: ignore[arg-type]  # one option of each type


# --- a sane source (DS, W-04) ---


def test_windows_lie_every_s_apart_in_time_order_with_refs_of_their_own() -> None:
    """DS-01, S-01."""
    refs = Synthetic().windows(GRID)
    assert {int(b.start_ns - a.start_ns) for a, b in pairwise(refs)} == {960 * 10**9}
    assert len({ref.ref for ref in refs}) == 288


def test_windows_may_touch_but_never_overlap() -> None:
    """W-01."""
    assert len(Synthetic(every_s=900).windows(GRID)) == 288
    tight = Synthetic(every_s=899)
    ref = tight.windows(SHORT)[0].ref
    for ask in (lambda: tight.windows(GRID), lambda: tight.dropped(GRID), lambda: tight.window(ref, GRID)):
        with pytest.raises(DataError) as caught:
            ask()
        assert caught.value.code == "window_too_long"
        assert "every_s = 900" in caught.value.do


def test_nothing_is_dropped() -> None:
    """DS-07."""
    assert list(Synthetic().dropped(GRID)) == []


@pytest.mark.parametrize("ref", ["", "-1", "0", 0, None, "x-0", "٣"])
def test_an_unknown_ref_is_refused(ref: object) -> None:
    """DS-04."""
    with pytest.raises(WindowUnknown):
        Synthetic().window(ref, GRID)  # type: ignore[arg-type]  # the wrong type is the point


def test_a_ref_beyond_the_last_or_of_another_market_or_misspelt_is_refused() -> None:
    """DS-04."""
    source = Synthetic(windows=3)
    good = source.windows(GRID)[2].ref
    stem = good[:-1]
    for ref in (f"{stem}3", f"{stem}02", f"{stem}-1", f"{stem}²", f" {good}", Synthetic(seed=1).windows(GRID)[0].ref):
        with pytest.raises(WindowUnknown):
            source.window(ref, GRID)


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 200), st.integers(1, 20), st.sampled_from([0.3, 1.0, 1.7, 7.0]), st.sampled_from([0.0, 0.25]))
def test_every_window_has_the_pools_columns_inside_its_span_and_a_sane_book(window_s: int, steps: int, row_s: float, edge: float) -> None:
    """DS-05, DS-06, DP-02, W-04."""
    grid = Grid(window_s, steps)
    source = Synthetic(windows=2, row_s=row_s, edge=edge)
    ref = source.windows(grid)[1]
    window = source.window(ref.ref, grid)
    assert window.book.schema.equals(BOOK)
    assert window.opening.schema.equals(BOOK)
    assert window.trades.schema.equals(TRADES)
    assert window.opening.num_rows == 1
    assert window.book.num_rows == ref.rows
    assert window.trades.num_rows <= ref.prints
    assert numbers(window.opening, "ts_ns")[0] < window.start_ns == ref.start_ns
    for table in (window.book, window.trades):
        ts = numbers(table, "ts_ns")
        assert (np.diff(ts) >= 0).all()
        assert ((ts >= window.start_ns) & (ts < window.start_ns + grid.window_ns)).all()
    for table in (window.opening, window.book):
        bid, ask = numbers(table, "bid_px"), numbers(table, "ask_px")
        assert (np.diff(bid) < 0).all()
        assert (np.diff(ask) > 0).all()
        assert (bid[:, 0] < ask[:, 0]).all()
        assert (bid > 0).all()
        assert all((numbers(table, name) > 0).all() for name in ("bid_sz", "ask_sz"))
    assert set(numbers(window.trades, "side").tolist()) <= {1, -1}


def test_a_print_takes_the_best_price_of_the_newest_row() -> None:
    window = nth(Synthetic(), GRID, 0)
    row = np.searchsorted(numbers(window.book, "ts_ns"), numbers(window.trades, "ts_ns"), side="right") - 1
    bought = numbers(window.trades, "side") > 0
    early = row < 0
    best = np.where(bought, numbers(window.book, "ask_px")[row, 0], numbers(window.book, "bid_px")[row, 0])
    assert (numbers(window.trades, "px")[~early] == best[~early]).all()


@pytest.mark.parametrize("steps", [1, 7, 15, 90])
@pytest.mark.parametrize("row_s", [1.0, 0.7, 2.0])
def test_y_is_the_newest_mid_at_or_before_each_knot(steps: int, row_s: float) -> None:
    """DS-02, G-02, G-03."""
    grid = Grid(900, steps)
    window = nth(Synthetic(row_s=row_s), grid, 3)
    ts = np.concatenate((numbers(window.opening, "ts_ns"), numbers(window.book, "ts_ns")))
    mid2 = np.concatenate([numbers(t, "bid_px")[:, 0] + numbers(t, "ask_px")[:, 0] for t in (window.opening, window.book)])
    newest = mid2[np.searchsorted(ts, grid.knots_ns(window.start_ns), side="right") - 1]
    assert window.y.tobytes() == (1e4 * (newest - newest[0]) / newest[0]).tobytes()
    assert window.y.dtype == np.float64
    assert window.y[0] == 0.0
    assert not window.y.flags.writeable


def test_a_row_on_the_last_knot_counts_for_y_and_is_not_in_the_window() -> None:
    """G-02 (equal counts), DS-05: with rows 1.6 s apart one lies 900 s after the start."""
    source = Synthetic(row_s=1.6)
    window, longer = (nth(source, Grid(window_s, 1), 2) for window_s in (900, 902))
    last = longer.book.slice(window.book.num_rows, 1)
    assert numbers(last, "ts_ns")[0] == window.start_ns + 900 * 10**9
    mid2, start = (numbers(t, "bid_px")[0, 0] + numbers(t, "ask_px")[0, 0] for t in (last, window.opening))
    assert window.y[1] == 1e4 * (mid2 - start) / start


@pytest.mark.parametrize("edge", [0.0, 0.25])
def test_grids_agree_bit_for_bit(edge: float) -> None:
    """DS-03; with an edge too, since its start does not hang on the steps."""
    source = Synthetic(edge=edge)
    for k in range(3):
        coarse, fine = (nth(source, Grid(900, steps), k) for steps in (15, 90))
        assert coarse.y.tobytes() == fine.y[::6].tobytes()
        assert coarse.book.equals(fine.book)


# --- what it says of itself (S-04, S-05) ---


def test_the_twin_is_the_market_without_signal_and_edge() -> None:
    """S-04: so it has that market's digest, and a holdout budget sees one pool."""
    twin, null = Synthetic(edge=0.5, twin=True), Synthetic(signal_strength=0.0)
    assert twin.digest() == null.digest()
    assert content(nth(twin, SHORT, 1)) == content(nth(null, SHORT, 1))


def test_truth_says_that_the_market_is_invented_and_what_is_planted() -> None:
    """S-05."""
    assert truth(Synthetic(edge=0.25)) == {
        "invented": True, "signal_strength": 1.0, "edge": 0.25, "twin": False, "seed": 0, "version": 1,
    }  # fmt: skip
    assert truth(Synthetic(edge=0.25, twin=True))["edge"] == 0.0
