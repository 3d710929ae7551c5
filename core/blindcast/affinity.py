"""Which CPUs a thread may run on, and the core that a walker shares with the child it asks."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["SharedCore", "cpu_mask"]


def cpu_mask() -> tuple[int, ...]:
    """The CPUs that this thread may run on, the one it runs on now first: two processes seldom pick the same."""
    if not hasattr(os, "sched_getaffinity"):
        return tuple(range(os.cpu_count() or 1))
    mask = sorted(os.sched_getaffinity(0))
    here = _current_cpu()
    return tuple([here, *(cpu for cpu in mask if cpu != here)] if here in mask else mask)


def _current_cpu() -> int | None:
    try:
        fields = Path("/proc/thread-self/stat").read_text().rpartition(")")[2].split()
        return int(fields[36])  # field 39 of proc(5): the first two are cut off
    except (OSError, ValueError, IndexError):
        return None


class SharedCore:
    """The core of a child. Walker and child alternate, they never overlap: a thread that joins it runs there too (PF-25)."""

    __slots__ = ("_cpu", "_own")

    def __init__(self, cpu: int | None) -> None:
        self._cpu = cpu
        self._own: set[int] | None = None

    def join(self) -> None:
        """Bind this thread to the core, if there is one."""
        if self._cpu is not None and self._own is None:
            self._own = os.sched_getaffinity(0)
            os.sched_setaffinity(0, {self._cpu})

    def leave(self) -> None:
        """Bind it to what it had before. Safe to repeat."""
        if self._own is not None:
            os.sched_setaffinity(0, self._own)
            self._own = None
