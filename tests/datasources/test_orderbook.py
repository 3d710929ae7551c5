"""Windows of a pool: slots, reasons, truth."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blindcast.errors import DataError, WindowUnknown
from blindcast.records import Grid
from blindcast_datasources.lake import Lake
from blindcast_datasources.orderbook import OrderBook
from blindcast_datasources.pool import Index
from blindcast_datasources.slots import SlotRules, judge

START_S = 1_735_689_600
SECOND = 10**9
MINUTE = Grid(60, 15)


def _index(times_ns: Sequence[int], flags: Sequence[int] | None = None) -> Index:
    bits = np.array(flags if flags is not None else [0] * len(times_ns), dtype=np.uint16)
    return Index(np.array(times_ns, dtype=np.int64), bits, np.flatnonzero((bits & 272) == 0).astype(np.int64))


def _rules(
    window_s: float = 60, every_s: float = 60, phase_s: int = 0, max_stale_s: float = 60, shares: dict[str, float] | None = None
) -> SlotRules:
    most = {"max_short": 0.05, "max_unsound": 0.005, "max_clock": 0.01} | (shares or {})
    return SlotRules(int(window_s * SECOND), int(every_s * SECOND), phase_s * SECOND, round(max_stale_s * SECOND), **most)


def test_a_state_exactly_as_old_as_allowed_is_fine() -> None:
    """DV-22."""
    for second, reasons in ((5 * SECOND, ()), (5 * SECOND + 1, ("stale",))):
        times = [0, second, *(s * SECOND for s in range(6, 121))]
        slots = judge(_index(times), 0, 120 * SECOND, [], _rules(max_stale_s=5))
        assert slots.reasons[0] == reasons


def test_slots_start_at_phase_and_repeat_by_every() -> None:
    """DV-23."""
    times = list(range(0, 400 * SECOND, SECOND))
    slots = judge(_index(times), 0, times[-1], [], _rules(phase_s=17, every_s=90))
    assert (slots.start // SECOND).tolist() == [-73 + 90, 107, 197, 287, 377]
    assert slots.reasons[:4] == ((),) * 4
    assert slots.reasons[4] == ("truncated",)


def test_a_span_has_a_slot_for_every_window_that_meets_it() -> None:
    """DV-23: 305, no_start 1, truncated 1."""
    first, last = 1430438405943 * 10**6, 1430456682957 * 10**6
    times = [first, *range(first - first % SECOND + SECOND, last, SECOND), last]
    slots = judge(_index(times), first, last, [], _rules())
    assert len(slots.start) == 305
    assert [reasons for reasons in slots.reasons if reasons] == [("no_start",), ("truncated",)]


def test_crossed_and_one_sided_states_are_no_start_and_go_stale() -> None:
    """W-02, G-02."""
    times = [s * SECOND for s in range(200)]
    slots = judge(
        _index(times, [16] * 70 + [256] * 50 + [0] * 80), 0, 199 * SECOND, [], _rules(shares={"max_unsound": 1.0, "max_short": 1.0})
    )
    assert slots.reasons == (("no_start",), ("no_start",), (), ("truncated",))
    slots = judge(_index(times, [0] * 30 + [16] * 70 + [0] * 100), 0, 199 * SECOND, [], _rules(shares={"max_unsound": 1.0}))
    assert slots.reasons == ((), ("stale",), (), ("truncated",))


def test_shares_are_exceeded_only_beyond_their_limit() -> None:
    """W-02: more than."""
    times = [s * SECOND for s in range(121)]
    for flag, name, share in (
        (8, "short", "max_short"),
        (4, "unsound", "max_unsound"),
        (16, "unsound", "max_unsound"),
        (32, "clock", "max_clock"),
    ):
        for marked, reasons in ((6, ()), (7, (name,))):
            flags = [0] + [flag] * marked + [0] * (120 - marked)
            slots = judge(_index(times, flags), 0, 120 * SECOND, [], _rules(shares={share: 0.1}))
            assert slots.reasons[0] == reasons


def test_a_gap_drops_the_windows_it_meets() -> None:
    """W-02: (from, to) meets [s, s + T]; an open one ends at t1."""
    times = [s * SECOND for s in range(241)]
    gap = {"from_ns": 60 * SECOND, "to_ns": 61 * SECOND, "reason": ""}
    assert judge(_index(times), 0, 240 * SECOND, [gap], _rules()).reasons == ((), ("gap",), (), (), ("truncated",))
    gap = {"from_ns": 179 * SECOND, "to_ns": None, "reason": ""}
    assert judge(_index(times), 0, 240 * SECOND, [gap], _rules()).reasons[2:4] == (("gap",), ("gap",))


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.integers(0, 3000), min_size=2, max_size=60),
    st.integers(1, 400),
    st.integers(0, 99),
    st.integers(0, 300),
    st.lists(st.booleans(), min_size=60, max_size=60),
)
def test_reasons_are_those_of_a_plain_reading(times: list[int], window: int, phase: int, stale: int, good: list[bool]) -> None:
    """W-02, instant by instant, on a lattice of half units."""
    times = sorted(times)
    flags = [0 if good[k] else 16 for k in range(len(times))]
    rules = SlotRules(window * 2, window * 2, phase * 2, stale * 2, 1.0, 1.0, 1.0)
    t1 = 2 * times[-1]
    slots = judge(_index([2 * t for t in times], flags), 2 * times[0], t1, [], rules)
    valid = [2 * t for t, flag in zip(times, flags, strict=True) if not flag]
    for start, reasons in zip(slots.start.tolist(), slots.reasons, strict=True):
        expected = []
        if not any(t <= start for t in valid):
            expected.append("no_start")
        if start + 2 * window > t1:
            expected.append("truncated")
        ages = [
            at - max(t for t in valid if t <= at) for at in range(start, min(start + 2 * window, t1) + 1) if any(t <= at for t in valid)
        ]
        if "no_start" not in expected and max(ages, default=0) > 2 * stale:
            expected.append("stale")
        assert list(reasons) == expected


Rows = Sequence[tuple[int | None, Sequence[tuple[float, float]], Sequence[tuple[float, float]]]]


@pytest.fixture
def source(tmp_path: Path, wide_book: Callable[..., Path], wide_trades: Callable[..., Path], make_pool: Callable[..., Path]) -> OrderBook:
    """Four minutes: a row each 1.5 s, best bid 100 + k, a crossed one now and then, a print each 10 s."""
    rows: list[Any] = []
    for k in range(161):
        bid = 1000.0 + k
        rows.append((k * 1500, [(bid, 1.0)], [(bid + (1 if k % 40 else -1), 2.0)]))
    book = wide_book(tmp_path / "b.parquet", rows, levels=1)
    trades = wide_trades(tmp_path / "t.parquet", [(k * 10_000, 1000.0, 1.0, "buy", k) for k in range(24)])
    return OrderBook(pool=make_pool(Lake(levels=1), book, trades), max_unsound=1.0)


def _y(bids: Sequence[float]) -> list[float]:
    mid2 = [2 * bid + 1 for bid in bids]
    return [1e4 * (m - mid2[0]) / mid2[0] for m in mid2]


def test_y_is_read_at_the_newest_valid_state_at_or_before_each_knot(source: OrderBook) -> None:
    """G-01 to G-03, W-04: row k stands at 1.5 k s; 40 and 80 are crossed and skipped, a tie counts."""
    window = source.window(source.windows(MINUTE)[0].ref, MINUTE)
    newest = [k - 1 if k % 40 == 0 else k for k in (int((60 + 4 * i) / 1.5) for i in range(16))]
    assert window.y.tolist() == _y([1000.0 + k for k in newest])
    assert window.y[0] == 0.0
    assert not window.y.flags.writeable
    assert window.opening.column("ts_ns").to_pylist() == [START_S * SECOND + int(39 * 1.5e9)]


def test_a_crossed_state_is_skipped_and_the_last_of_equal_times_counts(
    tmp_path: Path, wide_book: Callable[..., Path], make_pool: Callable[..., Path]
) -> None:
    """GV-124 (G-02): knots at 0 and 10 s."""
    states = ((-1, 99, 101), (0, 100, 102), (5, 103, 102), (10, 101, 103), (10, 104, 106), (11, 200, 202), (30, 100, 102))
    book = wide_book(tmp_path / "b.parquet", [(1000 * t, [(bid, 1.0)], [(ask, 1.0)]) for t, bid, ask in states], levels=1)
    made = OrderBook(pool=make_pool(Lake(levels=1), book), max_unsound=1.0)
    grid = Grid(10, 1)
    window = made.window(made.windows(grid)[0].ref, grid)
    assert window.start_ns == START_S * SECOND
    assert window.y.tolist() == pytest.approx([0.0, 396.0396039604], abs=1e-9)


def test_rows_and_prints_are_half_open(source: OrderBook) -> None:
    """DS-05, W-04."""
    ref = source.windows(MINUTE)[1]
    window = source.window(ref.ref, MINUTE)
    start = START_S * SECOND + 120 * SECOND
    times = window.book.column("ts_ns").to_pylist()
    assert (window.start_ns, times[0], times[-1]) == (start, start, start + int(58.5e9))
    assert (ref.rows, ref.prints) == (len(times), 24)  # rows are exact, prints an upper bound
    assert window.trades.column("ts_ns").to_pylist() == [start + k * 10 * SECOND for k in range(6)]
    assert (window.tick_size, window.lot_size) == ("1", "1")


def test_grids_agree_bit_for_bit(source: OrderBook) -> None:
    """DS-03."""
    for ref in source.windows(MINUTE):
        fine = source.window(ref.ref, Grid(60, 90)).y
        assert fine[::6].tolist() == source.window(ref.ref, MINUTE).y.tolist()
        assert source.window(ref.ref, Grid(60, 1)).y.tolist() == [0.0, fine[-1]]


def test_windows_and_drops_tile_the_span(source: OrderBook) -> None:
    """DS-01, DS-07."""
    refs, dropped = source.windows(MINUTE), source.dropped(MINUTE)
    starts = sorted([ref.start_ns for ref in refs] + [slot.start_ns for slot in dropped])
    assert starts == [START_S * SECOND + 60 * SECOND * k for k in range(5)]
    assert [slot.reasons for slot in dropped] == [("no_start",), ("truncated",)]
    assert len({ref.ref for ref in refs}) == 3


@pytest.mark.parametrize("ref", ["", "-1", 0, "x-1", None, "deadbeefdead-1735689660000000000"])
def test_an_unknown_ref_is_refused(source: OrderBook, ref: Any) -> None:
    """DS-04."""
    with pytest.raises(WindowUnknown):
        source.window(ref, MINUTE)


def test_a_dropped_slot_has_no_window(source: OrderBook) -> None:
    """W-03."""
    prefix = source.windows(MINUTE)[0].ref.partition("-")[0]
    with pytest.raises(WindowUnknown):
        source.window(f"{prefix}-{START_S * SECOND}", MINUTE)


def test_a_pool_is_only_read_and_known_by_its_content(source: OrderBook, tmp_path: Path) -> None:
    """DS-08, DS-09."""
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in source.pool.iterdir()}
    for ref in source.windows(MINUTE):
        source.window(ref.ref, MINUTE)
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in source.pool.iterdir()} == before
    shutil.copytree(source.pool, tmp_path / "copy")
    assert OrderBook(pool=tmp_path / "copy").digest() == source.digest()


def test_windows_longer_than_their_slots_are_refused(source: OrderBook) -> None:
    """W-01: every >= T."""
    with pytest.raises(DataError) as refused:
        OrderBook(pool=source.pool, every_s=30).windows(MINUTE)
    assert refused.value.code == "window_too_long"


def test_a_missing_pool_is_told_with_a_way_out(tmp_path: Path) -> None:
    """W-01."""
    with pytest.raises(DataError, match="no pool at") as refused:
        OrderBook(pool=tmp_path / "none")
    assert refused.value.code == "pool_missing"
    assert "BLINDCAST_DATA_DIR" in refused.value.do


def test_only_one_thing_may_be_waived(source: OrderBook) -> None:
    """DK-05."""
    assert OrderBook(pool=source.pool, waive=["missing_not_random"]).waive == ("missing_not_random",)
    with pytest.raises(ValueError, match="stale"):
        OrderBook(pool=source.pool, waive=("stale",))
