"""Pools on disk: format, hashes, atomic writing, damage."""

from __future__ import annotations

import errno
import hashlib
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from blindcast.errors import DataError, FaultError, IntegrityError, UsageError
from blindcast_datasources.columns import BOOK, NULL, TRADES, prints_of, rows_of
from blindcast_datasources.imports import ImportOrder, best_importer, run_import
from blindcast_datasources.lake import Lake
from blindcast_datasources.parts import PartWriter
from blindcast_datasources.pool import Pool
from blindcast_datasources.raw import found
from blindcast_datasources.report import COUNTS, Report

KEYS = (
    "format venue symbol base quote inverse contract_multiplier tick_size lot_size inferred depth clock t0_ns t1_ns rows trades "
    "counts gaps missing importer sources parts hashes checks licence"
).split()
MINUTE_MS = 60_000


@pytest.fixture
def pool(tmp_path: Path, wide_book: Callable[..., Path], wide_trades: Callable[..., Path], make_pool: Callable[..., Path]) -> Path:
    """A pool of 40 minutes with a row every 10 s."""
    rows = [(k * 10_000, [(100.0 - k % 3, 1.0 + k), (90.0, 1.0)], [(101.0, 2.0)]) for k in range(240)]
    book = wide_book(tmp_path / "book.parquet", rows)
    trades = wide_trades(tmp_path / "trades.parquet", [(k * 30_000, 100.0, 1.0, "sell", k) for k in range(80)])
    return make_pool(Lake(levels=2), book, trades)


def test_tables_have_exactly_the_columns_of_the_page(pool: Path) -> None:
    """DP-02, DP-04."""
    for name, schema in (("book_events", BOOK), ("trades", TRADES)):
        file = pq.ParquetFile(pool / f"{name}.parquet")
        assert file.schema_arrow.equals(schema, check_metadata=True)
        assert file.schema_arrow.metadata == {b"format": b"blindcast.pool/1"}
        group = file.metadata.row_group(0)
        assert {group.column(k).compression for k in range(group.num_columns)} == {"ZSTD"}
        assert group.column(0).has_column_index
        assert group.column(0).statistics is not None
    assert pq.read_table(pool / "book_events.parquet").schema.field("bid_px").type == pa.list_(pa.int64(), 20)


def test_meta_has_every_key_and_no_path(pool: Path, tmp_path: Path) -> None:
    """DP-05."""
    text = (pool / "meta.json").read_text(encoding="utf-8")
    meta = json.loads(text)
    assert sorted(meta) == sorted(KEYS)
    assert set(COUNTS) <= set(meta["counts"])
    assert (meta["rows"], meta["trades"], meta["depth"], meta["clock"]) == (240, 80, 2, "exchange")
    assert (meta["tick_size"], meta["lot_size"], meta["inferred"]) == ("1", "1", {"tick": True, "lot": True})
    assert [source["name"] for source in meta["sources"]] == ["book.parquet", "trades.parquet"]
    assert meta["sources"][0]["sha256"] == hashlib.sha256((tmp_path / "book.parquet").read_bytes()).hexdigest()
    assert (meta["t0_ns"], meta["t1_ns"]) == (meta["sources"][0]["first_ts_ns"], meta["sources"][0]["last_ts_ns"])
    assert str(tmp_path) not in text
    assert meta["base"] == "XY"
    assert meta["licence"] is None


def test_row_groups_end_at_each_quarter_hour(pool: Path) -> None:
    """DP-04."""
    groups = json.loads((pool / "meta.json").read_text(encoding="utf-8"))["parts"][0]["groups"]
    assert [rows for _, _, rows in groups] == [90, 90, 60]
    assert pq.ParquetFile(pool / "book_events.parquet").num_row_groups == 3


def test_row_groups_hold_at_most_65536_rows(tmp_path: Path) -> None:
    """DP-04."""
    n = 70_000
    columns = [pa.array([0] * n, field.type) for field in TRADES]
    writer = PartWriter(tmp_path, "trades")
    writer.put(pa.RecordBatch.from_arrays(columns, schema=TRADES))
    assert [rows for _, _, rows in writer.close()["groups"]] == [65_536, 4_464]


