"""The reveal buffer: sealed memory that a child sees grow, row by row (isolation.md section 6)."""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, SupportsInt

import numpy as np
from numpy.typing import NDArray

from blindcast.frames import Section
from blindcast.reveal import Reveal
from blindcast.view import EVENT_COLUMNS

__all__ = ["Layout", "RevealBuffer", "layout"]

PAGE: Final = 4_096
SEALS: Final = 0x17  # SHRINK | GROW | FUTURE_WRITE | SEAL (I-41)
_ADD_SEALS: Final = 1033  # F_ADD_SEALS


class Layout(NamedTuple):
    """Where each section lies: `caps` rows, byte `offsets`, and the `size` of the whole, in bytes."""

    caps: tuple[int, ...]
    offsets: tuple[int, ...]
    size: int


def _pages(size_bytes: int) -> int:
    return -(-size_bytes // PAGE) * PAGE


def layout(sections: Sequence[tuple[str, str, int, SupportsInt]]) -> Layout:
    """Lay out (name, dtype, columns, rows at most) sections: caps are powers of two, offsets whole pages (I-40).

    >>> layout([("ladder", "f4", 82, 9000), ("events", "f4", 4, 61234), ("y", "f8", 1, 16)])
    Layout(caps=(16384, 65536, 16), offsets=(0, 5373952, 6422528), size=6426624)
    """
    caps, offsets, end = [], [], 0
    for _name, dtype, columns, rows in sections:
        cap = 1 << max(0, int(rows) - 1).bit_length()
        caps.append(cap)
        offsets.append(end)
        end = _pages(end + cap * columns * np.dtype(dtype).itemsize)
    return Layout(tuple(caps), tuple(offsets), end)


class RevealBuffer:
    """One sealed memory file of a run; only revealed rows are ever written into it (I-43).

    `ladder_rows`, `event_rows` and `knots` are the most that any window of the task's pool has.
    """

    def __init__(self, columns: tuple[str, ...], ladder_rows: int, event_rows: int, knots: int) -> None:
        tables = [("ladder", "<f4", columns, ladder_rows), ("events", "<f4", EVENT_COLUMNS, event_rows), ("y", "<f8", ("y",), knots)]
        plan = layout([(name, dtype, len(names), rows) for name, dtype, names, rows in tables])
        places = zip(tables, plan.caps, plan.offsets, strict=True)
        self.sections = tuple(Section(name, dtype, names, cap, offset) for (name, dtype, names, _), cap, offset in places)
        self.size = plan.size
        self._memory = self._sealed()
        self._ladder, self._events, self._path = (self._table(section) for section in self.sections)
        self._written = (0, 0, 0)

    def _sealed(self) -> mmap.mmap:
        """The parent's mapping: zeroed, then sealed against every later change of size and every other writer (I-41)."""
        self._fd = os.memfd_create("reveal", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self._fd, self.size)
        memory = mmap.mmap(self._fd, self.size)
        memory[:] = bytes(self.size)
        fcntl.fcntl(self._fd, _ADD_SEALS, SEALS)
        os.fchmod(self._fd, 0o400)
        return memory

    def _table(self, section: Section) -> NDArray[Any]:
        shape = (len(section.columns), section.cap_rows)
        return np.ndarray(shape, dtype=section.dtype, buffer=self._memory, offset=section.offset)

    def reopened(self, *, is_writable: bool = False) -> int:
        """A new description of the buffer: each child gets a read-only one of its own (I-37). The caller closes it.

        A writable one is for trying the seals, which refuse every write through it all the same.
        """
        return os.open(f"/proc/self/fd/{self._fd}", (os.O_RDWR if is_writable else os.O_RDONLY) | os.O_CLOEXEC)

    def show(self, reveal: Reveal, rows: tuple[int, int, int]) -> None:
        """Append the rows of `reveal` up to `rows` (ladder rows, events, knots) that were not yet shown."""
        ladder, events, knots = self._written
        ladder_to, events_to, knots_to = rows
        if ladder_to > ladder:
            self._ladder[:, ladder:ladder_to] = reveal.ladder[:, ladder:ladder_to]
        if events_to > events:
            self._events[:, events:events_to] = reveal.events[:, events:events_to]
        self._path[0, knots:knots_to] = reveal.path[knots:knots_to]
        self._written = rows

    def clear(self) -> None:
        """Zero what was shown: the whole buffer is zero again (I-44)."""
        ladder, events, knots = self._written
        self._ladder[:, :ladder] = 0.0
        self._events[:, :events] = 0.0
        self._path[:, :knots] = 0.0
        self._written = (0, 0, 0)

    def close(self) -> None:
        """Give the memory back. Safe to repeat."""
        if self._fd >= 0:
            self._ladder = self._events = self._path = np.empty((0, 0))
            self._memory.close()
            os.close(self._fd)
            self._fd = -1
