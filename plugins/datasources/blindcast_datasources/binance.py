"""The `binance` importer: raw recordings and T_DEPTH csv, snapshot spliced with diffs (data.md sections 3 and 4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from attrs import evolve, field, frozen
from attrs.validators import and_, ge, in_, instance_of

from blindcast.contracts import ImportReport
from blindcast.errors import DataError, ImportDamaged
from blindcast_datasources import wire
from blindcast_datasources.columns import DEPTH, trades_batch
from blindcast_datasources.lattice import FinerNeeded, plain, step_of
from blindcast_datasources.options import is_depth, is_rows, is_step, is_zone
from blindcast_datasources.prints import Printer, without_zeros
from blindcast_datasources.raw import RawFile, found, sniffed
from blindcast_datasources.recording import Recording, RecordingPolicy
from blindcast_datasources.replay import ReplayPolicy
from blindcast_datasources.times import Clock

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Binance"]

_READS = "`<local time> <json>` lines of the depth, bookTicker, trade and aggTrade streams, or T_DEPTH csv"


@frozen(kw_only=True)
class Binance:
    """Reads Binance recordings. `tick` and `lot` None: inferred; `clock` "": judged by DI-05; `symbol` "": the only one there is.

    `snapshot_levels` is what the venue cuts its snapshots at (B-07). ValueError for a bad option.
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
    snapshot_levels: int = field(default=1000, validator=and_(instance_of(int), ge(0)))
    book: Literal["depth", "ticker", "none"] = field(default="depth", validator=in_(("depth", "ticker", "none")))
    licence: str = ""
    allow_missing: bool = False

    def sniff(self, path: Path) -> float:
        """How surely a file is a recording of Binance's streams; never raises."""
        heads = [file.head() for file in sniffed(path)]
        return 0.95 if any(wire.is_raw(head) or wire.is_depth_csv(head) for head in heads) else 0.0

    def read(self, paths: Sequence[Path], report: ImportReport) -> Iterator[pa.RecordBatch]:
        """Book batches, then print batches. The recording is read to its end before the first is handed out.

        Raises ImportDamaged; DataError `no_snapshot`, `symbols_mixed`, `clock_mixed`, `time_unit`, `off_grid`, `format_unknown`,
        `format_ambiguous`, `path_missing`.
        """
        files = self._ordered(found(paths)[0], report)
        recording = self._recorded(files, report)
        try:
            prints = recording.prints["trade" if recording.prints["trade"].prints else "aggTrade"]
            price, size = recording.rows.seen
            tick = step_of(self.tick, "tick") or price.with_(prints.seen[0]).step(is_price=True)
            lot = step_of(self.lot, "lot") or size.with_(prints.seen[1]).step(is_price=False)
            self._state(recording, plain(tick), plain(lot))
            recording.report.pour(report)
            yield from recording.rows.batches(tick, lot)
            printer = Printer(report)
            yield from (trades_batch(without_zeros(printer.push(block), report)) for block in prints.blocks(tick, lot))
        finally:
            recording.close()

    def _ordered(self, files: Sequence[RawFile], report: ImportReport) -> list[RawFile]:
        """The files by the first time in them (DI-09); empty ones are noted."""
        clock = Clock(self.unit, self.tz)
        dated: list[tuple[int, str, RawFile]] = []
        for file in files:
            try:
                head = next(file.chunks(), b"")
                if not head:
                    report.missing(file.name, "empty")
                    continue
                if not (wire.is_depth_csv(head) or head[:1].isdigit()):
                    raise _unknown(file.name)
                dated.append((wire.first_time(head, clock, file.name), file.name, file))
            except ImportDamaged as damage:
                if not self.allow_missing:
                    raise
                report.missing(damage.file, damage.place)
        return [file for _, _, file in sorted(dated)]

    def _recorded(self, files: list[RawFile], report: ImportReport) -> Recording:
        """A recording read to its end, again where what was found asks for another way of reading it."""
        replay = ReplayPolicy(self.levels, self.uncross, self.beyond, self.gap, self.snapshot_levels)
        policy = RecordingPolicy(replay, self.rows, self.book, self.clock or "exchange", self.symbol, self.unit, self.tz)
        tried: set[RecordingPolicy] = set()
        while True:
            tried.add(policy)
            recording = Recording(policy)
            try:
                recording.read(files)
                again = self._second_look(recording)
                if again is None:
                    return recording
                policy = again
            except FinerNeeded as need:
                is_price = need.kind == "tick"
                policy = evolve(policy, price_decimals=need.decimals) if is_price else evolve(policy, size_decimals=need.decimals)
            except OverflowError:
                policy = _coarser(policy, tried)
            except ImportDamaged as damage:
                if not self.allow_missing:
                    raise
                report.missing(damage.file, damage.place)
                files = _without(files, damage.file)
            finally:
                if policy is not recording.policy or not recording.is_read:
                    recording.close()

    def _second_look(self, recording: Recording) -> RecordingPolicy | None:
        """Another policy to read with, None if this one did. Raises DataError for what no policy reads."""
        policy, splice = recording.policy, recording.splice
        if len(recording.symbols) > 1:
            raise _mixed(sorted(recording.symbols))
        if policy.book == "depth":
            if recording.partials and splice.diffs:
                raise _two_layouts()
            if recording.partials and not policy.sorts:
                return evolve(policy, sorts=True)
            if splice.diffs and not splice.snapshots:
                raise _no_snapshot(splice.diffs)
            if recording.tickers and not (splice.diffs or splice.snapshots or recording.partials):
                return evolve(policy, book="ticker")
        if policy.clock == "receive" or recording.exchange_clock_holds(is_stated=bool(self.clock)):
            return None
        return evolve(policy, clock="receive")

    def _state(self, recording: Recording, tick: str, lot: str) -> None:
        """State what is known of the instrument."""
        market = "coinm" if recording.pairs else "usdm" if recording.futures else "spot"
        recording.report.instrument(
            venue=f"binance-{market}",
            symbol=next(iter(recording.symbols), None),
            inverse="true" if market == "coinm" else "false",
            tick_size=tick,
            lot_size=lot,
            inferred_tick=str(self.tick is None).lower(),
            inferred_lot=str(self.lot is None).lower(),
            depth=str(recording.policy.depth),
            clock=recording.policy.clock,
            licence=self.licence or None,
        )
        if recording.check.states:
            recording.report.count("ticker_states", recording.check.states)
            recording.report.count("ticker_equal", recording.check.equal)


