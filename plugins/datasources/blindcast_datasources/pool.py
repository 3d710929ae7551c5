"""Reading a pool: `meta.json`, the index of times and flags, row groups; damage is told, never repaired (DP-01 to DP-05, L-02, L-03)."""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from attrs import frozen
from numpy.typing import NDArray

from blindcast.errors import DataError, IntegrityError
from blindcast.records import I64
from blindcast_datasources.columns import FORMAT, INVALID
from blindcast_datasources.parts import TABLES

__all__ = ["Index", "Pool"]

GROUPS_KEPT: Final = 2  # decoded row groups of a table held in memory: neighbouring windows share one
_KEYS: Final = ("tick_size", "lot_size", "t0_ns", "t1_ns", "rows", "trades", "gaps", "parts", "hashes")


@frozen(eq=False)
class Index:
    """Time and flags of every book row, in order, and the numbers of the valid ones (G-02)."""

    ts: I64
    flags: NDArray[np.uint16]
    valid: I64


@frozen
class _Group:
    part: int
    group: int
    first: int  # number of its first row in the table
    t0_ns: int
    t1_ns: int
    rows: int


class Pool:
    """One pool on disk, opened read-only. Opening reads `meta.json` alone.

    Raises DataError `pool_missing`, IntegrityError `pool_damaged`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.meta = _meta(path)
        self._groups = {table: self._of(table) for table in TABLES}
        self._files: dict[tuple[str, int], pq.ParquetFile] = {}
        self._decoded: OrderedDict[tuple[str, int], pa.Table] = OrderedDict()
        self._index: Index | None = None

    @property
    def digest(self) -> str:
        """sha256 hex of the content (DP-06)."""
        return str(self.meta["hashes"]["digest"])

    def index(self) -> Index:
        """Times and flags of all book rows; the first call reads them and checks every part against `meta` (L-03)."""
        if self._index is None:
            tables = []
            for table in TABLES:
                for part in range(len(self._parts(table))):
                    self._check(table, part)
            for part in range(len(self._parts("book_events"))):
                tables.append(self._guarded("book_events", part, lambda file: file.read(["ts_ns", "flags"])))
            read = pa.concat_tables(tables) if tables else pa.table({"ts_ns": pa.array([], pa.int64()), "flags": pa.array([], pa.uint16())})
            ts, flags = read.column("ts_ns").to_numpy(), read.column("flags").to_numpy()
            groups = self._groups["book_events"]
            edges = [(ts[group.first], ts[group.first + group.rows - 1]) for group in groups]
            if (np.diff(ts) < 0).any() or edges != [(group.t0_ns, group.t1_ns) for group in groups]:
                raise self._damaged("book_events", "its times are not those of meta.json")
            self._index = Index(ts, flags, np.flatnonzero((flags & INVALID) == 0).astype(np.int64))
        return self._index

    def rows(self, first: int, end: int) -> pa.Table:
        """Book rows [first, end) by number."""
        return self._slices("book_events", [(group, max(first - group.first, 0), min(end - group.first, group.rows))
                                            for group in self._groups["book_events"]
                                            if group.first < end and first < group.first + group.rows])  # fmt: skip

    def prints(self, from_ns: int, until_ns: int) -> pa.Table:
        """The prints with from_ns <= ts < until_ns."""
        wanted = []
        for group in self._groups["trades"]:
            if group.t1_ns >= from_ns and group.t0_ns < until_ns:
                ts = self._decode("trades", group).column("ts_ns").to_numpy()
                wanted.append((group, int(np.searchsorted(ts, from_ns)), int(np.searchsorted(ts, until_ns))))
        return self._slices("trades", wanted)

    def most_prints(self, from_ns: int, until_ns: int) -> int:
        """An upper bound of the prints in [from_ns, until_ns), from `meta` alone."""
        return sum(group.rows for group in self._groups["trades"] if group.t1_ns >= from_ns and group.t0_ns < until_ns)

    def tables(self, table: str) -> Iterator[pa.Table]:
        """Every row group of a table in order, decoded one by one."""
        return (self._decode(table, group) for group in self._groups[table])

    def _parts(self, table: str) -> list[dict[str, Any]]:
        return [part for part in self.meta["parts"] if part["table"] == table]

    def _of(self, table: str) -> list[_Group]:
        groups: list[_Group] = []
        first = 0
        for part, entry in enumerate(self._parts(table)):
            for group, (t0_ns, t1_ns, rows) in enumerate(entry["groups"]):
                groups.append(_Group(part, group, first, t0_ns, t1_ns, rows))
                first += rows
        return groups

    def _slices(self, table: str, wanted: list[tuple[_Group, int, int]]) -> pa.Table:
        pieces = [self._decode(table, group).slice(start, end - start) for group, start, end in wanted if end > start]
        schema = TABLES[table].remove_metadata()
        return pa.concat_tables(pieces) if pieces else schema.empty_table()

    def _decode(self, table: str, group: _Group) -> pa.Table:
        key = (table, group.first)
        if key not in self._decoded:
            read = self._guarded(table, group.part, lambda file: file.read_row_group(group.group, use_threads=False))
            if read.num_rows != group.rows:
                raise self._damaged(table, f"row group {group.group} has {read.num_rows} rows, not {group.rows}")
            mine = [held for held in self._decoded if held[0] == table]
            for old in mine[: max(len(mine) - GROUPS_KEPT + 1, 0)]:
                del self._decoded[old]
            self._decoded[key] = read.cast(TABLES[table]).replace_schema_metadata(None)
        self._decoded.move_to_end(key)
        return self._decoded[key]

    def _guarded(self, table: str, part: int, read: Any) -> pa.Table:
        try:
            return read(self._open(table, part))
        except (pa.ArrowException, OSError, IndexError) as error:
            raise self._damaged(table, str(error)) from error

    def _open(self, table: str, part: int) -> pq.ParquetFile:
        if (table, part) not in self._files:
            file = self._path / self._parts(table)[part]["file"]
            self._files[table, part] = pq.ParquetFile(file, pre_buffer=False, page_checksum_verification=True)
        return self._files[table, part]

    def _check(self, table: str, part: int) -> None:
        """Compare a part's footer with `meta.parts`."""
        try:
            footer = self._open(table, part).metadata
        except (pa.ArrowException, OSError) as error:
            raise self._damaged(table, str(error)) from error
        found = []
        for number in range(footer.num_row_groups):
            group = footer.row_group(number)
            times = group.column(0).statistics
            found.append(
                [times.min, times.max, group.num_rows] if times is not None and times.has_min_max else [None, None, group.num_rows]
            )
        if found != [list(group) for group in self._parts(table)[part]["groups"]]:
            raise self._damaged(table, f"{sum(group[2] for group in found)} rows in {len(found)} row groups are not those of meta.json")

    def _damaged(self, table: str, why: str) -> IntegrityError:
        return _damaged(self._path, f"{table}: {why}")


