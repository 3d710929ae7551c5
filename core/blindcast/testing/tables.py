"""The pool's two tables as the checks see them: columns, levels, and what makes a book sane (data.md DP-02, DP-03)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from blindcast.records import I64

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["DEPTH", "SIDES", "book_schema", "check_book", "levels_of", "trades_schema"]

DEPTH: Final = 20
SIDES: Final = ("bid_px", "bid_sz", "ask_px", "ask_sz")
SHORT, CROSSED, LOCKED, ONE_SIDED = 8, 16, 64, 256  # bits of `flags` (DP-03)


def book_schema() -> pa.Schema:
    """The columns of `book_events` (DP-02)."""
    import pyarrow as pa

    levels = pa.list_(pa.int64(), DEPTH)
    fields = [pa.field("ts_ns", pa.int64(), nullable=False), pa.field("recv_ns", pa.int64()), pa.field("seq", pa.int64())]
    fields += [pa.field("flags", pa.uint16(), nullable=False), *(pa.field(side, levels, nullable=False) for side in SIDES)]
    return pa.schema(fields)


def trades_schema() -> pa.Schema:
    """The columns of `trades` (DP-02)."""
    import pyarrow as pa

    kinds: dict[str, Any] = {
        "ts_ns": pa.int64(),
        "recv_ns": pa.int64(),
        "px": pa.int64(),
        "sz": pa.int64(),
        "side": pa.int8(),
        "trade_id": pa.int64(),
        "kind": pa.uint8(),
        "n": pa.uint16(),
    }
    return pa.schema([pa.field(name, kind, nullable=name in ("recv_ns", "trade_id")) for name, kind in kinds.items()])


def levels_of(table: pa.Table, side: str) -> tuple[I64, NDArray[np.bool_]]:
    """I64[N, 20] of one of SIDES, 0 where null, and which items are there."""
    import pyarrow as pa

    column = table.column(side)
    flat = pa.concat_arrays([chunk.flatten() for chunk in column.chunks] or [pa.array([], pa.int64())])
    shape = (table.num_rows, DEPTH)
    there = flat.is_valid().to_numpy(zero_copy_only=False).reshape(shape)
    return flat.fill_null(0).to_numpy(zero_copy_only=False).reshape(shape), there


def check_book(said: str, table: pa.Table) -> None:
    """Raise AssertionError unless every row of a book is sane (DS-06); `said` names the table."""
    sides = {side: levels_of(table, side) for side in ("bid_px", "bid_sz", "ask_px", "ask_sz")}
    flags = table.column("flags").to_numpy()
    for side, sign in (("bid", -1), ("ask", 1)):
        (px, there), (sz, sized) = sides[f"{side}_px"], sides[f"{side}_sz"]
        _none(said, (there != sized).any(axis=1), f"{side} levels with a price and a size, or neither")
        _none(said, (there[:, 1:] & ~there[:, :-1]).any(axis=1), f"missing {side} levels at the tail only")
        _none(said, ((px <= 0) & there).any(axis=1), f"{side} prices > 0 in ticks")
        _none(said, ((sz <= 0) & there).any(axis=1), f"{side} sizes > 0")
        wrong = there[:, 1:] & (sign * np.diff(px, axis=1) <= 0)
        _none(said, wrong.any(axis=1), f"{side} prices that {'fall' if sign < 0 else 'rise'} strictly")
    both = sides["bid_px"][1][:, 0] & sides["ask_px"][1][:, 0]
    crossed = both & (sides["bid_px"][0][:, 0] > sides["ask_px"][0][:, 0])
    _none(said, crossed & (flags & CROSSED == 0), "a crossed row flagged 16")
    _none(said, ~both & (flags & ONE_SIDED == 0), "a one-sided row flagged 256")


def _none(said: str, bad: Any, expected: str) -> None:
    rows = np.flatnonzero(bad)
    assert not len(rows), f"{said}: expected {expected}, got row {rows[:1]} otherwise"
