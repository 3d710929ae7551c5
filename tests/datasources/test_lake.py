"""The `lake` importer: wide parquet of books and prints."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from blindcast.errors import DataError, ImportDamaged
from blindcast_datasources.lake import Lake
from blindcast_datasources.report import Report

START_NS = 1_735_689_600_000 * 10**6
ROWS = [(0, [(100.5, 1.0), (100.0, 2.0)], [(101.0, 1.25), (101.5, 2.0)]), (200, [(100.5, 3.0), (99.5, 2.0)], [(101.0, 1.25), (101.5, 2.0)])]


def test_a_wide_book_becomes_ticks_and_lots(tmp_path: Path, wide_book: Callable[..., Path], read: Callable[..., Any]) -> None:
    """DI-04, IM-05."""
    got = read(Lake(levels=2), wide_book(tmp_path / "b.parquet", ROWS))
    assert (got.report.known["tick_size"], got.report.known["lot_size"]) == ("0.1", "0.01")
    assert got.side(1, "bid") == [(1005, 300), (995, 200)]
    assert (got.rows.ts - START_NS).tolist() == [0, 200 * 10**6]
    assert (got.rows.recv - got.rows.ts).tolist() == [5 * 10**6] * 2
    assert got.rows.flags.tolist() == [0, 0]
    assert (got.report.known["base"], got.report.known["quote"], got.report.known["venue"]) == ("XY", "USD", "NOWHERE")


def test_sums_of_decimals_stay_on_their_lattice(tmp_path: Path, wide_book: Callable[..., Path], read: Callable[..., Any]) -> None:
    """DI-04: 0.1 + 0.2 is 0.3, and 4.35 at 0.01 is 435."""
    rows = [(0, [(4.35, 0.1 + 0.2)], [(4.36, 1e-8)])]
    got = read(Lake(levels=1), wide_book(tmp_path / "b.parquet", rows))
    assert (got.side(0, "bid"), got.side(0, "ask")) == ([(435, 30_000_000)], [(436, 1)])
    with pytest.raises(DataError) as refused:
        read(Lake(levels=1, lot=0.1), tmp_path / "b.parquet")
    assert refused.value.code == "off_grid"


def test_unusable_rows_are_counted_and_holes_closed(tmp_path: Path, wide_book: Callable[..., Path], read: Callable[..., Any]) -> None:
    """DI-08."""
    rows = [
        (0, [(float("nan"), 1.0), (100.0, 2.0)], [(101.0, 0.0), (102.0, 1.0)]),
        (100, [(100.0, 1.0), (100.0, 2.0)], [(101.0, 1.0)]),
        (200, [(99.0, 1.0), (100.0, 2.0)], [(101.0, 1.0)]),
    ]
    got = read(Lake(levels=2), wide_book(tmp_path / "b.parquet", rows))
    assert (got.side(0, "bid"), got.side(0, "ask")) == ([(100, 2)], [(102, 1)])
    assert got.counts["bad_rows"] == 2
    assert got.rows.flags.tolist() == [8]


def test_locked_and_one_sided_rows_carry_their_flags(tmp_path: Path, wide_book: Callable[..., Path], read: Callable[..., Any]) -> None:
    """DP-03, DR-21."""
    rows = [(0, [(100.0, 1.0)], [(100.0, 1.0)]), (100, [(100.0, 1.0)], []), (200, [(101.0, 1.0)], [(100.0, 1.0)])]
    got = read(Lake(levels=1), wide_book(tmp_path / "b.parquet", rows))
    assert got.rows.flags.tolist() == [64, 8 + 256, 16]


def test_rows_and_prints_are_sorted_and_stable(
    tmp_path: Path, wide_book: Callable[..., Path], wide_trades: Callable[..., Path], read: Callable[..., Any]
) -> None:
    """DI-05, DR-22, IM-03."""
    rows = [(at, [(100.0, float(k + 1))], [(101.0, 1.0)]) for k, at in enumerate((300, 100, 200, 100))]
    trades = [(30, 100.0, 1.0, "buy", 1), (10, 100.0, 2.0, "sell", 2), (30, 100.0, 3.0, "BUY", 3)]
    got = read(Lake(levels=1), wide_book(tmp_path / "b.parquet", rows), wide_trades(tmp_path / "t.parquet", trades))
    assert [got.side(row, "bid")[0][1] for row in range(4)] == [2, 4, 3, 1]
    assert (got.prints.trade_id.tolist(), got.prints.side.tolist()) == ([2, 1, 3], [-1, 1, 1])


def test_all_times_missing_is_the_local_clock_some_missing_is_refused(
    tmp_path: Path, wide_book: Callable[..., Path], read: Callable[..., Any]
) -> None:
    """DI-05."""
    rows = [(None, [(100.0, 1.0)], [(101.0, 1.0)])]
    got = read(Lake(levels=1), wide_book(tmp_path / "b.parquet", rows))
    assert got.report.known["clock"] == "receive"
    mixed = wide_book(tmp_path / "m.parquet", [*rows, (100, [(100.0, 2.0)], [(101.0, 1.0)])])
    with pytest.raises(DataError) as refused:
        read(Lake(levels=1), mixed)
    assert refused.value.code == "clock_mixed"
    assert len(read(Lake(levels=1, clock="receive"), mixed).rows) == 2


def test_fewer_than_one_in_a_hundred_missing_take_the_local_time(
    tmp_path: Path, wide_book: Callable[..., Path], read: Callable[..., Any]
) -> None:
    """DI-05: flag 32."""
    rows = [(None if k == 50 else k * 100, [(100.0, k + 1.0)], [(101.0, 1.0)]) for k in range(201)]
    got = read(Lake(levels=1), wide_book(tmp_path / "b.parquet", rows))
    assert (got.report.known["clock"], int((got.rows.flags == 32).sum()), got.counts["clock"]) == ("exchange", 1, 1)


@pytest.mark.parametrize("scale", [10**3, 10**6, 1])
def test_integer_times_go_by_magnitude(tmp_path: Path, wide_book: Callable[..., Path], read: Callable[..., Any], scale: int) -> None:
    """DI-03, DI-12."""
    stamps = pa.array([START_NS // scale, (START_NS + 10**9) // scale], pa.int64())
    table = pq.read_table(wide_book(tmp_path / "b.parquet", ROWS)).drop_columns(["origin_time", "received_time"])
    pq.write_table(table.append_column("timestamp", stamps).append_column("receipt_timestamp", stamps), tmp_path / "c.parquet")
    got = read(Lake(levels=2), tmp_path / "c.parquet")
    assert (got.rows.ts - START_NS).tolist() == [0, 10**9]


def test_names_may_stand_in_folders_only(tmp_path: Path, wide_book: Callable[..., Path], read: Callable[..., Any]) -> None:
    """DI-12: hive folders; symbols are told apart by them too."""
    for symbol in ("XY-USD", "AB-USD"):
        folder = tmp_path / "exchange=V" / f"symbol={symbol}" / "dt=2025-01-01"
        folder.mkdir(parents=True)
        table = pq.read_table(wide_book(tmp_path / "_b.parquet", ROWS)).drop_columns(["symbol", "exchange"])
        pq.write_table(table, folder / "1.parquet")
    with pytest.raises(DataError) as refused:
        read(Lake(levels=2), tmp_path)
    assert refused.value.code == "symbols_mixed"
    got = read(Lake(levels=2, symbol="AB-USD"), tmp_path)
    assert (got.report.known["symbol"], got.report.known["venue"], len(got.rows)) == ("AB-USD", "V", 2)


def test_paths_in_any_order_give_the_same_batches(tmp_path: Path, wide_book: Callable[..., Path], read: Callable[..., Any]) -> None:
    """IM-02, IM-04, DI-09."""
    early = wide_book(tmp_path / "z.parquet", ROWS)
    late = wide_book(tmp_path / "a.parquet", [(at + 1000, bids, asks) for at, bids, asks in ROWS])
    one, two = read(Lake(levels=2), early, late), read(Lake(levels=2), late, early)
    assert len(one.rows) == 4
    assert all(a.equals(b) for a, b in zip(one.batches, two.batches, strict=True))


def test_a_cut_file_is_refused_or_left_out_whole(tmp_path: Path, wide_book: Callable[..., Path], read: Callable[..., Any]) -> None:
    """DV-18, DR-27, IM-06."""
    good = wide_book(tmp_path / "good.parquet", ROWS)
    day = good.read_bytes()
    (tmp_path / "cut.parquet").write_bytes(day[: len(day) * 2 // 3])
    with pytest.raises(ImportDamaged) as damage:
        next(Lake(levels=2).read([good, tmp_path / "cut.parquet"], Report()))
    assert damage.value.file == "cut.parquet"
    got = read(Lake(levels=2, allow_missing=True), good, tmp_path / "cut.parquet")
    assert (len(got.rows), list(got.report.left_out)) == (2, ["cut.parquet"])


def test_a_table_of_another_shape_is_refused_by_name(tmp_path: Path, read: Callable[..., Any]) -> None:
    """DI-01."""
    pq.write_table(pa.table({"a": [1]}), tmp_path / "x.parquet")
    with pytest.raises(DataError, match=r"x\.parquet") as refused:
        read(Lake(), tmp_path / "x.parquet")
    assert refused.value.code == "format_unknown"


def test_sniffing_goes_by_columns(tmp_path: Path, wide_book: Callable[..., Path], wide_trades: Callable[..., Path]) -> None:
    """IM-01."""
    own = wide_book(tmp_path / "b.parquet", ROWS), wide_trades(tmp_path / "t.parquet", [(0, 1.0, 1.0, "buy", 1)])
    assert min(Lake().sniff(path) for path in own) >= 0.5
    pq.write_table(pa.table({"a": [1]}), tmp_path / "x.parquet")
    (tmp_path / "empty").write_bytes(b"")
    assert not any(Lake().sniff(path) for path in (tmp_path, tmp_path / "x.parquet", tmp_path / "empty", tmp_path / "none"))


def test_book_none_gives_prints_only(
    tmp_path: Path, wide_book: Callable[..., Path], wide_trades: Callable[..., Path], read: Callable[..., Any]
) -> None:
    """DI-02."""
    paths = wide_book(tmp_path / "b.parquet", ROWS), wide_trades(tmp_path / "t.parquet", [(0, 1.0, 1.0, "buy", 1)])
    got = read(Lake(book="none"), *paths)
    assert (len(got.rows), len(got.prints)) == (0, 1)
