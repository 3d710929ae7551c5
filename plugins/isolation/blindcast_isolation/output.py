"""What a child prints: drained without end, kept within bounds, and never shown raw (I-59)."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Final

from blindcast.printable import printable

__all__ = ["Output"]

KEPT_BYTES: Final = 32 << 10  # of the beginning, and of the end
_READ: Final = 1 << 16


class Output:
    """Reads one descriptor to its end on a thread of its own; past `limit_bytes` it calls `over` once and reads on."""

    def __init__(self, fd: int, limit_bytes: int, over: Callable[[], None]) -> None:
        self._limit = limit_bytes
        self._over = over
        self._first = bytearray()
        self._last = bytearray()
        self._bytes = 0
        self.is_over = False
        self._thread = threading.Thread(target=self._drain, args=(fd,), name="blindcast-output", daemon=True)
        self._thread.start()

    def _drain(self, fd: int) -> None:
        try:
            while data := os.read(fd, _READ):
                self._keep(data)
                if self._bytes > self._limit and not self.is_over:
                    self.is_over = True
                    self._over()
        finally:
            os.close(fd)

    def _keep(self, data: bytes) -> None:
        self._bytes += len(data)
        room = KEPT_BYTES - len(self._first)
        self._first += data[:room]
        self._last = (self._last + data[max(0, room) :])[-KEPT_BYTES:]

    def join(self, timeout_s: float) -> None:
        """Wait until all has been read; the writers are gone by then."""
        self._thread.join(timeout_s)

    def text(self) -> str:
        """The first and the last 32 KiB, printable; what lies between is counted."""
        left_out = self._bytes - len(self._first) - len(self._last)
        between = f"\n... {left_out} bytes left out ...\n" if left_out > 0 else ""
        first, last = (bytes(part).decode("utf-8", "replace") for part in (self._first, self._last))
        return printable(first) + between + printable(last) if between else printable((self._first + self._last).decode("utf-8", "replace"))
