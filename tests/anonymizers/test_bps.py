"""The basic blinding: vector DV-24, and the rules for every window (data.md DA-01 to DA-05, AN checks)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from blindcast.contracts import Anonymizer
from blindcast.records import F32, Blinded, Grid, Window
from blindcast_anonymizers.bps import COLUMNS, Bps

SALT = bytes(32)
SECOND = 10**9
START_NS = 1_700_000_000 * SECOND
LISTS = pa.list_(pa.int64(), 20)
Level = tuple[int, int]  # ticks, lots
State = tuple[int, Sequence[Level], Sequence[Level]]  # ns since the start, bids, asks
Print = tuple[int, int, int, int]  # ns since the start, lots, side, kind


def side(levels: Sequence[Level], part: int) -> list[int | None]:
    return [level[part] for level in levels] + [None] * (20 - len(levels))


def book_table(states: Sequence[State], start_ns: int) -> pa.Table:
    lists = {
        f"{name}_{field}": pa.array([side(levels, part) for levels in book], type=LISTS)
        for name, book in (("bid", [state[1] for state in states]), ("ask", [state[2] for state in states]))
        for part, field in enumerate(("px", "sz"))
    }
    n = len(states)
    return pa.table(
        {
            "ts_ns": pa.array([start_ns + state[0] for state in states], pa.int64()),
            "recv_ns": pa.nulls(n, pa.int64()),
            "seq": pa.nulls(n, pa.int64()),
            "flags": pa.array([0] * n, pa.uint16()),
            **{name: lists[name] for name in ("bid_px", "bid_sz", "ask_px", "ask_sz")},
        }
    )


def trades_table(prints: Sequence[Print], start_ns: int) -> pa.Table:
    return pa.table(
        {
            "ts_ns": pa.array([start_ns + p[0] for p in prints], pa.int64()),
            "recv_ns": pa.nulls(len(prints), pa.int64()),
            "px": pa.array([10_000] * len(prints), pa.int64()),
            "sz": pa.array([p[1] for p in prints], pa.int64()),
            "side": pa.array([p[2] for p in prints], pa.int8()),
            "trade_id": pa.nulls(len(prints), pa.int64()),
            "kind": pa.array([p[3] for p in prints], pa.uint8()),
            "n": pa.array([1] * len(prints), pa.uint16()),
        }
    )


OPENING: State = (-1, [(10_000, 40), (9_999, 10)], [(10_001, 20), (10_003, 30)])


def window_of(
    states: Sequence[State], prints: Sequence[Print] = (), *, opening: State = OPENING, grid: Grid | None = None, start_ns: int = START_NS
) -> Window:
    """A window whose y follows the states (G-02, G-03)."""
    grid = grid or Grid(60, 4)
    valid = [s for s in (opening, *states) if s[1] and s[2] and s[1][0][0] <= s[2][0][0]]
    mids = [next(s[1][0][0] + s[2][0][0] for s in reversed(valid) if s[0] <= knot or s is valid[0]) for knot in grid.knots_ns(0).tolist()]
    y = np.array([1e4 * (mid - mids[0]) / mids[0] for mid in mids])
    y.flags.writeable = False
    tables = {"book": book_table(states, start_ns), "trades": trades_table(prints, start_ns), "opening": book_table([opening], start_ns)}
    return Window(ref="w", start_ns=start_ns, grid=grid, y=y, tick_size="0.01", lot_size="0.001", **tables)


def shown_bytes(blinded: Blinded) -> bytes:
    arrays = (blinded.ladder, blinded.events, blinded.y, blinded.ladder_until, blinded.events_until)
    return b"".join(array.tobytes() for array in arrays) + repr((blinded.columns, blinded.sign)).encode()


def column(blinded: Blinded, name: str) -> F32:
    return blinded.ladder[:, blinded.columns.index(name)]


def f32(*values: float) -> list[float]:
    return [float(value) for value in np.array(values, dtype=np.float32)]


# --- vectors ---

LATER: State = (10 * SECOND, [(10_002, 25)], [(10_004, 50)])


def test_an_opening_shown_again_has_the_levels_and_weights_of_the_page() -> None:
    """DV-24."""
    row = Bps().blind(window_of([(0, *OPENING[1:])]), SALT).ladder[0]
    assert row[:5].tolist() == f32(0, -0.499975001, 1.6, -1.499925004, 0.4)
    assert row[41:45].tolist() == f32(0.499975001, 0.8, 2.499875006, 1.2)


def test_a_later_row_a_print_and_y_are_in_the_openings_units() -> None:
    """DV-24."""
    blinded = Bps().blind(window_of([LATER], [(11 * SECOND, 5, 1, 0)]), SALT)
    assert blinded.ladder[0, :3].tolist() == f32(10, 1.499925004, 1)
    assert blinded.ladder[0, 41:43].tolist() == f32(3.499825009, 2)
    assert blinded.y.tolist() == [0.0, *f32(2.499875006) * 4]
    assert blinded.events.tolist() == [f32(11, 0.2)]


# --- shape (AN-09, AN-10, DA-01) ---


def test_the_class_is_an_anonymizer_without_strength() -> None:
    """P-40, DA-06."""
    anonymizer: Anonymizer = Bps()
    assert anonymizer.strength == "basic"


def test_the_columns_are_those_of_the_page() -> None:
    """DA-01, AN-10."""
    assert len(COLUMNS) == 81
    assert COLUMNS[:4] == ("t", "lo_L1", "lo_W1", "lo_L2")
    assert COLUMNS[40:43] == ("lo_W20", "hi_L1", "hi_W1")
    assert COLUMNS[-1] == "hi_W20"


def test_what_is_shown_names_nothing() -> None:
    """AN-04, FE-40."""
    blinded = Bps().blind(window_of([LATER]), SALT)
    words = " ".join((*blinded.columns, repr(Bps()), Bps().describe(), str(blinded.columns))).lower()
    assert not [
        word for word in ("price", "bid", "ask", "symbol", "venue", "btc", "usd", "tick", "lot ") if word in words.replace("task", "")
    ]
    assert "\n" not in Bps().describe()


def test_a_window_without_rows_or_prints_keeps_its_shape() -> None:
    """AN-10, W-03."""
    blinded = Bps().blind(window_of([]), SALT)
    assert blinded.ladder.shape == (0, 81)
    assert blinded.events.shape == (0, 2)
    assert blinded.ladder.dtype == blinded.events.dtype == np.float32
    assert blinded.ladder_until.tolist() == blinded.events_until.tolist() == [0] * 5


def test_arrays_are_c_ordered_and_read_only() -> None:
    blinded = Bps().blind(window_of([LATER], [(1, 1, 1, 0)]), SALT)
    for array in (blinded.ladder, blinded.events, blinded.y, blinded.ladder_until, blinded.events_until):
        assert array.flags.c_contiguous
        assert not array.flags.writeable


def test_a_missing_level_is_nan_in_level_and_weight_alike() -> None:
    """DA-01: one NaN for all of them, so that bytes agree."""
    ladder = Bps().blind(window_of([LATER]), SALT).ladder
    missing = np.isnan(ladder[0])
    assert missing[3:41].all()
    assert missing[43:].all()
    assert missing.sum() == 76
    assert set(ladder[:, missing].view(np.uint32).ravel().tolist()) == {0x7FC00000}


# --- what is left out (DA-03) ---


def test_crossed_locked_and_one_sided_rows_are_not_shown() -> None:
    """DA-03, DR-21."""
    level = [(10_000, 5)]
    states: list[State] = [
        (1, [(10_001, 5)], level),
        (2, level, level),
        (3, level, []),
        (4, [], level),
        (5, [], []),
        (6, [(9_999, 5)], level),
    ]
    blinded = Bps().blind(window_of(states), SALT)
    assert column(blinded, "lo_L1").tolist() == f32(1e4 * (19_998 - 20_001) / 20_001)
    assert blinded.ladder_until.tolist() == [0, 1, 1, 1, 1]


def test_only_prints_of_the_market_with_a_known_side_are_shown() -> None:
    """DA-03, DR-31."""
    prints = [(1, 25, 1, 0), (2, 25, 0, 0), (3, 25, 1, 1), (4, 25, -1, 2), (5, 50, -1, 0)]
    blinded = Bps().blind(window_of([], prints), SALT)
    assert blinded.events[:, 1].tolist() == [1.0, -2.0]


def test_a_locked_opening_gives_units_all_the_same() -> None:
    """W-02: it is valid."""
    opening: State = (-1, [(10_000, 10)], [(10_000, 30)])
    row = Bps().blind(window_of([(0, [(9_999, 20)], [(10_001, 40)])], opening=opening), SALT).ladder[0]
    assert row[1:3].tolist() == f32(-1, 1)


# --- rules for every window ---

prices = st.integers(10, 60).flatmap(
    lambda best: st.tuples(
        st.lists(st.integers(1, best), min_size=0, max_size=20, unique=True), st.lists(st.integers(best - 1, 80), max_size=20, unique=True)
    )
)
lots = st.integers(1, 10**9)


@st.composite
def states(draw: st.DrawFn, valid: bool = False) -> tuple[list[Level], list[Level]]:
    bids, asks = draw(prices)
    if valid:
        bids, asks = [*bids, 5], [*asks, 90]
        asks = [ask for ask in asks if ask > max(bids)]
    book = sorted(set(bids), reverse=True)[:20], sorted(set(asks))[:20]
    return [(px, draw(lots)) for px in book[0]], [(px, draw(lots)) for px in book[1]]


times = st.one_of(st.integers(0, 60 * SECOND - 1), st.sampled_from([0, 15 * SECOND, 15 * SECOND - 1, 30 * SECOND, 45 * SECOND + 1]))


@st.composite
def windows(draw: st.DrawFn) -> Window:
    grid = Grid(60, draw(st.sampled_from([1, 4, 7])))
    rows = [(t, *draw(states())) for t in sorted(draw(st.lists(times, max_size=12)))]
    kinds = st.tuples(lots, st.sampled_from([1, -1, 0]), st.sampled_from([0, 0, 0, 1, 2]))
    prints = [(t, *draw(kinds)) for t in sorted(draw(st.lists(times, max_size=12)))]
    return window_of(rows, prints, opening=(-1, *draw(states(valid=True))), grid=grid)


@settings(deadline=None, max_examples=60)
@given(windows())
def test_values_are_finite_float32_and_y_starts_at_zero(window: Window) -> None:
    """AN-01, AN-09; view.y is float64 that float32 can hold."""
    blinded = Bps().blind(window, SALT)
    assert blinded.y[0] == 0.0
    assert not np.signbit(blinded.y[0])
    assert blinded.y.dtype == np.float64
    assert (blinded.y == blinded.y.astype(np.float32)).all()
    assert np.isfinite(blinded.events).all()
    assert not np.isinf(blinded.ladder).any()
    assert (np.isnan(blinded.ladder[:, 1::2]) == np.isnan(blinded.ladder[:, 2::2])).all()


@settings(deadline=None, max_examples=60)
@given(windows())
def test_sides_never_cross_and_levels_go_outwards(window: Window) -> None:
    """AN-07."""
    ladder = Bps().blind(window, SALT).ladder
    low, high = ladder[:, 1:41:2], ladder[:, 41::2]
    assert (low[:, 0] < high[:, 0]).all()
    for steps in (np.diff(-low, axis=1), np.diff(high, axis=1)):
        assert (np.isnan(steps) | (steps > 0)).all()


@settings(deadline=None, max_examples=60)
@given(windows())
def test_counts_say_which_rows_lie_before_each_knot(window: Window) -> None:
    """AN-08, in whole ns."""
    blinded = Bps().blind(window, SALT)
    shown = [
        row["ts_ns"] for row in window.book.to_pylist() if row["bid_px"][0] and row["ask_px"][0] and row["bid_px"][0] < row["ask_px"][0]
    ]
    prints = [row["ts_ns"] for row in window.trades.to_pylist() if row["kind"] == 0 and row["side"]]
    for ts, until, table in ((shown, blinded.ladder_until, blinded.ladder), (prints, blinded.events_until, blinded.events)):
        assert until.tolist() == [sum(t < knot for t in ts) for knot in window.grid.knots_ns(window.start_ns).tolist()]
        assert until[0] == 0
        assert until[-1] == len(table)
        assert (np.diff(table[:, 0]) >= 0).all()


@settings(deadline=None, max_examples=60)
@given(windows(), st.data())
def test_the_future_has_no_say(window: Window, data: st.DataObject) -> None:
    """AN-02, DA-02: later rows, prints and knots replaced, what came before keeps its bytes."""
    anchor = data.draw(st.integers(0, window.grid.steps - 1))
    knot = int(window.grid.knots_ns(window.start_ns)[anchor])
    before = {}
    for name in ("book", "trades"):
        table = getattr(window, name)
        before[name] = table.filter(pa.array(table["ts_ns"].to_numpy() < knot))
    late = [(knot - window.start_ns, *data.draw(states()))] * 2
    later = {"book": book_table(late, window.start_ns), "trades": trades_table([(knot - window.start_ns, 7, 1, 0)], window.start_ns)}
    y = np.concatenate((window.y[: anchor + 1], data.draw(st.lists(st.floats(-99, 99), min_size=len(window.y), max_size=len(window.y)))))
    other = evolve(window, y=y[: len(window.y)], **{name: pa.concat_tables([before[name], later[name]]) for name in before})
    one, two = (Bps().blind(w, SALT) for w in (window, other))
    for name in ("ladder", "events"):
        counts = [getattr(b, f"{name}_until")[: anchor + 1].tolist() for b in (one, two)]
        assert counts[0] == counts[1]
        rows = counts[0][anchor]
        assert getattr(one, name)[:rows].tobytes() == getattr(two, name)[:rows].tobytes()
    assert one.y[: anchor + 1].tobytes() == two.y[: anchor + 1].tobytes()


@settings(deadline=None, max_examples=30)
@given(windows(), st.integers(0, 2**60))
def test_only_whole_numbers_and_time_since_the_start_have_a_say(window: Window, shift_ns: int) -> None:
    """DA-04, AN-05: another tick size, lot size, start, ref, salt and metadata give the same bytes."""
    moved = {}
    for name in ("book", "trades", "opening"):
        table = getattr(window, name)
        ts = pa.array(table["ts_ns"].to_numpy() + shift_ns)
        moved[name] = table.set_column(0, "ts_ns", ts).replace_schema_metadata({"symbol": "x"})
    other = evolve(window, start_ns=window.start_ns + shift_ns, ref="v", tick_size="7.3", lot_size="1000", **moved)
    assert shown_bytes(Bps().blind(window, SALT)) == shown_bytes(Bps().blind(other, b"\1" * 32))


@settings(deadline=None, max_examples=30)
@given(windows())
def test_a_window_is_left_as_it_was(window: Window) -> None:
    """AN-06."""
    before = [getattr(window, name).to_pylist() for name in ("book", "trades", "opening")], window.y.tobytes()
    first = shown_bytes(Bps().blind(window, SALT))
    assert ([getattr(window, name).to_pylist() for name in ("book", "trades", "opening")], window.y.tobytes()) == before
    assert shown_bytes(Bps().blind(window, SALT)) == first


@settings(deadline=None, max_examples=30)
@given(windows(), st.integers(2, 1000))
def test_prices_and_sizes_times_a_whole_number_show_the_same(window: Window, factor: int) -> None:
    """AN-03: nothing moves by more than 1e-4 bps."""
    scaled = {}
    for name in ("book", "opening"):
        rows = window_rows(getattr(window, name), factor)
        scaled[name] = book_table(rows, 0)
    one, two = Bps().blind(window, SALT), Bps().blind(evolve(window, **scaled), SALT)
    np.testing.assert_allclose(one.ladder, two.ladder, rtol=1e-6, atol=1e-4)


def window_rows(table: pa.Table, factor: int) -> list[State]:
    """The states again, all numbers times `factor`."""

    def pairs(row: dict[str, list[int | None]], name: str) -> list[Level]:
        both = zip(row[f"{name}_px"], row[f"{name}_sz"], strict=True)
        return [(px * factor, sz * factor) for px, sz in both if px is not None and sz is not None]

    return [(row["ts_ns"], pairs(row, "bid"), pairs(row, "ask")) for row in table.to_pylist()]


def test_chunks_and_slices_of_a_table_show_the_same() -> None:
    """A source may give any layout of the columns."""
    rows: list[State] = [(k * SECOND, [(10_000 + k, 5 + k)], [(10_002 + k, 3)]) for k in range(8)]
    window = window_of(rows, [(k * SECOND, 1 + k, 1, 0) for k in range(8)])
    parts = {name: pa.concat_tables([getattr(window, name).slice(0, 3), getattr(window, name).slice(3)]) for name in ("book", "trades")}
    assert shown_bytes(Bps().blind(evolve(window, **parts), SALT)) == shown_bytes(Bps().blind(window, SALT))
    tail = evolve(window, book=window.book.slice(5))
    assert Bps().blind(tail, SALT).ladder.tobytes() == Bps().blind(window, SALT).ladder[5:].tobytes()


# --- levels that float32 makes equal (DA-01) ---


def test_equal_levels_are_moved_outwards_by_one_ulp_each() -> None:
    """DA-01: a price in billions of ticks, far from the start."""
    opening: State = (-1, [(10**8, 1)], [(10**8 + 1, 1)])
    far = 50 * 10**8
    state: State = (0, [(far - k, 1) for k in range(20)], [(far + 1 + k, 1) for k in range(20)])
    row = Bps().blind(window_of([state], opening=opening), SALT).ladder[0]
    low, high = row[1:41:2], row[41::2]
    plain = np.float32(1e4 * (2 * far - 2 * 10**8 - 1) / (2 * 10**8 + 1))
    assert low[0] == np.nextafter(plain, np.float32(-np.inf))
    assert high[0] == np.nextafter(plain, np.float32(np.inf))
    assert (np.nextafter(low[:-1], np.float32(-np.inf)) == low[1:]).all()
    assert (np.nextafter(high[:-1], np.float32(np.inf)) == high[1:]).all()
