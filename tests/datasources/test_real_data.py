"""The real recordings, and the numbers that they must give (the README beside them)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import frozen

from blindcast.errors import DataError
from blindcast.records import Grid
from blindcast_datasources.binance import Binance
from blindcast_datasources.columns import prints_of, rows_of
from blindcast_datasources.describe import pool_stats
from blindcast_datasources.imports import ImportOrder, run_import
from blindcast_datasources.lake import Lake
from blindcast_datasources.orderbook import OrderBook
from blindcast_datasources.pool import Pool
from blindcast_datasources.raw import found
from blindcast_datasources.report import Report

SPOT_LADDER, SPOT_PRINTS = (
    "3c12a5c448f013efdf1e163071000c00d4f0394c9e8654c3de128a567b3eb7b0", "5d69be65e55da43625e2f8dd2cc4b13b251fc1e7771c36d3b55d2ff1c3335960"
)  # fmt: skip
USDM_PRINTS = "794767e1f60a758dd2597f22253ba057c68cc4e521f41da8f074e8bb6403b7c2"


@frozen
class Case:
    """One row of the tables of the README: `counts` are stated exactly, `mids` are mid2 at whole seconds."""

    folder: str
    rows: int
    first_ms: int
    last_ms: int
    tick: str
    lot: str
    trades: int
    buys: int
    max_gap_ms: int
    sd_1s_bps: float
    minutes: str
    quarters: str
    counts: str
    size: int
    signed: int
    mids: str
    beyond: int = 0
    short: int = 0
    one_sided: int = 0
    ladder: str = ""
    prints: str = ""
    ticker: str = ""
    options: tuple[tuple[str, Any], ...] = ()


CASES = [
    Case("lake/bitstamp-btcusd-2015-05-01", 22531, 1430438405943, 1430456682957, "0.01", "0.00000001", 575,
         306, 13632, 0.872919, "303/305", "19/21",
         "messages 22531", 84765711841, -3520852327, "1430441017 47075 1430446239 47403 1430451461 47272"),
    Case("lake/bitstamp-btcusd-2026-05-02", 6222, 1777689380521, 1777691180412, "1", "0.00000001", 284, 162,
         1999, 0.317685, "29/31", "1/3",
         "messages 6232 unchanged 10", 1502983915, 251328369, "1777689638 156753 1777690152 156737 1777690667 156805"),
    Case("lake/binance-spot-btcusdt-2024-08-08", 6227, 1723161255408, 1723161905809, "0.01", "0.00001",
         19904, 9093, 400, 1.100601, "10/12", "0/2",
         "messages 6493 unchanged 266", 43791552, -2893328, "1723161349 12356927 1723161535 12343527 1723161720 12317999",
         ladder=SPOT_LADDER, prints=SPOT_PRINTS),
    Case("raw/binance-spot-btcusdt-2024-08-08", 6227, 1723161255408, 1723161905809, "0.01", "0.00001", 19904,
         9093, 400, 1.100601, "10/12", "0/2",
         "snapshots 1 stale_diffs 2 deltas 6493 unchanged 266", 43791552, -2893328,
         "1723161349 12356927 1723161535 12343527 1723161720 12317999",
         beyond=1202, ladder=SPOT_LADDER, prints=SPOT_PRINTS, ticker="6491 6493"),
    Case("raw/binance-usdm-btcusdt-2024-08-08", 6174, 1723161256493, 1723161600709, "0.1", "0.001", 21313,
         9616, 679, 1.224534, "5/7", "0/2",
         "snapshots 1 stale_diffs 4 deltas 6547 unchanged 374", 2429366, 73786,
         "1723161306 1236399 1723161405 1234315 1723161503 1232595",
         beyond=1032, ladder="3b473bca932bec660d333e910f90a51870b587bdc87df79d1b577ae6bec99134", prints=USDM_PRINTS, ticker="6548 6548"),
    Case("raw/binance-spot-btcusdt-2024-08-08", 6197, 1723161255408, 1723161905809, "0.01", "0.00001", 19904,
         9093, 401, 1.042515, "5/12", "0/2",
         "snapshots 1 stale_diffs 2 deltas 6493 unchanged 296", 43791552, -2893328,
         "1723161349 12356927 1723161535 12343527 1723161720 none",
         short=1172, one_sided=883, ladder="763febae82538707cbfeca9a39b43e4b0d1d40d2b1b8784db3c807f6df383b6c", prints=SPOT_PRINTS,
         options=(("beyond", "null"),)),
    Case("raw/binance-usdm-btcusdt-2024-08-08", 6129, 1723161256493, 1723161600709, "0.1", "0.001", 21313,
         9616, 679, 0.786711, "2/7", "0/2",
         "snapshots 1 stale_diffs 4 deltas 6547 unchanged 419", 2429366, 73786, "1723161306 1236399 1723161405 1234315 1723161503 none",
         short=987, one_sided=658, ladder="a9c87f7909a93e8cac1e396a177a4fc58148bc28e324578ecd0988a9b6714b39", prints=USDM_PRINTS,
         options=(("beyond", "null"),)),
    Case("raw/binance-usdm-btcusdt-2024-07-18", 7051, 1721347022750, 1721347502246, "0.1", "0.001", 10701,
         4195, 1082, 0.467550, "7/9", "0/2",
         "snapshots 1 stale_diffs 5 deltas 9017 unchanged 1967", 1122459, -233243,
         "1721347092 1279053 1721347229 1278315 1721347366 1277603",
         ladder="e9104894541820367bf9f93d2d131dc5367016aa8119e0d3b52ac70e0f3b2b3d",
         prints="59cd738040439200d3ccf226b698f95d5811e6bac7533570462ff8dc344607e5", ticker="9018 9018"),
    Case("raw/binance-usdm-btcusdt-2023-04-04", 12358, 1680652700580, 1680653214681, "0.1", "0.001", 12935,
         6480, 1541, 0.374828, "7/9", "0/2",
         "snapshots 1 deltas 16110 unchanged 3753", 1189085, -8937,
         "1680652775 563029 1680652921 562883 1680653068 562899", ticker="16111 16111"),
    Case("raw/binance-coinm-btcusd-2024-08-08", 28503, 1723161257823, 1723161904795, "0.1", "1", 5235, 2565,
         523, 1.240203, "10/12", "0/2",
         "snapshots 1 stale_diffs 23 deltas 44772 unchanged 16270", 182183, 23783,
         "1723161351 1235385 1723161536 1233983 1723161720 1231627",
         ticker="44773 44773"),
]  # fmt: skip


def _import(importer: Any, options: dict[str, Any], target: Path, *paths: Path) -> Pool:
    order = ImportOrder(importer, "real", "0", options, found(paths)[0], list(paths), target)
    run_import(order, Report())
    return Pool(target)


def _windows(pool: Path, seconds: int) -> str:
    source, grid = OrderBook(pool=pool), Grid(seconds, 15)
    valid = len(source.windows(grid))
    return f"{valid}/{valid + len(source.dropped(grid))}"


@pytest.mark.parametrize(
    "case", CASES, ids=lambda case: case.folder.partition("/")[0] + case.folder[-10:] + "".join(v for _, v in case.options)
)
def test_a_recording_gives_the_numbers_of_its_page(real_data: Path, tmp_path: Path, case: Case) -> None:
    """data/README.md section 1."""
    options = dict(case.options)
    importer = Lake(**options) if case.folder.startswith("lake") else Binance(**options)
    pool = _import(importer, options, tmp_path / "pool", real_data / case.folder)
    meta = pool.meta
    assert (meta["rows"], meta["tick_size"], meta["lot_size"], meta["trades"]) == (case.rows, case.tick, case.lot, case.trades)
    words = case.counts.split()
    assert {name: meta["counts"][name] for name in words[::2]} == dict(zip(words[::2], map(int, words[1::2]), strict=True))
    if case.ticker:
        assert "{equal} {states}".format(**meta["checks"]["ticker"]) == case.ticker
    assert {case.ladder, case.prints} <= {"", *meta["hashes"].values()}
    rows = rows_of(pool.rows(0, case.rows))
    assert (rows.ts[0], rows.ts[-1], int(np.diff(rows.ts).max())) == (case.first_ms * 10**6, case.last_ms * 10**6, case.max_gap_ms * 10**6)
    flags = {bit: int(((rows.flags & bit) != 0).sum()) for bit in (4, 8, 16, 32, 64, 128, 256)}
    assert flags == {4: 0, 8: case.short, 16: 0, 32: 0, 64: 0, 128: case.beyond, 256: case.one_sided}
    _check_prints(pool, case)
    assert pool_stats(pool)["sd_1s_bps"] == pytest.approx(case.sd_1s_bps, abs=5e-7)
    assert (_windows(tmp_path / "pool", 60), _windows(tmp_path / "pool", 900)) == (case.minutes, case.quarters)
    instants = case.mids.split()
    for second, expected in zip(instants[::2], instants[1::2], strict=True):
        newest = int(np.searchsorted(rows.ts, int(second) * 10**9, side="right")) - 1
        mid2 = "none" if rows.flags[newest] & 256 else str(rows.levels[newest, 0, 0] + rows.levels[newest, 2, 0])
        assert mid2 == expected


def _check_prints(pool: Pool, case: Case) -> None:
    prints = prints_of(pool.prints(0, 2**62))
    assert (int((prints.side == 1).sum()), int((prints.side == -1).sum())) == (case.buys, case.trades - case.buys)
    market = prints.kind == 0
    assert (int(prints.sz[market].sum()), int((prints.sz * prints.side)[market].sum())) == (case.size, case.signed)
    assert int((~market).sum()) == ("2023" in case.folder)


def test_a_quiet_feed_loses_windows_to_a_stricter_rule(real_data: Path, tmp_path: Path) -> None:
    """data/README.md section 2."""
    _import(Lake(), {}, tmp_path / "pool", real_data / "lake/bitstamp-btcusd-2015-05-01")
    strict = OrderBook(pool=tmp_path / "pool", max_stale_s=10)
    assert (len(strict.windows(Grid(900, 15))), len(strict.windows(Grid(60, 15)))) == (14, 296)
    reasons = [slot.reasons for slot in OrderBook(pool=tmp_path / "pool").dropped(Grid(60, 15))]
    assert reasons == [("no_start",), ("truncated",)]


def test_depth_csv_gives_the_ladder_of_the_raw_recording(real_data: Path, tmp_path: Path) -> None:
    """data/README.md section 2: one market, four layouts."""
    paths = sorted((real_data / "raw/same-market-four-layouts").glob("*T_DEPTH*"))
    pool = _import(Binance(), {}, tmp_path / "pool", *paths)
    assert (pool.meta["rows"], pool.meta["hashes"]["ladder_sha256"]) == (
        2163,
        "a5b20e05edaadb6cb187b6c91ad048cf2c38ba366e0f8481889407dfd9ebbc88",
    )


def test_a_recording_without_a_snapshot_is_refused_or_read_by_its_tickers(real_data: Path, tmp_path: Path) -> None:
    """data/README.md section 3."""
    folder = real_data / "raw/binance-spot-btcusdt-2023-04-05-nosnapshot"
    with pytest.raises(DataError) as refused:
        _import(Binance(), {}, tmp_path / "none", folder)
    assert (refused.value.code, (tmp_path / "none").exists()) == ("no_snapshot", False)
    pool = _import(Binance(book="ticker"), {"book": "ticker"}, tmp_path / "pool", folder)
    assert (pool.meta["depth"], pool.meta["clock"], pool.meta["rows"], pool.meta["trades"]) == (1, "receive", 8015, 3144)
    assert _windows(tmp_path / "pool", 60) == "5/7"


def test_a_broken_depth_csv_names_its_break(real_data: Path, tmp_path: Path) -> None:
    """data/README.md section 3."""
    with pytest.raises(DataError, match="pu 2098041693400 after u 2098021528332") as refused:
        _import(Binance(), {}, tmp_path / "none", real_data / "raw/binance-tdepth-btcusdt-2022-11-01")
    assert (refused.value.code, refused.value.exit_code) == ("pool_empty", 3)
