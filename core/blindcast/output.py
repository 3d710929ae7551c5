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
        self._lock = threading.Lock()  # a living child may be asked what it printed so far
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
        with self._lock:
            self._bytes += len(data)
            room = KEPT_BYTES - len(self._first)
            self._first += data[:room]
            self._last = (self._last + data[room:])[-KEPT_BYTES:]

    def join(self, timeout_s: float) -> None:
        """Wait until all has been read; the writers are gone by then."""
        self._thread.join(timeout_s)

    def text(self) -> str:
        """The first and the last 32 KiB, printable; what lies between is counted."""
        with self._lock:
            first, last, left_out = bytes(self._first), bytes(self._last), self._bytes - len(self._first) - len(self._last)
        if not left_out:
            return _shown(first + last)
        return f"{_shown(first)}\n... {left_out} bytes left out ...\n{_shown(last)}"


def _shown(data: bytes) -> str:
    return printable(data.decode("utf-8", "replace"))
