"""BookReplayer: messages of a recorded feed to states (B-01, B-03, B-05 to B-07); one implementation under all importers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Final, Literal, TypeAlias

import numpy as np
from attrs import frozen

from blindcast.contracts import ImportReport
from blindcast_datasources import columns
from blindcast_datasources.columns import DEPTH, Rows
from blindcast_datasources.ladder import Ladder
from blindcast_datasources.states import BREAK

__all__ = ["BookReplayer", "Levels", "ReplayPolicy"]

Levels: TypeAlias = Sequence[tuple[int, int]]  # (price, size), size 0 deletes
Watch: TypeAlias = Callable[[int, tuple[int, int, int, int] | None], None]
BLOCK_STATES: Final = 2048


@frozen
class ReplayPolicy:
    """How a feed is replayed; `snapshot_levels` a side at which a snapshot counts as cut, 0: never."""

    depth: int = DEPTH
    uncross: Literal["mark", "drop_older"] = "mark"
    beyond: Literal["keep", "null"] = "keep"
    gap: Literal["stop", "continue"] = "stop"
    snapshot_levels: int = 0


class BookReplayer:
    """Applies whole books and deltas, hands blocks of states to `sink`; `watch` sees `seq` and best prices of each.

    Prices and sizes are integers of any grain. A state exists only at the end of a message. Nothing counts before the first whole book.
    """

    def __init__(self, policy: ReplayPolicy, report: ImportReport, sink: Callable[[Rows], None], watch: Watch | None = None) -> None:
        self._policy, self._report, self._sink, self._watch = policy, report, sink, watch
        self._bids, self._asks = Ladder(policy.depth), Ladder(policy.depth)
        if policy.uncross == "drop_older":
            self._bids.ages, self._asks.ages = {}, {}
        self._message = 0
        self._due = 0  # flags of the next state
        self._has_book = False
        self._gap: tuple[int, str] | None = None  # from_ns and reason, while one is open
        self._state_ns: int | None = None  # time of the newest state
        self._times: list[tuple[int, int, int, int]] = []
        self._levels: list[list[int]] = []

    @property
    def is_broken(self) -> bool:
        """A gap is open, and no whole book has come since."""
        return self._gap is not None and not self._due & columns.AFTER_GAP

    @property
    def top(self) -> tuple[int, int, int, int] | None:
        """Best bid, its size, best ask, its size; None while a side is empty."""
        bid, ask = self._bids.best, self._asks.best
        return None if bid is None or ask is None else (-bid, self._bids.sizes[bid], ask, self._asks.sizes[ask])

    def whole(self, ts: int | None, recv: int, seq: int, bids: Levels, asks: Levels, *, is_snapshot: bool = True, flags: int = 0) -> None:
        """Replace the book. It makes a state if it has a time; a snapshot of a delta feed marks the next state (flag 1)."""
        self._message += 1
        covered = self._policy.snapshot_levels if is_snapshot else 0
        self._bids.replace([(-price, size) for price, size in bids], covered, self._message)
        self._asks.replace(asks, covered, self._message)
        self._has_book = True
        if self._gap is not None:
            self._due |= columns.AFTER_GAP
            if self._policy.gap == "stop":
                self._due |= BREAK
        if is_snapshot:
            self._due |= columns.SNAPSHOT
        if ts is not None:
            self._state(ts, recv, seq, flags)

    def delta(self, ts: int, recv: int, seq: int, bids: Levels, asks: Levels, *, flags: int = 0, shows: bool = True) -> None:
        """Set levels to absolute sizes; `shows` false makes no state. Without a book it is counted as `before_snapshot`."""
        if not self._has_book:
            self._report.count("before_snapshot")
            return
        self._message += 1
        self._bids.change([(-price, size) for price, size in bids], self._message)
        self._asks.change(asks, self._message)
        if not shows:
            return
        self._state(ts, recv, seq, flags | (columns.AFTER_GAP if self._gap is not None else 0))

    def break_off(self, ts: int, reason: str) -> None:
        """A message is missing before `ts`: a gap opens at the newest state; one that is open stays as it is."""
        if self._gap is not None:
            self._due = 0  # what would have mended it made no state
            return
        self._report.count("gaps")
        self._gap = (ts if self._state_ns is None else self._state_ns, reason)

    def finish(self) -> None:
        """Hand out what is left; a gap that is still open has no end."""
        self._flush()
        if self._gap is not None:
            self._report.gap(self._gap[0], None, self._gap[1])

    def _state(self, ts: int, recv: int, seq: int, flags: int) -> None:
        if self._gap is not None and not self.is_broken:
            self._report.gap(self._gap[0], ts, self._gap[1])
            self._gap = None
        if self._policy.uncross == "drop_older":
            flags |= self._uncrossed()
        cuts = self._policy.beyond == "null"
        bids, asks = self._bids.shown(cuts=cuts), self._asks.shown(cuts=cuts)
        if self._bids.beyond or self._asks.beyond:
            flags |= columns.BEYOND
        self._times.append((ts, recv, seq, flags | self._due))
        self._levels.append(bids)
        self._levels.append(asks)
        self._due = 0
        if self._watch is not None:
            self._watch(seq, self.top)
        self._state_ns = ts if self._state_ns is None else max(ts, self._state_ns)
        if len(self._times) >= BLOCK_STATES:
            self._flush()

    def _uncrossed(self) -> int:
        """Remove the older of two crossing levels until none cross; two of one message stay (B-06)."""
        removed = 0
        bids, asks = self._bids, self._asks
        while (bid := bids.best) is not None and (ask := asks.best) is not None and -bid > ask:
            bid_age, ask_age = (bids.ages or {})[bid], (asks.ages or {})[ask]
            if bid_age == ask_age:
                break
            if bid_age < ask_age:
                bids.drop(bid)
            else:
                asks.drop(ask)
            removed += 1
        if removed:
            self._report.count("purged", removed)
        return columns.PURGED if removed else 0

    def _flush(self) -> None:
        if not self._times:
            return
        n = len(self._times)
        levels = np.fromiter(chain.from_iterable(self._levels), dtype=np.int64, count=n * 4 * DEPTH).reshape(n, 4, DEPTH)
        prices = levels[:, 0]
        np.negative(prices, out=prices)  # keys to prices; NULL is its own negative
        times = np.array(self._times, dtype=np.int64)
        self._times, self._levels = [], []
        self._sink(Rows(times[:, 0].copy(), times[:, 1].copy(), times[:, 2].copy(), times[:, 3].copy(), levels))
