"""The clock of a run: the parent's, monotonic, and out of the child's reach (isolation.md I-62)."""

from __future__ import annotations

import time

__all__ = ["RunClock"]


class RunClock:
    """The parent's clock of one run: `run_wall_s` from the first `load`; queueing and starting are not counted (I-62)."""

    __slots__ = ("_run_wall_s", "deadline")

    def __init__(self, run_wall_s: float) -> None:
        self._run_wall_s = run_wall_s
        self.deadline = float("inf")  # monotonic seconds

    def start(self) -> None:
        """Begin to count; a second call changes nothing."""
        if self.deadline == float("inf"):
            self.deadline = time.monotonic() + self._run_wall_s
