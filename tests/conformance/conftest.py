"""Pools made of invented windows, upright and mirrored about their first price."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from attrs import frozen

from blindcast.contracts import ImportReport
from blindcast.records import Grid
from blindcast_datasources.columns import Prints, Rows, book_batch, prints_of, rows_of, trades_batch
from blindcast_datasources.imports import ImportOrder, run_import
from blindcast_datasources.report import Report
from blindcast_datasources.synthetic import Synthetic

GRID = Grid(900, 15)
LOST = 3  # the window whose rows a broken feed lost


@frozen
class Invented:
    """An importer of eight windows without a pause, of which one is a gap."""

    mirrored: bool = False

    def sniff(self, path: Path) -> float:
        return 0.0

    def read(self, paths: Sequence[Path], report: ImportReport) -> Iterator[pa.RecordBatch]:
        market = Synthetic(windows=8, every_s=900, seed=6)
        windows = [market.window(ref.ref, GRID) for ref in market.windows(GRID)]
        report.instrument(tick_size="0.1", lot_size="0.001", venue="acmex", symbol="ZQX-USD")
        report.gap(windows[LOST].start_ns, windows[LOST + 1].start_ns, "sequence: 7 after 5")
        kept = [window for k, window in enumerate(windows) if k != LOST]
        books, tapes = [rows_of(window.book) for window in kept], [prints_of(window.trades) for window in kept]
        middle2 = int(books[0].levels[0, 0, 0] + books[0].levels[0, 2, 0])
        yield from (book_batch(_mirrored(rows, middle2) if self.mirrored else rows) for rows in books)
        yield from (trades_batch(_turned(prints, middle2) if self.mirrored else prints) for prints in tapes)


def _mirrored(rows: Rows, middle2: int) -> Rows:
    levels = np.stack([middle2 - rows.levels[:, 2], rows.levels[:, 3], middle2 - rows.levels[:, 0], rows.levels[:, 1]], axis=1)
    return Rows(rows.ts, rows.recv, rows.seq, rows.flags, levels)


def _turned(prints: Prints, middle2: int) -> Prints:
    names = ("ts", "recv", "px", "sz", "side", "trade_id", "kind", "n", "first", "last")
    values = {name: getattr(prints, name) for name in names} | {"px": middle2 - prints.px, "side": -prints.side}
    return Prints(**values)


@pytest.fixture(scope="session")
def invented_pool(tmp_path_factory: pytest.TempPathFactory) -> Callable[[bool], Path]:
    """The pool, or its mirror image."""
    made: dict[bool, Path] = {}

    def pool(mirrored: bool) -> Path:
        if mirrored not in made:
            made[mirrored] = tmp_path_factory.mktemp("pools") / "invented"
            run_import(ImportOrder(Invented(mirrored), "invented", "1", {}, (), (), made[mirrored]), Report())
        return made[mirrored]

    return pool
