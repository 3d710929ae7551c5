"""The columns of a pool (DP-02, DP-03): exact Arrow types, the bits of `flags`, and batches to and from arrays."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
from attrs import frozen
from numpy.typing import NDArray

from blindcast.records import I64

__all__ = ["BOOK", "DEPTH", "FORMAT", "NULL", "SIDES", "TRADES", "Prints", "Rows", "book_batch", "prints_of", "rows_of", "trades_batch"]

FORMAT: Final = "blindcast.pool/1"
DEPTH: Final = 20  # levels a side that a row has room for
NULL: Final = -(2**63)  # a missing integer, in arrays and in hashes (DP-06)
SIDES: Final = ("bid_px", "bid_sz", "ask_px", "ask_sz")

SNAPSHOT: Final = 1  # first state after a snapshot in a delta feed
AFTER_GAP: Final = 2  # first state after a gap
PURGED: Final = 4  # a crossing level was removed
SHORT: Final = 8  # fewer than `depth` levels on a side
CROSSED: Final = 16
CLAMPED: Final = 32  # time clamped to keep order
LOCKED: Final = 64  # bid = ask
BEYOND: Final = 128  # a level shown lies outside the range the last snapshot covered
ONE_SIDED: Final = 256  # a side is empty
INVALID: Final = CROSSED | ONE_SIDED  # no mid may be read off such a state (G-02)

_LEVELS = pa.list_(pa.int64(), DEPTH)
_METADATA = {"format": FORMAT}
BOOK: Final = pa.schema(
    [
        pa.field("ts_ns", pa.int64(), nullable=False),
        pa.field("recv_ns", pa.int64()),
        pa.field("seq", pa.int64()),
        pa.field("flags", pa.uint16(), nullable=False),
        *(pa.field(name, _LEVELS, nullable=False) for name in SIDES),
    ],
    metadata=_METADATA,
)
TRADES: Final = pa.schema(
    [
        pa.field("ts_ns", pa.int64(), nullable=False),
        pa.field("recv_ns", pa.int64()),
        pa.field("px", pa.int64(), nullable=False),
        pa.field("sz", pa.int64(), nullable=False),
        pa.field("side", pa.int8(), nullable=False),
        pa.field("trade_id", pa.int64()),
        pa.field("kind", pa.uint8(), nullable=False),
        pa.field("n", pa.uint16(), nullable=False),
    ],
    metadata=_METADATA,
)


@frozen(eq=False)
class Rows:
    """Book states as arrays: times and `seq` I64[n] (NULL: unknown), `flags` I64[n], `levels` I64[n, 4, 20] in the order of SIDES."""

    ts: I64
    recv: I64
    seq: I64
    flags: I64
    levels: I64

    def __len__(self) -> int:
        return len(self.ts)

    def take(self, picked: NDArray[np.intp] | NDArray[np.bool_] | slice) -> Rows:
        """The states at `picked`."""
        return Rows(self.ts[picked], self.recv[picked], self.seq[picked], self.flags[picked], self.levels[picked])

    @staticmethod
    def joined(parts: list[Rows]) -> Rows:
        """Several blocks as one."""
        return parts[0] if len(parts) == 1 else Rows(*(np.concatenate([getattr(part, name) for part in parts]) for name in _ROW_FIELDS))


_ROW_FIELDS = ("ts", "recv", "seq", "flags", "levels")
_PRINT_FIELDS = ("ts", "recv", "px", "sz", "side", "trade_id", "kind", "n")


@frozen(eq=False)
class Prints:
    """Prints as arrays I64[n], in the order of the table's columns; `first` and `last` are the ids that a print covers (NULL: unknown)."""

    ts: I64
    recv: I64
    px: I64
    sz: I64
    side: I64
    trade_id: I64
    kind: I64
    n: I64
    first: I64
    last: I64

    def __len__(self) -> int:
        return len(self.ts)

    def take(self, picked: NDArray[np.intp] | NDArray[np.bool_] | slice) -> Prints:
        """The prints at `picked`."""
        return Prints(*(getattr(self, name)[picked] for name in (*_PRINT_FIELDS, "first", "last")))

    @staticmethod
    def joined(parts: list[Prints]) -> Prints:
        """Several blocks as one."""
        if len(parts) == 1:
            return parts[0]
        return Prints(*(np.concatenate([getattr(part, name) for part in parts]) for name in (*_PRINT_FIELDS, "first", "last")))


def _nullable(values: I64, kind: Any) -> Any:
    missing = values == NULL
    return pa.array(values, type=kind, mask=missing) if missing.any() else pa.array(values, type=kind)


def book_batch(rows: Rows) -> pa.RecordBatch:
    """Rows as a batch of BOOK."""
    lists = [pa.FixedSizeListArray.from_arrays(_nullable(rows.levels[:, k].ravel(), pa.int64()), type=_LEVELS) for k in range(len(SIDES))]
    singles = [pa.array(rows.ts), _nullable(rows.recv, pa.int64()), _nullable(rows.seq, pa.int64()), pa.array(rows.flags.astype(np.uint16))]
    return pa.RecordBatch.from_arrays([*singles, *lists], schema=BOOK)


def trades_batch(prints: Prints) -> pa.RecordBatch:
    """Prints as a batch of TRADES."""
    arrays = []
    for name, field in zip(_PRINT_FIELDS, TRADES, strict=True):
        values = getattr(prints, name)
        arrays.append(_nullable(values, pa.int64()) if field.nullable else pa.array(values.astype(field.type.to_pandas_dtype())))
    return pa.RecordBatch.from_arrays(arrays, schema=TRADES)


def _numbers(column: Any) -> I64:
    """A column of integers, or of lists of them, flat, as int64 with NULL for null."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_fixed_size_list(column.type) or pa.types.is_list(column.type):
        column = column.flatten()
    if column.null_count:
        column = column.cast(pa.int64()).fill_null(NULL)
    return np.asarray(column.to_numpy(zero_copy_only=False)).astype(np.int64, copy=False)


def rows_of(table: pa.Table | pa.RecordBatch) -> Rows:
    """Arrays of a table with BOOK's columns."""
    n = table.num_rows
    levels = np.empty((n, len(SIDES), DEPTH), dtype=np.int64)
    for k, name in enumerate(SIDES):
        levels[:, k] = _numbers(table.column(name)).reshape(n, DEPTH)
    ts, recv, seq, flags = (_numbers(table.column(name)) for name in ("ts_ns", "recv_ns", "seq", "flags"))
    return Rows(ts, recv, seq, flags, levels)


def prints_of(table: pa.Table | pa.RecordBatch) -> Prints:
    """Arrays of a table with TRADES' columns; the ids covered are unknown."""
    unknown = np.full(table.num_rows, NULL, dtype=np.int64)
    columns = [*(_numbers(table.column(name)) for name in TRADES.names), unknown, unknown]
    return Prints(*columns)
