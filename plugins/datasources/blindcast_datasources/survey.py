"""The survey of wide files: what must be known of all of them before a row is handed out (DI-04, DI-05, DI-09)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Literal

import numpy as np
from attrs import define, field
from numpy.typing import NDArray

from blindcast.errors import DataError
from blindcast.records import I64
from blindcast_datasources.columns import NULL
from blindcast_datasources.lattice import Floats, Inference
from blindcast_datasources.times import Clock
from blindcast_datasources.wide import WideBlock, WideFile, named, ordered_sides

__all__ = ["FileSurvey", "judged_clock", "stamps", "step", "survey", "usable_blocks"]


@define
class FileSurvey:
    """One file: the least time of each block on either clock, how many times are missing, the lattice of its numbers."""

    file: WideFile
    first_ns: int = 0  # of its first row, for the order of files
    rows: int = 0
    no_exchange: int = 0
    no_local: int = 0
    least_exchange: list[int] = field(factory=list)
    least_local: list[int] = field(factory=list)
    most: dict[str, int] = field(factory=lambda: {"exchange": 0, "receive": 0})
    prices: Floats = field(factory=Floats)
    sizes: Floats = field(factory=Floats)

    def least(self, clock: str) -> list[int]:
        """The least time of each block on a clock."""
        return self.least_local if clock == "receive" else self.least_exchange


def usable_blocks(file: WideFile, clock: Clock, levels: int, symbol: str) -> Iterator[tuple[WideBlock, NDArray[np.bool_], int]]:
    """Its blocks, which of their rows count, and how many are unusable."""
    for block in file.blocks(clock, levels):
        ours = np.ones(len(block.exchange), dtype=np.bool_)
        if symbol and block.symbols is not None:
            ours = named(block.symbols, symbol)
        if file.kind == "book":
            usable = ordered_sides(block.values)
            yield block, ours & usable, int((ours & ~usable).sum())
        else:
            yield block, ours, 0


def survey(file: WideFile, clock: Clock, levels: int, symbol: str, *, infers: bool) -> FileSurvey:
    """Read a file to its end. Raises ImportDamaged, DataError `time_unit`."""
    found = FileSurvey(file)
    for block, used, _ in usable_blocks(file, clock, levels, symbol):
        exchange, local = block.exchange[used], block.local[used]
        filled = np.where(exchange == NULL, local, exchange)
        if not found.rows and len(filled):
            found.first_ns = int(filled[0])
        found.rows += len(filled)
        found.no_exchange += int((exchange == NULL).sum())
        found.no_local += int((local == NULL).sum())
        for name, times, least in (("exchange", filled, found.least_exchange), ("receive", local, found.least_local)):
            least.append(int(times.min()) if len(times) else 2**63 - 1)
            found.most[name] = max(found.most[name], int(times.max()) if len(times) else 0)
        if infers:
            values = block.values[used]
            prices, sizes = (values[:, 0::2], values[:, 1::2]) if file.kind == "book" else _traded(values)
            found.prices.see(prices)
            found.sizes.see(sizes)
    return found


def _traded(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Prices and sizes of the prints that will be stored."""
    stored = values[(values > 0).all(axis=1)]
    return stored[:, 0], stored[:, 1]


def step(seen: Iterable[Floats], *, is_price: bool) -> Decimal:
    """The tick or lot of all files together."""
    inferences = [floats.inference for floats in seen]
    most = max((inference.decimals for inference in inferences), default=0)
    together = Inference(most)
    for inference in inferences:
        inference.finer(most)
        together = together.with_(inference)
    return together.step(is_price=is_price)


def judged_clock(files: Iterable[FileSurvey], stated: str) -> Literal["exchange", "receive"]:
    """The pool's clock (DI-05); of the books where there are any. Raises DataError `clock_mixed`."""
    found = list(files)
    books = [one for one in found if one.file.kind == "book"]
    rows, missing = (sum(values) for values in zip(*((one.rows, one.no_exchange) for one in books or found), strict=True))
    if stated == "receive" or (not stated and rows and missing == rows):
        if any(one.no_local for one in found):
            raise _mixed("local times are missing")
        return "receive"
    for one in found:
        if one.no_exchange and (100 * one.no_exchange >= one.rows or one.no_local):
            raise _mixed(f"{one.file.file.name}: {one.no_exchange} of {one.rows} rows have no exchange time")
    return "exchange"


def _mixed(why: str) -> DataError:
    return DataError("clock_mixed", why, expected="one clock for the whole pool", do="--set clock=receive uses the recorded local times")


def stamps(block: WideBlock, used: NDArray[np.bool_], clock: str) -> tuple[I64, NDArray[np.bool_]]:
    """Times on the pool's clock, and which of them stand in for a missing exchange time."""
    if clock == "receive":
        return block.local[used], np.zeros(int(used.sum()), dtype=np.bool_)
    exchange = block.exchange[used]
    missing = exchange == NULL
    return np.where(missing, block.local[used], exchange), missing
