"""Tiny invented recordings in the layouts that the shipped importers read, with faults planted in them (data.md 3, 4)."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import frozen

__all__ = ["SAMPLES", "RawSample"]

START_NS: Final = 1_583_020_800_000_000_000  # 2020-03-01 00:00 UTC
SECOND_NS: Final = 1_000_000_000
SYMBOL: Final = "ZQXUSD"


@frozen
class RawSample:
    """A recording that an importer's checks read: an importer has it as the attribute `sample`, ours are known by name.

    `write(folder)` writes the files and returns them in time order, under names that lie about the order; two at least.
    `damaged(folder)` yields what was done and the files, each of which must be refused. The first book row is at
    `first_ns`, its best bid `first_bid` ticks of `tick_size`. `counts` are the numbers a report must hold, planted.
    """

    write: Callable[[Path], Sequence[Path]]
    damaged: Callable[[Path], Iterator[tuple[str, Sequence[Path]]]]
    first_ns: int
    first_bid: int
    tick_size: str
    counts: Mapping[str, int]


def _ms(k: float) -> int:
    return START_NS // 1_000_000 + round(1000 * k)


def _line(at_s: float, message: Mapping[str, Any], stream: str = "") -> str:
    said = {"stream": f"{SYMBOL.lower()}@{stream}", "data": message} if stream else message
    return f"{START_NS + round(at_s * SECOND_NS) + 5_000_000} {json.dumps(said, separators=(',', ':'))}\n"


def _snapshot(at_s: float, update: int, best: str) -> str:
    bids = [[best, "2.0"], ["4.33", "1.5"], ["4.30", "7.0"]]
    return _line(at_s, {"lastUpdateId": update, "bids": bids, "asks": [["4.36", "1.0"], ["4.38", "2.5"]]})


def _diff(at_s: float, first: int, bids: list[list[str]], asks: list[list[str]], last: int | None = None) -> str:
    ids = {"U": first, "u": last or first}
    return _line(at_s, {"e": "depthUpdate", "E": _ms(at_s), "s": SYMBOL, **ids, "b": bids, "a": asks}, "depth@100ms")


def _trade(at_s: float, number: int, price: str, size: str, *, sold: bool) -> str:
    words = {"e": "trade", "E": _ms(at_s), "s": SYMBOL, "t": number, "p": price, "q": size, "T": _ms(at_s), "m": sold}
    return _line(at_s, words, "trade")


def _spot() -> tuple[str, str]:
    """Two stretches of a spot recording: a crossed state, then a missing update 54, and a snapshot that mends it."""
    first = [
        _diff(0.0, 49, [["4.34", "1.0"]], [], 50),  # stale: the snapshot has it
        _snapshot(0.1, 50, "4.35"),
        _diff(0.2, 51, [["4.35", "3.0"]], []),
        _trade(0.3, 7, "4.36", "0.5", sold=False),
        _trade(0.3, 7, "4.36", "0.5", sold=False),  # the same print again
        _diff(0.4, 52, [["4.37", "1.0"]], []),  # above the best ask
        _diff(0.5, 53, [["4.37", "0"]], []),
    ]
    second = [
        _diff(1.0, 55, [["4.35", "9.0"]], []),  # 54 is missing; stale once the next snapshot has come
        _trade(1.1, 8, "4.35", "0", sold=True),  # no size: no trade
        _snapshot(1.2, 60, "4.35"),
        _diff(1.3, 61, [["4.34", "2.0"]], [["4.36", "0"]]),
        _trade(1.4, 9, "4.35", "1.25", sold=True),
    ]
    return "".join(first), "".join(second)


def _write_raw(folder: Path) -> Sequence[Path]:
    paths = (folder / "z-depth.raw", folder / "a-depth.raw")
    for path, text in zip(paths, _spot(), strict=True):
        path.write_text(text, encoding="ascii")
    return paths


def _damage_raw(folder: Path) -> Iterator[tuple[str, Sequence[Path]]]:
    text = "".join(_spot()).encode()
    packed = gzip.compress(text, mtime=0)
    broken = bytearray(gzip.compress(text, mtime=0))
    broken[-6] ^= 1  # in the checksum
    flipped = bytearray(packed)
    flipped[len(flipped) // 2] ^= 4
    made = {
        "cut within a line": ("cut.raw", text[: len(text) * 2 // 3]),
        "cut within the gzip": ("cut.raw.gz", packed[: len(packed) * 2 // 3]),
        "one bit of the gzip flipped": ("flipped.raw.gz", bytes(flipped)),
        "the second gzip member broken": ("second.raw.gz", packed + bytes(broken)),
        "bytes after the last gzip member": ("after.raw.gz", packed + b"xx"),
    }
    for what, (name, data) in made.items():
        (folder / name).write_bytes(data)
        yield what, [folder / name]


def _book(rows: Sequence[tuple[float, float, float]]) -> dict[str, list[Any]]:
    """Wide columns of books with two levels a side: time in s, best bid, best ask."""
    table: dict[str, list[Any]] = {"origin_time": [], "received_time": [], "sequence_number": [], "symbol": [], "exchange": []}
    for number, (at_s, bid, ask) in enumerate(rows):
        at_ns = START_NS + round(at_s * SECOND_NS)
        row = {
            "origin_time": at_ns,
            "received_time": at_ns + 5_000_000,
            "sequence_number": number,
            "symbol": "ZQX-USD",
            "exchange": "ACMEX",
        }
        row |= {"bid_0_price": bid, "bid_0_size": 2.0, "bid_1_price": 4.3, "bid_1_size": 7.0 + at_s}
        row |= {"ask_0_price": ask, "ask_0_size": 1.0, "ask_1_price": 4.5, "ask_1_size": 2.5}
        for name, value in row.items():
            table.setdefault(name, []).append(value)
    return table


def _tape() -> dict[str, list[Any]]:
    """Wide columns of prints: one has no size, one comes twice, two ids are missing before the last."""
    prints = [
        (0.2, 6, 4.35, 0.0, "sell"),
        (0.3, 7, 4.36, 0.5, "buy"),
        (0.3, 7, 4.36, 0.5, "buy"),
        (1.2, 8, 4.35, 1.5, "sell"),
        (1.4, 11, 4.35, 1.5, "sell"),
    ]
    times = [START_NS + round(at_s * SECOND_NS) for at_s, *_ in prints]
    table: dict[str, list[Any]] = {"origin_time": times, "received_time": [at_ns + 5_000_000 for at_ns in times]}
    table |= {name: [one[k] for one in prints] for k, name in enumerate(("trade_id", "price", "quantity", "side"), start=1)}
    return table | {"symbol": ["ZQX-USD"] * len(prints), "exchange": ["ACMEX"] * len(prints)}


def _parquet(path: Path, columns: Mapping[str, list[Any]]) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    times = {name: pa.array(values, pa.timestamp("ns")) for name, values in columns.items() if name.endswith("_time")}
    pq.write_table(pa.table(dict(columns) | times), path, write_page_checksum=True)
    return path


def _write_wide(folder: Path) -> Sequence[Path]:
    # 0.4: crossed; 0.5: the best ask stands above the second
    first = _book([(0.1, 4.35, 4.36), (0.2, 4.34, 4.36), (0.4, 4.37, 4.36), (0.5, 4.35, 4.6), (0.6, 4.35, 4.37)])
    second = _book([(1.0, 4.35, 4.36), (1.3, 4.34, 4.36)])
    made = {"z-book.parquet": first, "m-book.parquet": second, "a-trades.parquet": _tape()}
    return [_parquet(folder / name, columns) for name, columns in made.items()]


def _damage_wide(folder: Path) -> Iterator[tuple[str, Sequence[Path]]]:
    whole, *others = _write_wide(folder)
    data = whole.read_bytes()
    for what, damaged in (
        ("cut at two thirds", data[: len(data) * 2 // 3]),
        ("cut to nothing", data[:3]),
        ("one bit flipped", _flipped(data)),
    ):
        whole.write_bytes(damaged)
        yield what, [whole, *others]


def _flipped(data: bytes) -> bytes:
    """One bit of a page of `origin_time` flipped: its values stand near the start."""
    changed = bytearray(data)
    changed[60] ^= 1
    return bytes(changed)


SAMPLES: Final[Mapping[str, RawSample]] = {
    "binance": RawSample(
        write=_write_raw,
        damaged=_damage_raw,
        first_ns=START_NS + 200_000_000,
        first_bid=435,
        tick_size="0.01",
        counts={"gaps": 1, "crossed_states": 1, "duplicate_trades": 1, "zero_prints": 1, "stale_diffs": 2, "snapshots": 2},
    ),
    "lake": RawSample(
        write=_write_wide,
        damaged=_damage_wide,
        first_ns=START_NS + 100_000_000,
        first_bid=435,
        tick_size="0.01",
        counts={"bad_rows": 1, "crossed_states": 1, "duplicate_trades": 1, "zero_prints": 1, "trade_id_gaps": 1, "trade_ids_missing": 2},
    ),
}
