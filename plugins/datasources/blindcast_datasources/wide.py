"""Wide parquet, as Crypto Lake dumps it: one row a book or a print, a column a level (DI-08, DI-12)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from attrs import frozen
from numpy.typing import NDArray

from blindcast.errors import DataError, ImportDamaged
from blindcast.records import F64, I64
from blindcast_datasources.columns import DEPTH, NULL
from blindcast_datasources.raw import RawFile
from blindcast_datasources.times import Clock

__all__ = ["WideBlock", "WideFile", "named", "ordered_sides"]

BLOCK_ROWS: Final = 8192
READ_BYTES: Final = 1 << 18
_MAGIC: Final = b"PAR1"
_EXCHANGE_TIMES: Final = ("origin_time", "timestamp")
_LOCAL_TIMES: Final = ("received_time", "receipt_timestamp")
_SIZES: Final = ("quantity", "amount", "size")
_IDS: Final = ("trade_id", "id")


@frozen(eq=False)
class WideBlock:
    """Some rows of one file: `exchange`, `local`, `seq` I64[n] (NULL: missing), `symbols` texts or None, and the kind's numbers.

    A book's `values` F64[n, 4, 20] (bid_px bid_sz ask_px ask_sz, NaN: no level); those of prints F64[n, 2] (price, size) beside `side`.
    """

    start: int
    exchange: I64
    local: I64
    seq: I64
    values: F64
    side: I64
    symbols: Any


class WideFile:
    """One parquet file of books or of prints. Raises ImportDamaged, DataError `format_unknown`."""

    def __init__(self, file: RawFile) -> None:
        self.file = file
        self._parquet = _opened(file)
        names = set(self._parquet.schema_arrow.names)
        self._exchange = next((name for name in _EXCHANGE_TIMES if name in names), "")
        self._local = next((name for name in _LOCAL_TIMES if name in names), "")
        self._size = next((name for name in _SIZES if name in names), "")
        self._id = next((name for name in _IDS if name in names), "")
        self.kind: Literal["book", "trades"] = "book" if "bid_0_price" in names else "trades"
        self._check(names)
        self.has_symbols = "symbol" in names
        self._names = names

    def _check(self, names: set[str]) -> None:
        needed = {"bid_0_price", "bid_0_size", "ask_0_price", "ask_0_size"} if self.kind == "book" else {"price", "side"}
        lacking = sorted(needed - names)
        if self.kind == "trades" and not self._size:
            lacking.append("quantity")
        if not (self._exchange or self._local):
            lacking.append("origin_time")
        if lacking:
            raise DataError(
                "format_unknown",
                f"{self.file.name} has no column {', '.join(lacking)}",
                expected="Crypto Lake's columns: origin_time, bid_0_price .. of a book, or price, quantity, side of prints",
                do="leave the file out, or name its importer",
                columns=sorted(names)[:50],
            )

    def texts(self, name: str) -> set[str]:
        """The distinct texts of `symbol` or `exchange`; of the folder `name=..` where there is no such column."""
        if name not in self._names:
            parts = [part.partition("=")[2] for part in self.file.path.parts if part.startswith(f"{name}=")]
            return set(parts[-1:])
        found: set[str] = set()
        for batch in self._read([name]):
            found.update(text for text in batch.column(0).cast(pa.string()).unique().to_pylist() if text is not None)
        return found

    def blocks(self, clock: Clock, levels: int) -> Iterator[WideBlock]:
        """Its rows, in the file's order. Raises ImportDamaged, DataError `time_unit`."""
        wanted = [
            name for name in (self._exchange, self._local, "sequence_number", "symbol", self._id, "side", "price", self._size) if name
        ]
        if self.kind == "book":
            wanted += [f"{side}_{k}_{part}" for side in ("bid", "ask") for k in range(levels) for part in ("price", "size")]
        start = 0
        for batch in self._read([name for name in dict.fromkeys(wanted) if name in self._names]):
            table: Mapping[str, Any] = {name: batch.column(i) for i, name in enumerate(batch.schema.names)}
            n, place = batch.num_rows, f"{self.file.name} from row {start}"
            unknown = np.full(n, NULL, dtype=np.int64)
            ids = "sequence_number" if self.kind == "book" else self._id
            yield WideBlock(
                start=start,
                exchange=_times(table[self._exchange], clock, place) if self._exchange else unknown,
                local=_times(table[self._local], clock, place) if self._local else unknown,
                seq=_ids(table[ids]) if ids in table else unknown,
                values=_books(table, n, levels)
                if self.kind == "book"
                else np.stack([_floats(table["price"]), _floats(table[self._size])], axis=1),
                side=_sides(table["side"]) if self.kind == "trades" else unknown,
                symbols=table.get("symbol"),
            )
            start += n

    def _read(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        row = 0
        try:
            for batch in self._parquet.iter_batches(BLOCK_ROWS, columns=names):
                yield batch
                row += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            raise ImportDamaged(self.file.name, f"row {row}: {error}") from error


def _opened(file: RawFile) -> pq.ParquetFile:
    try:
        with file.opened() as stream:
            head = stream.read(len(_MAGIC))
    except OSError as error:
        raise ImportDamaged(file.name, str(error)) from error
    if head != _MAGIC and not file.name.lower().endswith((".parquet", ".pq")):
        raise DataError(
            "format_unknown", f"{file.name} is no parquet file", expected="wide parquet of books and prints", do="leave the file out"
        )
    try:  # without buffers ahead: they hold a whole file's row groups at once
        return pq.ParquetFile(file.seekable(), pre_buffer=False, buffer_size=READ_BYTES, page_checksum_verification=True)
    except (pa.ArrowException, OSError) as error:
        raise ImportDamaged(file.name, f"the parquet footer: {error}") from error


def _times(column: Any, clock: Clock, place: str) -> I64:
    kind = column.type
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("ns", kind.tz)).cast(pa.int64()).fill_null(NULL)
        return Clock("ns").array_ns(np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.int64), place)
    if pa.types.is_floating(kind):
        return clock.array_ns(column.cast(pa.float64()).to_numpy(zero_copy_only=False), place)
    if pa.types.is_integer(kind):
        return clock.array_ns(column.cast(pa.int64()).fill_null(NULL).to_numpy(zero_copy_only=False), place)
    texts = column.cast(pa.string()).to_pylist()
    return np.array([NULL if not text else clock.text_ns(text, f"{place} + {row}") for row, text in enumerate(texts)], dtype=np.int64)


