"""The `lake` importer: wide parquet of books and prints, read once to judge clock, lattice and order, and again to hand it out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from attrs import field, frozen
from attrs.validators import ge, in_

from blindcast.contracts import ImportReport
from blindcast.errors import DataError, ImportDamaged
from blindcast_datasources import columns
from blindcast_datasources.columns import DEPTH, Prints, Rows, book_batch, trades_batch
from blindcast_datasources.lattice import float_steps, plain, step_of
from blindcast_datasources.options import is_depth, is_rows, is_step, is_zone
from blindcast_datasources.order import in_order
from blindcast_datasources.prints import Printer, without_zeros
from blindcast_datasources.raw import RawFile, found, sniffed
from blindcast_datasources.report import note_span
from blindcast_datasources.states import Rower, RowPolicy
from blindcast_datasources.survey import FileSurvey, judged_clock, stamps, step, survey, usable_blocks
from blindcast_datasources.times import Clock
from blindcast_datasources.wide import WideFile

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Lake"]


@frozen
class _Terms:
    """What the survey settled."""

    tick: Decimal
    lot: Decimal
    clock: Literal["exchange", "receive"]


@frozen(kw_only=True)
class Lake:
    """Reads Crypto Lake's parquet. `tick` and `lot` None: inferred; `clock` "": judged by DI-05; `symbol` "": the only one there is.

    `uncross`, `beyond`, `gap` and `snapshot_levels` are for feeds of deltas: whole books have nothing to uncross, to cut or to
    splice. ValueError for a bad option.
    """

    tick: str | int | float | None = field(default=None, validator=is_step)
    lot: str | int | float | None = field(default=None, validator=is_step)
    levels: int = field(default=DEPTH, validator=is_depth)
    rows: str = field(default="change", validator=is_rows)
    symbol: str = ""
    clock: Literal["", "exchange", "receive"] = field(default="", validator=in_(("", "exchange", "receive")))
    unit: Literal["", "s", "ms", "us", "ns"] = field(default="", validator=in_(("", "s", "ms", "us", "ns")))
    tz: str = field(default="UTC", validator=is_zone)
    uncross: Literal["mark", "drop_older"] = field(default="mark", validator=in_(("mark", "drop_older")))
    beyond: Literal["keep", "null"] = field(default="keep", validator=in_(("keep", "null")))
    gap: Literal["stop", "continue"] = field(default="stop", validator=in_(("stop", "continue")))
    snapshot_levels: int = field(default=0, validator=ge(0))
    book: Literal["depth", "ticker", "none"] = field(default="depth", validator=in_(("depth", "ticker", "none")))
    licence: str = ""
    allow_missing: bool = False

    def sniff(self, path: Path) -> float:
        """How surely a file is wide parquet of books or prints; one that is cut still looks like it. Never raises."""
        return max((_score(file) for file in sniffed(path)), default=0.0)

    def read(self, paths: Sequence[Path], report: ImportReport) -> Iterator[pa.RecordBatch]:
        """Book batches, then print batches; every file was read to its end before the first.

        Raises ImportDamaged; DataError `symbols_mixed`, `clock_mixed`, `time_unit`, `off_grid`, `format_unknown`, `path_missing`.
        """
        surveys = self._surveyed(found(paths)[0], report)
        books = [one for one in surveys if one.file.kind == "book" and self.book != "none"]
        trades = [one for one in surveys if one.file.kind == "trades"]
        used = [*books, *trades]
        clock = judged_clock(used, self.clock) if used else "exchange"
        tick = step_of(self.tick, "tick") or step((one.prices for one in used), is_price=True)
        lot = step_of(self.lot, "lot") or step((one.sizes for one in used), is_price=False)
        terms = _Terms(tick, lot, clock)
        self._state(used, terms, report)
        rower = Rower(RowPolicy(self.rows, self._depth), report)
        for states in in_order(self._states(books, terms, report), [ns for one in books for ns in one.least(clock)], Rows.joined):
            rows = rower.push(states)
            if len(rows):
                yield book_batch(rows)
        rest = rower.finish()
        if rest is not None:
            yield book_batch(rest)
        printer = Printer(report)
        for block in in_order(self._prints(trades, terms, report), [ns for one in trades for ns in one.least(clock)], Prints.joined):
            prints = without_zeros(printer.push(block), report)
            if len(prints):
                yield trades_batch(prints)

    @property
    def _depth(self) -> int:
        return 1 if self.book == "ticker" else self.levels

    def _surveyed(self, files: Iterable[RawFile], report: ImportReport) -> list[FileSurvey]:
        """Every file, read once, by the first time in it (DI-09)."""
        clock = Clock(self.unit, self.tz)
        infers = self.tick is None or self.lot is None
        surveys: list[FileSurvey] = []
        symbols: set[str] = set()
        for file in files:
            try:
                wide = WideFile(file)
                names = wide.texts("symbol")
                if self.symbol and names and self.symbol not in names:
                    continue
                one = survey(wide, clock, self._depth, self.symbol, infers=infers)
            except ImportDamaged as damage:
                if not self.allow_missing:
                    raise
                report.missing(damage.file, damage.place)
                continue
            symbols |= names
            if one.rows:
                surveys.append(one)
            else:
                report.missing(file.name, "empty")
        if len(symbols) > 1 and not self.symbol:
            raise _mixed(sorted(symbols))
        return sorted(surveys, key=lambda one: (one.first_ns, one.file.kind, one.file.file.name))

    def _state(self, used: Sequence[FileSurvey], terms: _Terms, report: ImportReport) -> None:
        """State what is known of the instrument and the span of each file."""
        symbol = self.symbol or next((name for one in used for name in sorted(one.file.texts("symbol"))), None)
        venue = next((name for one in used for name in sorted(one.file.texts("exchange"))), None)
        parts = (symbol or "").split("-")
        base, quote = parts if len(parts) == 2 else (None, None)
        report.instrument(
            venue=venue,
            symbol=symbol,
            base=base,
            quote=quote,
            tick_size=plain(terms.tick),
            lot_size=plain(terms.lot),
            inferred_tick=str(self.tick is None).lower(),
            inferred_lot=str(self.lot is None).lower(),
            depth=str(self._depth),
            clock=terms.clock,
            licence=self.licence or None,
        )
        for one in used:
            note_span(report, one.file.file.name, min(one.least(terms.clock)), one.most[terms.clock])

    def _states(self, books: Iterable[FileSurvey], terms: _Terms, report: ImportReport) -> Iterator[Rows]:
        """The books of all files in ticks and lots, in the files' order."""
        for one in books:
            for block, used, bad in usable_blocks(one.file, Clock(self.unit, self.tz), self._depth, self.symbol):
                ts, stand_in = stamps(block, used, terms.clock)
                report.count("messages", len(ts) + bad)
                report.count("bad_rows", bad)
                report.count("clock", int(stand_in.sum()))
                place = f"{one.file.file.name} after row {block.start}"
                values = block.values if used.all() else block.values[used]
                levels = np.empty(values.shape, dtype=np.int64)
                levels[:, 0::2] = float_steps(values[:, 0::2], terms.tick, "tick", place)
                levels[:, 1::2] = float_steps(values[:, 1::2], terms.lot, "lot", place)
                yield Rows(ts, block.local[used], block.seq[used], np.where(stand_in, columns.CLAMPED, 0), levels)

    def _prints(self, trades: Iterable[FileSurvey], terms: _Terms, report: ImportReport) -> Iterator[Prints]:
        """The prints of all files in ticks and lots, in the files' order."""
        for one in trades:
            for block, used, _ in usable_blocks(one.file, Clock(self.unit, self.tz), self._depth, self.symbol):
                ts, stand_in = stamps(block, used, terms.clock)
                report.count("clock", int(stand_in.sum()))
                place = f"{one.file.file.name} after row {block.start}"
                px = float_steps(block.values[used, 0], terms.tick, "tick", place)
                sz = float_steps(block.values[used, 1], terms.lot, "lot", place)
                ids, zeros = block.seq[used], np.zeros(len(ts), dtype=np.int64)
                yield Prints(ts, block.local[used], px, sz, block.side[used], ids, zeros, zeros + 1, ids, ids)


def _score(file: RawFile) -> float:
    try:
        if file.head(4) != b"PAR1":
            return 0.0
        return 0.95 if WideFile(file).kind == "book" else 0.8
    except ImportDamaged:
        return 0.6
    except (DataError, OSError):
        return 0.0


def _mixed(symbols: list[str]) -> DataError:
    return DataError(
        "symbols_mixed",
        f"the input holds {len(symbols)} symbols: {', '.join(symbols)}",
        expected="one instrument in a pool",
        do=f"name it: --set symbol={symbols[0]}",
        symbols=symbols,
    )
