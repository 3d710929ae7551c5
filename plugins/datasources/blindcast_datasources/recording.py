"""One pass over a Binance recording: messages in, rows and prints of a fine grain out (B-01 to B-07, DI-05)."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Final, Literal

import msgspec
from attrs import evolve, frozen

from blindcast.errors import DataError, ImportDamaged
from blindcast_datasources import columns, wire
from blindcast_datasources.columns import NULL
from blindcast_datasources.lattice import FINE, Grain
from blindcast_datasources.prints import KINDS, OTHER_KIND
from blindcast_datasources.raw import RawFile
from blindcast_datasources.replay import BookReplayer, Levels, ReplayPolicy
from blindcast_datasources.report import Report
from blindcast_datasources.sinks import PrintSink, RowSink
from blindcast_datasources.splice import Diff, Splice
from blindcast_datasources.states import RowPolicy
from blindcast_datasources.ticker import TickerCheck
from blindcast_datasources.times import Clock
from blindcast_datasources.wire import DepthMessage, Line

__all__ = ["Recording", "RecordingPolicy"]

MOST_FILLS: Final = 2**16 - 1  # what the column `n` holds
_PARTIAL: Final = ("@depth5", "@depth10", "@depth20")


@frozen
class RecordingPolicy:
    """How a recording is read; `price_decimals` and `size_decimals` are the grain it is read with."""

    replay: ReplayPolicy
    rows: str = "change"
    book: Literal["depth", "ticker", "none"] = "depth"
    clock: Literal["exchange", "receive"] = "exchange"
    symbol: str = ""
    unit: str = ""
    tz: str = "UTC"
    sorts: bool = False  # whole books, that time may put in order
    price_decimals: int = FINE
    size_decimals: int = FINE

    @property
    def depth(self) -> int:
        """Levels a side."""
        return 1 if self.book == "ticker" else self.replay.depth


class Recording:
    """Reads files once, merged by local time. Raises ImportDamaged, DataError, FinerNeeded."""

    def __init__(self, policy: RecordingPolicy) -> None:
        self.policy, self.report = policy, Report()
        self.price, self.size = Grain("tick", policy.price_decimals), Grain("lot", policy.size_decimals)
        self._clock = Clock(policy.unit, policy.tz)
        self.rows = RowSink(
            RowPolicy(policy.rows, policy.depth), self.report, self.price, self.size, sorts=policy.sorts or policy.book == "ticker"
        )
        self.prints = {name: PrintSink(self.report, self.price, self.size) for name in ("trade", "aggTrade")}
        self.check = TickerCheck()
        watch = self.check.state if policy.book == "depth" else None
        self._book = BookReplayer(evolve(policy.replay, depth=policy.depth), self.report, self._states, watch)
        self.splice = Splice(self._book, self.report, policy.replay.gap)
        self.symbols: set[str] = set()
        self.pairs: set[str] = set()
        self.tickers = self.partials = 0
        self.futures = False
        self.book_times, self.print_times = [0, 0], [0, 0]  # how many, how many of them missing
        self.is_read = False
        self._file: RawFile | None = None
        self._number = 0
        self._span: list[int] = []

    def read(self, files: Sequence[RawFile]) -> None:
        """Take everything in."""
        spans: dict[RawFile, list[int]] = {file: [2**63 - 1, 0] for file in files}
        for _, file, message in heapq.merge(*(self._messages(file) for file in files), key=itemgetter(0)):
            self._file, self._number, self._span = file, message.number, spans[file]
            try:
                self._line(message) if isinstance(message, Line) else self._depth(message)
            except (ValueError, msgspec.DecodeError) as error:
                raise ImportDamaged(file.name, f"line {message.number}: {error}") from error
        self._book.finish()
        self.rows.finish()
        self.check.finish()
        for sink in self.prints.values():
            sink.finish()
        for file, (first, last) in spans.items():
            if last:
                self.report.span(file.name, first, last)
        self.is_read = True

    def exchange_clock_holds(self, *, is_stated: bool) -> bool:
        """Whether exchange times serve; False: the book has none at all. Raises DataError `clock_mixed` (DI-05)."""
        deciding = self.book_times if self.book_times[0] else self.print_times
        if deciding[0] and deciding[0] == deciding[1] and not is_stated:
            return False
        for kind, (times, missing) in (("book messages", self.book_times), ("prints", self.print_times)):
            if missing and 100 * missing >= times:
                raise _clock_mixed(f"{missing} of {times} {kind} have no exchange time", "the input")
        self.report.count("clock", self.book_times[1] + self.print_times[1])
        return True

    def close(self) -> None:
        """Let the disk space go."""
        self.rows.close()
        for sink in self.prints.values():
            sink.close()

    def _messages(self, file: RawFile) -> Iterator[tuple[int, RawFile, Line | DepthMessage]]:
        if wire.is_depth_csv(file.head()):
            yield from ((message.ts, file, message) for message in wire.depth_messages(file, self._clock))
        else:
            yield from ((line.local_ns, file, line) for line in wire.lines(file))

    def _states(self, states: columns.Rows) -> None:
        self.report.count("messages", len(states))
        self.rows.put(states)

    def _place(self) -> str:
        return f"{self._file.name if self._file else 'input'}, line {self._number}"

    def _stamp(self, exchange: int, local_ns: int, times: list[int]) -> tuple[int, int]:
        """Time on the pool's clock and flags; a missing exchange time is the local one, flagged (DI-05)."""
        times[0] += 1
        flags = 0
        if self.policy.clock == "receive" or not exchange:
            if local_ns == NULL:
                raise _clock_mixed("the recording has no local times", self._place())
            ts = local_ns
            if self.policy.clock == "exchange":
                times[1] += 1
                flags = columns.CLAMPED
        else:
            ts = self._clock.ns(exchange, self._place)
        span = self._span
        if ts < span[0]:
            span[0] = ts
        if ts > span[1]:
            span[1] = ts
        return ts, flags

    def _levels(self, texts: Sequence[tuple[str, str]]) -> Levels:
        price, size = self.price, self.size
        return [(price(p), size(q)) for p, q in texts]

    def _is_ours(self, symbol: str) -> bool:
        if self.policy.symbol and symbol != self.policy.symbol:
            return not symbol  # a spot snapshot names none
        if symbol:
            self.symbols.add(symbol)
        return True

    def _line(self, line: Line) -> None:
        event = line.event
        symbol = event.s or event.symbol or line.stream.partition("@")[0].upper()
        kind = event.e
        if not self._is_ours(symbol) or (kind and kind not in wire.KNOWN):
            self.report.count("other")
        elif line.stream and any(part in line.stream for part in _PARTIAL):
            self._partial(event, line.local_ns)
        elif kind == "depthUpdate":
            self._diff(event, line.local_ns)
        elif kind in ("trade", "aggTrade"):
            self._print(event, line.local_ns)
        elif event.lastUpdateId >= 0:
            self._snapshot(event, line.local_ns)
        elif event.u and event.B and event.A:
            self._ticker(event, line.local_ns)
        else:
            self.report.count("other")
        if event.ps or event.pair:
            self.pairs.add(event.ps or event.pair)

    def _diff(self, event: wire.Event, local_ns: int) -> None:
        self.futures = self.futures or event.pu >= 0
        if self.policy.book != "depth":
            self.report.count("other")
            return
        ts, flags = self._stamp(event.T or event.E, local_ns, self.book_times)
        bids, asks = self._levels(wire.pairs(event.b)), self._levels(wire.pairs(event.a))
        self.splice.diff(Diff(event.U, event.u, event.pu if event.pu >= 0 else None, ts, local_ns, flags, bids, asks))

    def _snapshot(self, event: wire.Event, local_ns: int) -> None:
        if self.policy.book != "depth":
            self.report.count("other")
            return
        bids, asks = self._levels(wire.pairs(event.bids)), self._levels(wire.pairs(event.asks))
        exchange = event.T or event.E
        ts = self._stamp(exchange, local_ns, self.book_times)[0] if exchange else None
        self.splice.snapshot(event.lastUpdateId, ts, local_ns, bids, asks)

    def _partial(self, event: wire.Event, local_ns: int) -> None:
        """The best few levels, whole each time."""
        self.partials += 1
        if self.policy.book != "depth":
            self.report.count("other")
            return
        ts, flags = self._stamp(event.T or event.E, local_ns, self.book_times)
        bids, asks = (wire.pairs(event.b), wire.pairs(event.a)) if event.b else (wire.pairs(event.bids), wire.pairs(event.asks))
        update = event.lastUpdateId if event.lastUpdateId >= 0 else event.u
        self._book.whole(ts, local_ns, update, self._levels(bids), self._levels(asks), is_snapshot=False, flags=flags)

    def _ticker(self, event: wire.Event, local_ns: int) -> None:
        self.tickers += 1
        if self.policy.book == "none":
            self.report.count("other")
            return
        bid, bid_size, ask, ask_size = (_text(raw) for raw in (event.b, event.B, event.a, event.A))
        price, size = self.price, self.size
        if self.policy.book == "depth":
            self.check.ticker(event.u, (price(bid), size(bid_size), price(ask), size(ask_size)))
            return
        ts, flags = self._stamp(event.T or event.E, local_ns, self.book_times)
        bids, asks = [(price(bid), size(bid_size))], [(price(ask), size(ask_size))]
        self._book.whole(ts, local_ns, event.u, bids, asks, is_snapshot=False, flags=flags)

    def _print(self, event: wire.Event, local_ns: int) -> None:
        ts, flags = self._stamp(event.T or event.E, local_ns, self.print_times)
        del flags  # prints have none
        side = 0 if event.m is None else -1 if event.m else 1  # the maker bought: the taker sold
        number = event.t if event.e == "trade" else int(bytes(event.a))
        first, last = (event.f, event.l) if event.e == "aggTrade" and event.f >= 0 else (number, number)
        kind = KINDS.get(event.X, OTHER_KIND) if event.X else 0
        fills = min(last - first + 1, MOST_FILLS)
        self.prints[event.e].put((ts, local_ns, self.price(event.p), self.size(event.q), side, number, kind, fills, first, last))

    def _depth(self, message: DepthMessage) -> None:
        if not self._is_ours(message.symbol):
            self.report.count("other")
            return
        self.futures = self.futures or message.previous is not None
        ts, _ = self._stamp(message.ts, NULL, self.book_times)
        bids, asks = self._levels(message.bids), self._levels(message.asks)
        if message.is_snapshot:
            self.splice.snapshot(message.last, ts, NULL, bids, asks)
        else:
            self.splice.diff(Diff(message.first, message.last, message.previous, ts, NULL, 0, bids, asks))


def _text(raw: msgspec.Raw) -> str:
    """A decimal in quotes."""
    return msgspec.json.decode(raw, type=str)


def _clock_mixed(why: str, place: str) -> DataError:
    return DataError(
        "clock_mixed", f"{place}: {why}", expected="one clock for the whole pool", do="--set clock=receive uses the recorded local times"
    )
