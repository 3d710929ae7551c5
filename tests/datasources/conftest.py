"""Invented recordings: Binance lines in the page's shorthand, wide parquet, pools made of either."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from attrs import field, frozen

from blindcast_datasources.columns import Prints, Rows, prints_of, rows_of
from blindcast_datasources.report import Report

START_MS = 1_735_689_600_000  # 2025-01-01
Levels = Mapping[float | str, float | str]


@frozen
class Read:
    """What an importer gave: rows, prints, its report."""

    rows: Rows
    prints: Prints
    report: Report
    batches: Sequence[pa.RecordBatch] = field(repr=False)

    @property
    def counts(self) -> dict[str, int]:
        return {name: n for name, n in self.report.counts.items() if n}

    def side(self, row: int, name: str) -> list[tuple[int, int]]:
        """The levels of a side, (px, sz)."""
        first = {"bid": 0, "ask": 2}[name]
        px, sz = self.rows.levels[row, first].tolist(), self.rows.levels[row, first + 1].tolist()
        return [(p, s) for p, s in zip(px, sz, strict=True) if p > 0]


class Feed:
    """Lines of a spot recording; times are ms after START_MS, local ones 5 ms later."""

    def __init__(self, futures: bool = False, symbol: str = "XYUSDT") -> None:
        self.lines: list[str] = []
        self.futures = futures
        self.symbol = symbol
        self.now_ms = 0

    def _line(self, at_ms: int, message: Mapping[str, Any], stream: str = "") -> Feed:
        body = {"stream": f"{self.symbol.lower()}@{stream}", "data": message} if stream else message
        self.lines.append(f"{(START_MS + at_ms + 5) * 10**6} {json.dumps(body, separators=(',', ':'))}")
        return self

    def snapshot(self, last: int, bids: Levels, asks: Levels, at_ms: int | None = None) -> Feed:
        """`S50 {b .. | a ..}`; without a time it has none, as on spot."""
        times = {} if at_ms is None else {"E": START_MS + at_ms, "T": START_MS + at_ms}
        return self._line(at_ms or self.now_ms, {"lastUpdateId": last, **times, "bids": _pairs(bids), "asks": _pairs(asks)})

    def diff(
        self, first: int, last: int, bids: Levels | None = None, asks: Levels | None = None, at_ms: int | None = None, pu: int = -1
    ) -> Feed:
        """`D51`, `D49-50`."""
        self.now_ms = self.now_ms + 100 if at_ms is None else at_ms
        ids = {"U": first, "u": last} | ({"pu": pu} if self.futures else {})
        times = {"E": START_MS + self.now_ms}
        return self._line(
            self.now_ms, {"e": "depthUpdate", **times, "s": self.symbol, **ids, "b": _pairs(bids or {}), "a": _pairs(asks or {})}, "depth"
        )

    def trade(self, number: int, price: str, size: str, at_ms: int, *, maker_bought: bool = False, kind: str = "") -> Feed:
        """One print."""
        extra = {"X": kind} if kind else {}
        message = {
            "e": "trade",
            "E": START_MS + at_ms,
            "s": self.symbol,
            "t": number,
            "p": price,
            "q": size,
            **extra,
            "T": START_MS + at_ms,
            "m": maker_bought,
        }
        return self._line(at_ms, message, "trade")

    def ticker(self, update: int, bid: tuple[str, str], ask: tuple[str, str], at_ms: int) -> Feed:
        """The venue's own best prices, without a time as on spot."""
        return self._line(at_ms, {"u": update, "s": self.symbol, "b": bid[0], "B": bid[1], "a": ask[0], "A": ask[1]}, "bookTicker")

    def other(self, at_ms: int, message: Mapping[str, Any], stream: str) -> Feed:
        """A line of any other stream."""
        return self._line(at_ms, message, stream)

    def write(self, path: Path) -> Path:
        """The recording as a file."""
        path.write_text("".join(line + "\n" for line in self.lines), encoding="utf-8")
        return path


def _pairs(levels: Levels) -> list[list[str]]:
    return [[str(price), str(size)] for price, size in levels.items()]