def test_hashes_are_those_of_the_page(pool: Path) -> None:
    """DP-06, written out by hand."""
    rows, prints = rows_of(pq.read_table(pool / "book_events.parquet")), prints_of(pq.read_table(pool / "trades.parquet"))
    ladder, book, tape, trades = (hashlib.sha256() for _ in range(4))
    for k in range(len(rows)):
        levels = rows.levels[k].ravel().tolist()
        ladder.update(struct.pack("<81q", rows.ts[k], *levels))
        book.update(struct.pack("<84q", rows.ts[k], rows.recv[k], rows.seq[k], rows.flags[k], *levels))
    for ts, recv, px, sz, side, number, kind, n in zip(
        prints.ts, prints.recv, prints.px, prints.sz, prints.side, prints.trade_id, prints.kind, prints.n, strict=True
    ):
        tape.update(struct.pack("<5q", ts, px, sz, side, kind))
        trades.update(struct.pack("<8q", ts, recv, px, sz, side, number, kind, n))
    digest = hashlib.sha256(f"blindcast.pool/1\n1\n1\n{book.hexdigest()}\n{trades.hexdigest()}\n".encode()).hexdigest()
    expected = {"ladder_sha256": ladder.hexdigest(), "prints_sha256": tape.hexdigest(), "digest": digest}
    assert Pool(pool).meta["hashes"] == expected
    assert NULL in rows.levels


class _Breaks:
    """An importer that gives one batch and then fails."""

    def __init__(self, error: BaseException, first: Any) -> None:
        self.error, self.first = error, first

    def sniff(self, path: Path) -> float:
        return 0.0

    def read(self, paths: object, report: object) -> Any:
        yield from self.first
        raise self.error


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt(), ValueError("a bug")])
def test_a_failed_import_leaves_nothing(tmp_path: Path, pool: Path, error: BaseException) -> None:
    """DP-01: a full disk, Ctrl-C, a bug."""
    batches = pq.ParquetFile(pool / "book_events.parquet").iter_batches(50)
    files = found([tmp_path / "book.parquet"])[0]
    order = ImportOrder(_Breaks(error, batches), "breaks", "0", {}, files, [], tmp_path / "out" / "new")
    with pytest.raises(FaultError if isinstance(error, OSError) else type(error)):
        run_import(order, Report())
    assert list((tmp_path / "out").iterdir()) == []