def _without(files: list[RawFile], name: str) -> list[RawFile]:
    """The files without the damaged one; of several of that name, those that cannot be read, or all."""
    named = [file for file in files if file.name == name]
    bad = [file for file in named if not _is_sound(file)] if len(named) > 1 else named
    return [file for file in files if file not in (bad or named)]


def _is_sound(file: RawFile) -> bool:
    try:
        for _ in file.chunks():
            pass
    except ImportDamaged:
        return False
    return True


def _coarser(policy: RecordingPolicy, tried: set[RecordingPolicy]) -> RecordingPolicy:
    """Integers did not fit 64 bits: read with fewer decimals; those that are needed will ask for more."""
    for other in (evolve(policy, size_decimals=0), evolve(policy, price_decimals=0), evolve(policy, price_decimals=0, size_decimals=0)):
        if other not in tried:
            return other
    raise DataError(
        "off_grid",
        "a price or size is too large beside the decimals of the others: no lattice of 64 bits holds them all",
        expected="values below 2^63 lots and ticks",
        do="state coarser ones: --set tick=.. --set lot=..",
    )


def _unknown(name: str) -> DataError:
    return DataError(
        "format_unknown", f"{name} is no recording of Binance's streams", expected=_READS, do="leave the file out, or name its importer"
    )


def _mixed(symbols: list[str]) -> DataError:
    return DataError(
        "symbols_mixed",
        f"the input holds {len(symbols)} symbols: {', '.join(symbols)}",
        expected="one instrument in a pool",
        do=f"name it: --set symbol={symbols[0]}",
        symbols=symbols,
    )


def _two_layouts() -> DataError:
    return DataError(
        "format_ambiguous",
        "the input holds partial books beside diffs of the same symbol",
        expected="one book layout in an import",
        do="import one of them, or --set book=ticker",
    )


def _no_snapshot(diffs: int) -> DataError:
    return DataError(
        "no_snapshot",
        f"{diffs} diffs and no snapshot: there is no book to apply them to",
        expected="a REST snapshot line among the diffs",
        do="add the file that holds it, or --set book=ticker for a pool of depth 1",
        diffs=diffs,
    )