class Reads(Protocol):
    def __call__(self, importer: Any, *paths: Path) -> Read: ...


@pytest.fixture
def feed() -> Callable[..., Feed]:
    """Makes feeds."""
    return Feed


@pytest.fixture
def read() -> Reads:
    """Runs an importer over paths."""

    def run(importer: Any, *paths: Path) -> Read:
        report = Report()
        batches = list(importer.read(list(paths), report))
        book = [rows_of(batch) for batch in batches if "flags" in batch.schema.names]
        tape = [prints_of(batch) for batch in batches if "side" in batch.schema.names]
        empty_book, empty_tape = _empty()
        return Read(Rows.joined([*book, empty_book]), Prints.joined([*tape, empty_tape]), report, batches)

    return run


def _empty() -> tuple[Rows, Prints]:
    from blindcast_datasources.columns import BOOK, TRADES

    return rows_of(BOOK.empty_table()), prints_of(TRADES.empty_table())


@pytest.fixture
def wide_book() -> Callable[..., Path]:
    """Writes wide parquet: one (time ms or None, bids, asks) a row; levels are (price, size), best first."""

    def write(
        path: Path,
        rows: Sequence[tuple[int | None, Sequence[tuple[float, float]], Sequence[tuple[float, float]]]],
        levels: int = 2,
        **columns: Any,
    ) -> Path:
        table: dict[str, Any] = {
            "origin_time": pa.array([None if at is None else (START_MS + at) * 10**6 for at, _, _ in rows], pa.timestamp("ns")),
            "received_time": pa.array([(START_MS + (at or 0) + 5) * 10**6 for at, _, _ in rows], pa.timestamp("ns")),
            "sequence_number": pa.array(range(len(rows)), pa.int64()),
            "symbol": ["XY-USD"] * len(rows),
            "exchange": ["NOWHERE"] * len(rows),
        }
        for name, place in (("bid", 1), ("ask", 2)):
            sides: list[Any] = [row[place] for row in rows]
            for k in range(levels):
                held = [side[k] if k < len(side) else (None, None) for side in sides]
                table[f"{name}_{k}_price"] = pa.array([price for price, _ in held], pa.float64())
                table[f"{name}_{k}_size"] = pa.array([size for _, size in held], pa.float64())
        pq.write_table(pa.table(table | columns), path)
        return path

    return write


@pytest.fixture
def wide_trades() -> Callable[..., Path]:
    """Writes wide parquet of prints: (time ms, price, size, side, id) a row."""

    def write(path: Path, rows: Sequence[tuple[int, float, float, str, int]]) -> Path:
        at, price, size, side, number = zip(*rows, strict=True)
        times = pa.array([(START_MS + ms) * 10**6 for ms in at], pa.timestamp("ns"))
        table = {"side": side, "quantity": size, "price": price, "trade_id": number, "origin_time": times, "received_time": times}
        pq.write_table(pa.table({**table, "symbol": ["XY-USD"] * len(rows), "exchange": ["NOWHERE"] * len(rows)}), path)
        return path

    return write


@pytest.fixture
def make_pool(tmp_path: Path) -> Callable[..., Path]:
    """Imports files into a pool."""

    def make(importer: Any, *paths: Path, name: str = "pool", options: Mapping[str, Any] | None = None) -> Path:
        from blindcast_datasources.imports import ImportOrder, run_import
        from blindcast_datasources.raw import found

        files = found(paths)[0]
        run_import(ImportOrder(importer, "test", "0", options or {}, files, list(paths), tmp_path / name), Report())
        return tmp_path / name

    return make


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Where the real recordings lie; the test is skipped without them."""
    named = os.environ.get("BLINDCAST_REAL_DATA")
    places = (
        [Path(named)] if named else [up / "shared" / "data" for start in (Path.cwd(), Path(__file__).resolve()) for up in start.parents]
    )
    for place in places:
        if (place / "lake").is_dir():
            return place
    pytest.skip("real data not found: set BLINDCAST_REAL_DATA")
