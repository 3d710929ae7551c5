"""A table of a pool on its way to disk: row groups that end at each 900 s UTC or at 65,536 rows (DP-04)."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from blindcast_datasources.columns import BOOK, TRADES

__all__ = ["TABLES", "PartWriter"]

TABLES: Final = {"book_events": BOOK, "trades": TRADES}
GROUP_NS: Final = 900 * 10**9
GROUP_ROWS: Final = 65_536


class PartWriter:
    """Writes one parquet file; batches come in time order."""

    def __init__(self, folder: Path, table: str) -> None:
        self._table, self._name = table, f"{table}.parquet"
        self._file = (folder / self._name).open("wb")
        try:
            self._writer = pq.ParquetWriter(
                self._file,
                TABLES[table],
                compression="zstd",
                use_dictionary=True,
                write_statistics=True,
                write_page_index=True,
                write_page_checksum=True,
                use_compliant_nested_type=False,  # keeps the exact Arrow type: lists of `item`,
            )
        except BaseException:
            self._file.close()
            raise
        self._held: list[pa.RecordBatch] = []
        self._held_rows = 0
        self._groups: list[list[int]] = []
        self._slot = 0
        self.rows = 0

    def put(self, batch: pa.RecordBatch) -> None:
        """Append a batch. Raises OSError on a full disk."""
        slots = np.asarray(batch.column(0).to_numpy()) // GROUP_NS
        edges = [0, *(np.flatnonzero(np.diff(slots)) + 1).tolist(), batch.num_rows]
        for start, end in pairwise(edges):
            if end == start:
                continue
            if self._held and slots[start] != self._slot:
                self._write(self._held_rows)
            self._slot = int(slots[start])
            self._held.append(batch.slice(start, end - start))
            self._held_rows += end - start
            while self._held_rows >= GROUP_ROWS:
                self._write(GROUP_ROWS)

    def _write(self, rows: int) -> None:
        """One row group of the first `rows` held."""
        table = pa.Table.from_batches(self._held)
        group, rest = table.slice(0, rows), table.slice(rows)
        self._writer.write_table(group, row_group_size=rows)
        times: Any = group.column(0)
        self._groups.append([times[0].as_py(), times[-1].as_py(), rows])
        self._held = rest.to_batches() if rest.num_rows else []
        self._held_rows = rest.num_rows
        self.rows += rows

    def close(self) -> dict[str, Any]:
        """Finish the file on disk; its entry in `meta.parts`."""
        if self._held_rows:
            self._write(self._held_rows)
        self._writer.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        first, last = (self._groups[0][0], self._groups[-1][1]) if self._groups else (None, None)
        return {"table": self._table, "file": self._name, "t0_ns": first, "t1_ns": last, "groups": self._groups}

    def abandon(self) -> None:
        """Let the file go, whatever state it is in."""
        try:
            self._writer.close()
        except (OSError, pa.ArrowException):
            pass  # the disk is full or the file is broken: it is thrown away
        finally:
            self._file.close()
