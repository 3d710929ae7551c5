"""The ticker check: best prices of the replayed book against the venue's own ticker stream (DK-02)."""

from __future__ import annotations

from collections import deque
from typing import Final, TypeAlias

__all__ = ["TickerCheck", "Top"]

Top: TypeAlias = tuple[int, int, int, int]  # bid, its size, ask, its size
MOST_WAITING: Final = 50_000  # states or tickers kept: a recording without the other stream must not fill the memory


class TickerCheck:
    """Compares each state with the newest ticker whose id is not above the state's, whichever came first."""

    def __init__(self) -> None:
        self.states = 0  # that had a ticker to be compared with
        self.equal = 0
        self._tickers: deque[tuple[int, Top]] = deque(maxlen=MOST_WAITING)
        self._waiting: deque[tuple[int, Top | None]] = deque(maxlen=MOST_WAITING)

    def state(self, update: int, top: Top | None) -> None:
        """A state after update `update`; `top` None while a side is empty."""
        self._waiting.append((update, top))
        if self._tickers and self._tickers[-1][0] > update:
            self._compare(self._tickers[-1][0])

    def ticker(self, update: int, top: Top) -> None:
        """The next ticker, which settles the states before it."""
        self._tickers.append((update, top))
        if self._waiting and self._waiting[0][0] < update:
            self._compare(update)

    def finish(self) -> None:
        """Compare what still waits with the last ticker."""
        if self._waiting:
            self._compare(self._waiting[-1][0] + 1)

    def _compare(self, before: int) -> None:
        """Settle the waiting states with an id below `before`."""
        tickers, waiting = self._tickers, self._waiting
        while waiting and waiting[0][0] < before:
            update, top = waiting.popleft()
            while len(tickers) > 1 and tickers[1][0] <= update:
                tickers.popleft()
            if tickers and tickers[0][0] <= update:
                self.states += 1
                self.equal += top == tickers[0][1]