def _damaged(path: Path, why: str) -> IntegrityError:
    return IntegrityError(
        "pool_damaged",
        f"the pool {path.name} is damaged: {why}",
        expected="the parts that meta.json lists, unchanged since the import",
        do="import it again from the raw files",
        path=str(path),
    )


def _meta(path: Path) -> dict[str, Any]:
    try:
        text = (path / "meta.json").read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(
            "pool_missing",
            f"there is no pool at {path}" + (" (a folder without meta.json)" if path.is_dir() else ""),
            expected="a folder that `blindcast data import` made",
            do="blindcast data import [IMPORTER:]PATH -o POOL, or set BLINDCAST_DATA_DIR to the folder that a relative path starts from",
            path=str(path),
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise _damaged(path, f"meta.json: {error}") from error
    try:
        meta = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"meta.json: {error}") from error
    if not isinstance(meta, dict) or meta.get("format") != FORMAT or any(key not in meta for key in _KEYS) or not _is_sound(meta):
        raise _damaged(path, f"meta.json is none of {FORMAT}")
    return meta


def _is_sound(meta: dict[str, Any]) -> bool:
    """Whether what a reader relies on has the types of DP-05."""

    def counts(*values: object) -> bool:
        return all(type(value) is int for value in values)

    try:
        groups = [group for part in meta["parts"] for group in part["groups"]]
        return (
            all(isinstance(text, str) for text in (meta["tick_size"], meta["lot_size"], *(part["file"] for part in meta["parts"])))
            and counts(*(meta[key] for key in ("t0_ns", "t1_ns") if meta[key] is not None), meta["rows"], meta["trades"])
            and all(part["table"] in TABLES for part in meta["parts"])
            and all(len(group) == 3 and counts(*group) for group in groups)
            and all(counts(gap["from_ns"], *([] if gap["to_ns"] is None else [gap["to_ns"]])) for gap in meta["gaps"])
            and re.fullmatch(r"[0-9a-f]{64}", meta["hashes"]["digest"]) is not None
        )
    except (KeyError, TypeError):
        return False
