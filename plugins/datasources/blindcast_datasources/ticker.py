"""The ticker check: best prices of the replayed book against the venue's own ticker stream (DK-02)."""

from __future__ import annotations

from collections import deque
from typing import Final, TypeAlias

__all__ = ["TickerCheck", "Top"]

Top: TypeAlias = tuple[int, int, int, int]  # bid, its size, ask, its size
MOST_WAITING: Final = 50_000  # states that wait for a newer ticker; a recording without tickers must not fill the memory


class TickerCheck:
    """Compares each state with the newest ticker whose id is not above the state's."""

    def __init__(self) -> None:
        self.states = 0  # that had a ticker to be compared with
        self.equal = 0
        self._newest: Top | None = None
        self._waiting: deque[tuple[int, Top | None]] = deque(maxlen=MOST_WAITING)

    def state(self, update: int, top: Top | None) -> None:
        """A state after update `update`; `top` None while a side is empty."""
        self._waiting.append((update, top))

    def ticker(self, update: int, top: Top) -> None:
        """The next ticker: states before it are compared with the one that came before."""
        waiting = self._waiting
        while waiting and waiting[0][0] < update:
            self._compare(waiting.popleft()[1])
        self._newest = top

    def finish(self) -> None:
        """Compare what still waits with the last ticker."""
        while self._waiting:
            self._compare(self._waiting.popleft()[1])

    def _compare(self, top: Top | None) -> None:
        if self._newest is None:
            return
        self.states += 1
        self.equal += top == self._newest