def _floats(column: Any) -> F64:
    if not pa.types.is_float64(column.type):
        column = column.cast(pa.float64())
    values: F64 = column.to_numpy(zero_copy_only=False)
    return values


def _ids(column: Any) -> I64:
    try:
        ids: I64 = column.cast(pa.int64()).fill_null(NULL).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:  # ids that are no integers
        return np.full(len(column), NULL, dtype=np.int64)
    return ids


def _sides(column: Any) -> I64:
    codes, words = _coded(column)
    sides = np.array([{"buy": 1, "sell": -1}.get(word.lower(), 0) for word in words], dtype=np.int64)
    found: I64 = sides[codes]
    return found


def _coded(column: Any) -> tuple[I64, list[str]]:
    """A column of texts as places in a list of its distinct ones; null is the last, ""."""
    coded = column.cast(pa.string()).dictionary_encode()
    words = [*coded.dictionary.to_pylist(), ""]
    return coded.indices.cast(pa.int64()).fill_null(len(words) - 1).to_numpy(zero_copy_only=False), words


def named(column: Any, text: str) -> NDArray[np.bool_]:
    """Which cells of a column of texts hold `text`."""
    codes, words = _coded(column)
    found: NDArray[np.bool_] = np.array([word == text for word in words])[codes]
    return found


def _books(table: Mapping[str, Any], n: int, levels: int) -> F64:
    values = np.full((n, 4, DEPTH), np.nan)
    for place, (side, part) in enumerate((side, part) for side in ("bid", "ask") for part in ("price", "size")):
        for k in range(levels):
            column = table.get(f"{side}_{k}_{part}")
            if column is not None:
                values[:, place, k] = _floats(column)
    return values


def ordered_sides(values: F64) -> NDArray[np.bool_]:
    """Make levels without price or size NaN, move up what follows a hole, in place; which rows are then usable (DI-08).

    A side that is not strictly ordered, or a negative or infinite number, makes a row unusable.
    """
    usable = np.ones(len(values), dtype=np.bool_)
    for px, sz, sign in ((values[:, 0], values[:, 1], -1.0), (values[:, 2], values[:, 3], 1.0)):
        missing = np.isnan(px) | np.isnan(sz) | (sz == 0) | (px == 0)
        if missing.any():
            px[missing] = np.nan
            sz[missing] = np.nan
            for row in np.flatnonzero((missing[:, :-1] & ~missing[:, 1:]).any(axis=1)):
                there = ~missing[row]
                count = int(there.sum())
                for side in (px, sz):
                    side[row, :count] = side[row, there]
                    side[row, count:] = np.nan
        usable &= ~((px[:, 1:] - px[:, :-1]) * sign <= 0).any(axis=1)
        usable &= ~((px < 0) | (sz < 0) | np.isinf(px) | np.isinf(sz)).any(axis=1)
    return usable
