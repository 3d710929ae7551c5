"""The `binance` importer: lines, prints, tickers, lattice, damage."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from blindcast.errors import DataError, ImportDamaged
from blindcast_datasources.binance import Binance

START_NS = 1_735_689_600_000 * 10**6
HEADER = "symbol,timestamp,first_update_id,last_update_id,side,update_type,price,qty,pu\n"


def _book(feed: Any) -> Any:
    return feed.snapshot(50, {"100.5": "1.25"}, {"101": "2"}).diff(51, 51, {"100.5": "1.5"})


def test_kinds_of_prints_are_told_apart_and_lost_ids_counted(tmp_path: Path, feed: Callable[..., Any], read: Callable[..., Any]) -> None:
    """DV-20, DR-31."""
    lines = (
        _book(feed())
        .trade(7, "100", "1", 100, kind="MARKET")
        .trade(8, "100", "1", 200, kind="INSURANCE_FUND")
        .trade(10, "100", "1", 300, kind="MARKET")
    )
    got = read(Binance(), lines.write(tmp_path / "a"))
    assert got.prints.kind.tolist() == [0, 1, 0]
    assert (got.counts["trade_id_gaps"], got.counts["trade_ids_missing"]) == (1, 1)


def test_the_maker_flag_is_the_other_side(tmp_path: Path, feed: Callable[..., Any], read: Callable[..., Any]) -> None:
    """DR-26."""
    lines = _book(feed()).trade(1, "100", "1", 100, maker_bought=True).trade(2, "100", "1", 200, maker_bought=False)
    assert read(Binance(), lines.write(tmp_path / "a")).prints.side.tolist() == [-1, 1]


def test_zero_prints_and_repeats_are_counted_not_stored(tmp_path: Path, feed: Callable[..., Any], read: Callable[..., Any]) -> None:
    """DR-31, IM-07."""
    lines = _book(feed()).trade(1, "100", "1", 100).trade(2, "0", "0", 150).trade(1, "100", "1", 100).trade(3, "100", "2", 90)
    got = read(Binance(), lines.write(tmp_path / "a"))
    assert got.prints.trade_id.tolist() == [3, 1]
    assert (got.counts["zero_prints"], got.counts["duplicate_trades"]) == (1, 1)


def test_the_id_of_a_print_that_is_no_trade_is_no_hole(tmp_path: Path, feed: Callable[..., Any], read: Callable[..., Any]) -> None:
    """DR-31: not stored, but its id is known."""
    lines = _book(feed()).trade(1, "100", "1", 100).trade(2, "0", "0", 150).trade(3, "100", "2", 160)
    got = read(Binance(), lines.write(tmp_path / "a"))
    assert got.prints.trade_id.tolist() == [1, 3]
    assert "trade_id_gaps" not in got.counts


def test_aggregates_count_their_fills_and_their_holes(tmp_path: Path, feed: Callable[..., Any], read: Callable[..., Any]) -> None:
    """DV-03, DR-04."""
    lines = _book(feed())
    for number, first, last in ((1, 90, 95), (2, 97, 97)):
        at_ms = START_NS // 10**6 + number
        ids = {"a": number, "f": first, "l": last}
        message = {"e": "aggTrade", "E": at_ms, "s": "XYUSDT", **ids, "p": "100", "q": "1", "T": at_ms, "m": False}
        lines.other(200 + number, message, "aggTrade")
    got = read(Binance(), lines.write(tmp_path / "a"))
    assert got.prints.n.tolist() == [6, 1]
    assert (got.counts["trade_id_gaps"], got.counts["trade_ids_missing"]) == (1, 1)


def test_prices_and_sizes_are_exact_integers(tmp_path: Path, feed: Callable[..., Any], read: Callable[..., Any]) -> None:
    """DV-16, DV-17, DR-24, DR-25, IM-05."""
    lines = feed().snapshot(50, {".5500": "1E-8", ".5509": "4.35"}, {"17.77": "1"}).diff(51, 51, {}, {"17.77": "2"})
    got = read(Binance(), lines.write(tmp_path / "a"))
    assert (got.report.known["tick_size"], got.report.known["lot_size"]) == ("0.0001", "0.00000001")
    assert got.side(0, "bid") == [(5509, 435_000_000), (5500, 1)]
    assert got.side(0, "ask") == [(177_700, 200_000_000)]


def test_a_value_off_the_lattice_is_named(tmp_path: Path, feed: Callable[..., Any], read: Callable[..., Any]) -> None:
    """DV-16."""
    lines = feed().snapshot(50, {"17.77": 1}, {"18": 1}).diff(51, 51, {"17.775": 1})
    with pytest.raises(DataError, match=r"17\.775") as refused:
        read(Binance(tick=0.01), lines.write(tmp_path / "a"))
    assert refused.value.code == "off_grid"


def test_numbers_of_any_span_find_their_lattice(tmp_path: Path, feed: Callable[..., Any], read: Callable[..., Any]) -> None:
    """DI-04: decimals beyond the first guess, and sizes too large for it."""
    fine = feed().snapshot(50, {"0.00000000012": "90000000000000"}, {"0.0000000002": "1"}).diff(51, 51, {"0.00000000012": "90000000000001"})
    got = read(Binance(), fine.write(tmp_path / "a"))
    assert got.report.known["tick_size"] == "0.00000000001"
    assert got.side(0, "bid") == [(12, 90_000_000_000_001)]


def test_a_tick_of_five_needs_two_hundred_prices(tmp_path: Path, feed: Callable[..., Any], read: Callable[..., Any]) -> None:
    """DI-04."""
    few = feed().snapshot(50, {f"{100 + k * 0.25:.2f}": 1 for k in range(19)}, {"200": 1}).diff(51, 51)
    assert read(Binance(), few.write(tmp_path / "few")).report.known["tick_size"] == "0.01"
    many = feed().snapshot(50, {"1": 1}, {"1000": 1})
    for k in range(220):
        many.diff(51 + k, 51 + k, {f"{100 + k * 0.25:.2f}": 1})
    assert read(Binance(), many.write(tmp_path / "many")).report.known["tick_size"] == "0.25"


def test_the_ticker_stream_proves_the_replay(tmp_path: Path, feed: Callable[..., Any], read: Callable[..., Any]) -> None:
    """DK-02."""
    lines = feed().snapshot(50, {100: 1}, {101: 1}).ticker(51, ("100", "2"), ("101", "1"), 90).ticker(52, ("100", "3"), ("101", "1"), 95)
    lines.diff(51, 51, {100: 2}).diff(52, 53, {100: 9})
    got = read(Binance(), lines.write(tmp_path / "a"))
    assert (got.counts["ticker_states"], got.counts["ticker_equal"]) == (2, 1)


def test_tickers_alone_make_a_pool_of_depth_one_on_the_local_clock(
    tmp_path: Path, feed: Callable[..., Any], read: Callable[..., Any]
) -> None:
    """DI-01, DI-02, DI-05."""
    lines = feed().ticker(1, ("100", "1"), ("101", "1"), 0).ticker(2, ("100", "2"), ("101", "1"), 100).trade(1, "100", "1", 40)
    for importer in (Binance(), Binance(book="ticker")):
        got = read(importer, lines.write(tmp_path / "a"))
        assert (got.report.known["depth"], got.report.known["clock"]) == ("1", "receive")
        assert got.rows.flags.tolist() == [0, 0]
        assert got.rows.ts[0] == got.rows.recv[0] == START_NS + 5 * 10**6


def test_two_symbols_need_a_choice(tmp_path: Path, feed: Callable[..., Any], read: Callable[..., Any]) -> None:
    """DI-02."""
    path, other = _book(feed()).write(tmp_path / "a"), feed(symbol="ABUSDT").trade(1, "5", "1", 50).write(tmp_path / "b")
    with pytest.raises(DataError, match="ABUSDT, XYUSDT") as refused:
        read(Binance(), path, other)
    assert refused.value.code == "symbols_mixed"
    assert len(read(Binance(symbol="XYUSDT"), path, other).prints) == 0


def test_files_in_any_order_give_the_same_batches(tmp_path: Path, feed: Callable[..., Any], read: Callable[..., Any]) -> None:
    """IM-02, IM-03, IM-04, DI-09: prints in a file of their own, a book over two; names prove nothing."""
    lines = _book(feed())
    for k in range(40):
        lines.diff(52 + k, 52 + k, {"100.5": str(k + 2)}).trade(k, "101", "1", lines.now_ms)
    texts = lines.lines
    late, early, trades = tmp_path / "a", tmp_path / "b", tmp_path / "c"
    book = [line for line in texts if "trade" not in line]
    late.write_text("\n".join(book[20:]), encoding="utf-8")
    early.write_text("\n".join(book[:20]), encoding="utf-8")
    trades.write_text("\n".join(line for line in texts if "trade" in line), encoding="utf-8")
    one, two = read(Binance(), late, early, trades), read(Binance(), trades, late, early)
    assert len(one.rows) == 41
    assert all(a.equals(b) for a, b in zip(one.batches, two.batches, strict=True))
    assert (one.rows.ts[1:] >= one.rows.ts[:-1]).all()


def test_a_wrong_unit_is_refused(tmp_path: Path, feed: Callable[..., Any], read: Callable[..., Any]) -> None:
    """DV-02, DR-02."""
    path = _book(feed()).write(tmp_path / "a")
    with pytest.raises(DataError) as refused:
        read(Binance(unit="ns"), path)
    assert refused.value.code == "time_unit"


def _packed(lines: list[str]) -> bytes:
    half = len(lines) // 2
    return b"".join(gzip.compress("".join(line + "\n" for line in part).encode(), mtime=0) for part in (lines[:half], lines[half:]))


def _long(feed: Callable[..., Any]) -> list[str]:
    lines, draw = _book(feed()), random.Random(1)
    for k in range(300):
        lines.diff(52 + k, 52 + k, {f"{draw.uniform(50, 100):.2f}": f"{draw.uniform(0, 9):.3f}"})
    texts: list[str] = lines.lines
    return texts


def test_every_gzip_member_is_read(tmp_path: Path, feed: Callable[..., Any], read: Callable[..., Any]) -> None:
    """DR-29, DI-06."""
    texts = _long(feed)
    (tmp_path / "a.gz").write_bytes(_packed(texts))
    (tmp_path / "a").write_text("\n".join(texts), encoding="utf-8")
    assert read(Binance(), tmp_path / "a.gz").counts["deltas"] == read(Binance(), tmp_path / "a").counts["deltas"] == 301


@pytest.mark.parametrize("fault", ["cut", "flip", "flip_second", "tail", "zeros", "line", "text"])
def test_damage_is_loud_and_nothing_of_it_is_used(tmp_path: Path, feed: Callable[..., Any], fault: str) -> None:
    """DV-19, DR-30, IM-06."""
    texts = _long(feed)
    packed = bytearray(_packed(texts))
    second = packed.index(b"\x1f\x8b\x08", 10)
    if fault == "cut":
        packed = packed[:-20]
    elif fault == "flip":
        packed[second // 2] ^= 1
    elif fault == "flip_second":
        packed[second + (len(packed) - second) // 2] ^= 1
    elif fault == "tail":
        packed += b"more"
    elif fault == "zeros":
        packed += bytes(8)
    elif fault == "line":
        packed = bytearray("\n".join([*texts[:50], texts[50][:-30], *texts[51:]]).encode())
    else:
        packed = bytearray("\n".join(texts[:50]).encode() + b'\n1735689600000000000 {"e":"\xff\xfe"}\n')
    path = tmp_path / "a.dat"
    path.write_bytes(packed)
    from blindcast_datasources.report import Report

    batches = Binance().read([path], Report())
    with pytest.raises(ImportDamaged) as damage:
        next(batches)
    assert damage.value.file == "a.dat"
    assert damage.value.place


def test_a_damaged_file_may_be_left_out(tmp_path: Path, feed: Callable[..., Any], read: Callable[..., Any]) -> None:
    """DI-06."""
    good = _book(feed()).write(tmp_path / "a")
    (tmp_path / "b.gz").write_bytes(_packed(_long(feed))[:-9])
    got = read(Binance(allow_missing=True), good, tmp_path / "b.gz")
    assert len(got.rows) == 1
    assert list(got.report.left_out) == ["b.gz"]


def test_other_streams_are_counted_and_what_is_no_recording_refused(
    tmp_path: Path, feed: Callable[..., Any], read: Callable[..., Any]
) -> None:
    """DI-01: every file is read or refused."""
    lines = _book(feed()).other(150, {"e": "kline", "E": 1, "s": "XYUSDT", "k": {"t": 1}}, "kline_1m")
    assert read(Binance(), lines.write(tmp_path / "a")).counts["other"] == 1
    (tmp_path / "b.txt").write_text("hello\n", encoding="utf-8")
    with pytest.raises(DataError) as refused:
        read(Binance(), tmp_path / "a", tmp_path / "b.txt")
    assert refused.value.code == "format_unknown"


def test_sniffing_knows_its_own_and_never_raises(tmp_path: Path, feed: Callable[..., Any]) -> None:
    """IM-01."""
    own = _book(feed()).write(tmp_path / "a")
    (tmp_path / "a.gz").write_bytes(gzip.compress(own.read_bytes()))
    (tmp_path / "t.csv").write_text(HEADER, encoding="utf-8")
    assert min(Binance().sniff(path) for path in (own, tmp_path / "a.gz", tmp_path / "t.csv")) >= 0.5
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "x.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(64))
    (tmp_path / "bad.gz").write_bytes(b"\x1f\x8b\x00")
    assert not any(
        Binance().sniff(path) for path in (tmp_path, tmp_path / "empty", tmp_path / "x.png", tmp_path / "bad.gz", tmp_path / "none")
    )


def test_depth_csv_is_spliced_as_the_wire_is(tmp_path: Path, read: Callable[..., Any]) -> None:
    """Section 3: T_DEPTH, snapshot and updates."""
    snap = "".join(f"XY,1735689600000,50,50,{side},snap,{price},1,-1\n" for side, price in (("b", "100.0"), ("a", "101.0")))
    update = "XY,1735689600100,51,55,b,set,100.0,0.0,50\nXY,1735689600100,51,55,b,set,99.5,2,50\nXY,1735689600200,56,60,a,set,101.0,3,55\n"
    (tmp_path / "u.csv").write_text(HEADER + update, encoding="utf-8")
    (tmp_path / "s.csv").write_text(HEADER + snap, encoding="utf-8")
    got = read(Binance(levels=1), tmp_path / "u.csv", tmp_path / "s.csv")
    assert [got.side(row, "bid") for row in range(3)] == [[(1000, 1)], [(995, 2)], [(995, 2)]]
    assert got.rows.flags.tolist() == [1, 0, 0]


@pytest.mark.parametrize("options", [{"tick": 0}, {"lot": "x"}, {"levels": 21}, {"rows": "grid:0"}, {"tz": "Nowhere"}, {"gap": "fill"}])
def test_bad_options_are_refused(options: dict[str, Any]) -> None:
    """DI-02."""
    with pytest.raises(ValueError, match=r".+"):
        Binance(**options)
