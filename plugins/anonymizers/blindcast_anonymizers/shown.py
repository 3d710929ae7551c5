"""What any blinding may show of a window: which rows and prints (DA-03), their levels, and times in float32 (DA-01)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from blindcast.records import F32, I64

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Book", "Prints", "book", "outwards", "prints", "seconds", "until"]

SIDES = ("bid", "ask")


@frozen(eq=False)
class Book:
    """Two-sided states with bid < ask. `ts_ns` I64[N]; `px`, `sz` I64[N, 20] and `present` bool[N, 20] (None: all) by side, bid first."""

    ts_ns: I64
    px: tuple[I64, I64]
    sz: tuple[I64, I64]
    present: tuple[NDArray[np.bool_] | None, NDArray[np.bool_] | None]


@frozen(eq=False)
class Prints:
    """Prints of kind 0 with a known side. `ts_ns` I64[M]; `signed` I64[M]: lots, + where the taker bought."""

    ts_ns: I64
    signed: I64


def _whole(column: pa.ChunkedArray) -> Any:
    """One Arrow array of a column's chunks."""
    import pyarrow as pa

    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # pyarrow may keep the wrapper
        array = array.chunk(0) if array.num_chunks else pa.array([], column.type)
    return array


def _levels(column: pa.ChunkedArray) -> tuple[I64, NDArray[np.bool_] | None]:
    """I64[N, width] of a fixed-size list column, 0 where null, and which items are there (None: all)."""
    flat = _whole(column).flatten()
    shape = (len(column), column.type.list_size)
    if not flat.null_count:
        return flat.to_numpy().reshape(shape), None
    present = flat.is_valid().to_numpy(zero_copy_only=False).reshape(shape)
    return flat.fill_null(0).to_numpy().reshape(shape), present


def book(table: pa.Table, *, locked: bool = False) -> Book:
    """The rows that may be shown; with `locked` (an opening) those with bid = ask too."""
    ts_ns = _whole(table.column("ts_ns")).to_numpy()
    (bid, bid_there), (ask, ask_there) = (_levels(table.column(f"{side}_px")) for side in SIDES)
    bid_sz, ask_sz = (_levels(table.column(f"{side}_sz"))[0] for side in SIDES)
    shown = bid[:, 0] <= ask[:, 0] if locked else bid[:, 0] < ask[:, 0]
    for there in (bid_there, ask_there):
        if there is not None:
            shown &= there[:, 0]
    if shown.all():
        return Book(ts_ns, (bid, ask), (bid_sz, ask_sz), (bid_there, ask_there))
    kept = [None if there is None else there[shown] for there in (bid_there, ask_there)]
    return Book(ts_ns[shown], (bid[shown], ask[shown]), (bid_sz[shown], ask_sz[shown]), (kept[0], kept[1]))


def prints(table: pa.Table) -> Prints:
    """The prints that may be shown."""
    ts_ns, sz, side, kind = (_whole(table.column(name)).to_numpy() for name in ("ts_ns", "sz", "side", "kind"))
    shown = (kind == 0) & (side != 0)
    return Prints(ts_ns[shown], (sz * side.astype(np.int64))[shown])


def seconds(ns: I64) -> F32:
    """F32 seconds of whole ns, rounded towards zero (DV-25)."""
    exact = ns / 1e9  # closer to the truth than any float32 boundary lies, up to 2^20 s
    nearest = exact.astype(np.float32)
    return np.where(np.abs(nearest) > np.abs(exact), np.nextafter(nearest, np.float32(0)), nearest)


def until(ts_ns: I64, knots_ns: I64) -> I64:
    """I64[G+1]: how many of the ascending times lie before each knot (AN-08)."""
    return np.asarray(np.searchsorted(ts_ns, knots_ns, side="left"), dtype=np.int64)


def _ranks(values: F32) -> NDArray[np.int64]:
    """Whole numbers in the order of the floats, neighbours one apart; both zeros are 0."""
    bits = values.view(np.int32).astype(np.int64)
    return np.where(bits >= 0, bits, -(bits & 0x7FFFFFFF))


def _values(ranks: NDArray[np.int64]) -> F32:
    return np.where(ranks >= 0, ranks, -ranks | 0x80000000).astype(np.uint32).view(np.float32)


def outwards(lo: F32, hi: F32) -> None:
    """Make levels that float32 made equal differ, in place: each is moved outwards by one ulp beyond the one inside it.

    `lo`, `hi` F32[N, 20], level 1 first, falling and rising but for ties, NaN at the tail.
    """
    ties = (lo[:, 0] >= hi[:, 0]) | (lo[:, 1:] >= lo[:, :-1]).any(axis=1) | (hi[:, 1:] <= hi[:, :-1]).any(axis=1)
    if not ties.any():
        return
    lows, highs = np.ascontiguousarray(lo[ties]), np.ascontiguousarray(hi[ties])
    fall, rise = -_ranks(lows), _ranks(highs)
    locked = -fall[:, 0] >= rise[:, 0]
    fall[locked, 0] += 1
    rise[locked, 0] += 1
    step = np.arange(lo.shape[1])
    for target, values, ranks, sign in ((lo, lows, fall, -1), (hi, highs, rise, 1)):
        apart = np.maximum.accumulate(ranks - step, axis=1) + step
        target[ties] = np.where(np.isnan(values), np.float32(np.nan), _values(sign * apart))
