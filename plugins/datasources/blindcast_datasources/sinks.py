"""Where one pass over a recording puts what it reads: rows and prints of a fine grain, on disk, with the lattice they lie on."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Final

import numpy as np
import pyarrow as pa
from attrs import fields as fields_of

from blindcast_datasources.columns import BOOK, Prints, Rows, book_batch, rows_of
from blindcast_datasources.lattice import Grain, Inference
from blindcast_datasources.order import in_order
from blindcast_datasources.prints import is_zero
from blindcast_datasources.report import Report
from blindcast_datasources.spool import Spool
from blindcast_datasources.states import Rower, RowPolicy

__all__ = ["PrintSink", "RowSink"]

BLOCK_PRINTS: Final = 8192
_PRINT_FIELDS: Final = tuple(attribute.name for attribute in fields_of(Prints))
_FINE_PRINTS: Final = pa.schema([pa.field(name, pa.int64(), nullable=False) for name in _PRINT_FIELDS])
_FINE_STATES: Final = pa.schema([pa.field("flags", pa.int64(), nullable=False) if f.name == "flags" else f for f in BOOK])


class RowSink:
    """Takes states. `sorts`: whole books are put in time order first, deltas keep theirs (DI-05)."""

    def __init__(self, policy: RowPolicy, report: Report, price: Grain, size: Grain, *, sorts: bool) -> None:
        self._rower = Rower(policy, report)
        self._price, self._size = price, size
        self._prices, self._sizes = Inference(price.decimals), Inference(size.decimals)
        self._rows = Spool(BOOK)
        self._unsorted = Spool(_FINE_STATES) if sorts else None
        self._least: list[int] = []
        self.rows = 0

    def put(self, states: Rows) -> None:
        """The next states."""
        if self._unsorted is None:
            self._made(self._rower.push(states))
            return
        batch = book_batch(states)  # flags fit: a whole-book feed knows no breaks
        self._unsorted.put(
            pa.RecordBatch.from_arrays([c.cast(f.type) for c, f in zip(batch.columns, _FINE_STATES, strict=True)], schema=_FINE_STATES)
        )
        self._least.append(int(states.ts.min()))

    def _made(self, rows: Rows | None) -> None:
        if rows is None or not len(rows):
            return
        self._prices.see(rows.levels[:, 0::2])
        self._sizes.see(rows.levels[:, 1::2])
        self.rows += len(rows)
        self._rows.put(book_batch(rows))

    def finish(self) -> None:
        """Nothing follows."""
        if self._unsorted is not None:
            for states in in_order((rows_of(batch) for batch in self._unsorted.batches()), self._least, Rows.joined):
                self._made(self._rower.push(states))
            self._unsorted.close()
        self._made(self._rower.finish())

    @property
    def seen(self) -> tuple[Inference, Inference]:
        """What is known of prices and of sizes."""
        return self._prices, self._sizes

    def batches(self, tick: Decimal, lot: Decimal) -> Iterator[pa.RecordBatch]:
        """The rows in ticks and lots. Raises DataError `off_grid`."""
        for batch in self._rows.batches():
            rows = rows_of(batch)
            place = f"book from {rows.ts[0]} ns"
            levels = np.empty_like(rows.levels)
            levels[:, 0::2] = self._price.coarse(rows.levels[:, 0::2], tick, "tick", place)
            levels[:, 1::2] = self._size.coarse(rows.levels[:, 1::2], lot, "lot", place)
            yield book_batch(Rows(rows.ts, rows.recv, rows.seq, rows.flags, levels))

    def close(self) -> None:
        """Let the disk space go."""
        self._rows.close()
        if self._unsorted is not None:
            self._unsorted.close()


class PrintSink:
    """Takes prints one by one."""

    def __init__(self, report: Report, price: Grain, size: Grain) -> None:
        self._report, self._price, self._size = report, price, size
        self._prices, self._sizes = Inference(price.decimals), Inference(size.decimals)
        self._held: list[tuple[int, ...]] = []
        self._spool = Spool(_FINE_PRINTS)
        self._least: list[int] = []
        self.prints = 0

    def put(self, print_: tuple[int, ...]) -> None:
        """One print: the integers of `Prints` in order."""
        self._held.append(print_)
        if len(self._held) >= BLOCK_PRINTS:
            self._flush()

    def _flush(self) -> None:
        if not self._held:
            return
        columns = np.array(self._held, dtype=np.int64).T
        self._held = []
        prints = Prints(*columns)
        real = ~is_zero(prints)
        self._prices.see(prints.px[real])
        self._sizes.see(prints.sz[real])
        self.prints += int(real.sum())
        self._least.append(int(prints.ts.min()))
        self._spool.put(
            pa.RecordBatch.from_arrays(
                [pa.array(np.ascontiguousarray(getattr(prints, name))) for name in _PRINT_FIELDS], schema=_FINE_PRINTS
            )
        )

    def finish(self) -> None:
        """Nothing follows."""
        self._flush()

    @property
    def seen(self) -> tuple[Inference, Inference]:
        """What is known of prices and of sizes."""
        return self._prices, self._sizes

    def blocks(self, tick: Decimal, lot: Decimal) -> Iterator[Prints]:
        """The prints in time order, in ticks and lots. Raises DataError `off_grid`."""
        read = (Prints(*(column.to_numpy() for column in batch.columns)) for batch in self._spool.batches())
        for block in in_order(read, self._least, Prints.joined):
            place = f"prints from {block.ts[0]} ns"
            px, sz = self._price.coarse(block.px, tick, "tick", place), self._size.coarse(block.sz, lot, "lot", place)
            yield Prints(block.ts, block.recv, px, sz, block.side, block.trade_id, block.kind, block.n, block.first, block.last)

    def close(self) -> None:
        """Let the disk space go."""
        self._spool.close()