def test_a_full_disk_is_told_as_such(tmp_path: Path, pool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DP-01: while the file itself is written."""

    def full(self: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(PartWriter, "close", full)
    files = found([tmp_path / "book.parquet"])[0]
    with pytest.raises(FaultError, match="No space left") as fault:
        run_import(ImportOrder(Lake(levels=2), "lake", "0", {}, files, [tmp_path / "book.parquet"], tmp_path / "out" / "new"), Report())
    assert fault.value.code == "pool_unwritable"
    assert list((tmp_path / "out").iterdir()) == []


def test_an_existing_pool_is_replaced_only_by_force(tmp_path: Path, pool: Path) -> None:
    """DI-10, F-09: and what is no pool never."""
    paths = [tmp_path / "book.parquet"]

    def again(target: Path, force: bool) -> None:
        run_import(ImportOrder(Lake(levels=2), "lake", "0", {}, found(paths)[0], paths, target, force), Report())

    with pytest.raises(UsageError) as refused:
        again(pool, force=False)
    assert refused.value.code == "pool_exists"
    again(pool, force=True)
    assert Pool(pool).meta["trades"] == 0
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letters").write_text("dear", encoding="utf-8")
    with pytest.raises(UsageError):
        again(tmp_path / "home", force=True)
    assert (tmp_path / "home" / "letters").exists()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_an_input_without_a_valid_state_makes_no_pool(
    tmp_path: Path, wide_book: Callable[..., Path], make_pool: Callable[..., Path]
) -> None:
    """DI-10."""
    book = wide_book(tmp_path / "b.parquet", [(0, [(100.0, 1.0)], [])])
    with pytest.raises(DataError) as refused:
        make_pool(Lake(levels=1), book)
    assert refused.value.code == "pool_empty"
    assert not (tmp_path / "pool").exists()


def test_what_is_no_pool_is_missing_and_what_is_broken_damaged(tmp_path: Path, pool: Path) -> None:
    """L-03."""
    for nothing in (tmp_path / "none", tmp_path):
        with pytest.raises(DataError) as refused:
            Pool(nothing)
        assert refused.value.code == "pool_missing"
    (pool / "meta.json").write_text("{", encoding="utf-8")
    with pytest.raises(IntegrityError) as damaged:
        Pool(pool)
    assert damaged.value.code == "pool_damaged"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("tick_size", 0.01),
        ("t0_ns", "0"),
        ("rows", None),
        ("parts", "x"),
        ("parts", [{"table": "book_events"}]),
        ("gaps", [1]),
        ("gaps", [{"from_ns": "0", "to_ns": None}]),
        ("hashes", []),
        ("hashes", {"digest": 7}),
    ],
)
def test_meta_of_other_types_is_damage(pool: Path, key: str, value: object) -> None:
    """DP-05: and no fault of the spec that names the pool."""
    meta = json.loads((pool / "meta.json").read_text(encoding="utf-8"))
    (pool / "meta.json").write_text(json.dumps(meta | {key: value}), encoding="utf-8")
    with pytest.raises(IntegrityError) as damaged:
        Pool(pool)
    assert damaged.value.code == "pool_damaged"


def _cut(pool: Path) -> None:
    file = pool / "book_events.parquet"
    file.write_bytes(file.read_bytes()[:-100])


def _remove(pool: Path) -> None:
    (pool / "trades.parquet").unlink()


def _other_rows(pool: Path) -> None:
    file = pool / "book_events.parquet"
    pq.write_table(pq.read_table(file).slice(0, 100), file)


def _other_times(pool: Path) -> None:
    meta = json.loads((pool / "meta.json").read_text(encoding="utf-8"))
    meta["parts"][0]["groups"][1][0] += 1
    (pool / "meta.json").write_text(json.dumps(meta), encoding="utf-8")


@pytest.mark.parametrize("damage", [_cut, _remove, _other_rows, _other_times])
def test_parts_that_are_not_those_of_meta_are_damage(pool: Path, damage: Callable[[Path], None]) -> None:
    """L-03."""
    damage(pool)
    with pytest.raises(IntegrityError) as damaged:
        Pool(pool).index()
    assert (damaged.value.code, damaged.value.exit_code) == ("pool_damaged", 4)


def test_a_flipped_bit_in_a_page_is_damage(pool: Path) -> None:
    """L-03: pages carry checksums."""
    file = pool / "book_events.parquet"
    column = pq.ParquetFile(file).metadata.row_group(1).column(4)
    data = bytearray(file.read_bytes())
    data[column.data_page_offset + column.total_compressed_size // 2] ^= 1
    file.write_bytes(data)
    opened = Pool(pool)
    with pytest.raises(IntegrityError):
        opened.rows(90, 180)


def test_the_best_importer_needs_half_and_a_lead() -> None:
    """DI-01."""
    assert best_importer({"a": 0.9, "b": 0.7}) == "a"
    for scores, code in (({"a": 0.4}, "format_unknown"), ({}, "format_unknown"), ({"a": 0.9, "b": 0.8}, "format_ambiguous")):
        with pytest.raises(DataError) as refused:
            best_importer(scores)
        assert refused.value.code == code


def test_a_folder_stands_for_its_files_but_notes_and_hidden_ones(tmp_path: Path) -> None:
    """DI-01."""
    for name in ("a.csv", "b/c.csv", ".hidden", "_SUCCESS", "README.md", "_tmp/d.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    files, passed = found([tmp_path])
    assert [file.name for file in files] == ["a.csv", "c.csv"]
    assert sorted(path.name for path in passed) == [".hidden", "README.md", "_SUCCESS", "d.csv"]
    with pytest.raises(DataError) as refused:
        found([tmp_path / "none*"])
    assert refused.value.code == "path_missing"
