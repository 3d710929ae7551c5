"""What a child may use, as the kernel is told."""

from __future__ import annotations

import os

__all__ = ["SLOT_THREADS", "nproc", "own_tasks"]

SLOT_THREADS = 64  # of a uid that nobody else has


def nproc(tasks: int | None = None) -> int:
    """RLIMIT_NPROC: 64 for a slot's uid, `tasks` + 64 where the uid is shared and runs `tasks` tasks already (I-60).

    >>> nproc(), nproc(200)
    (64, 264)
    """
    return SLOT_THREADS if tasks is None else tasks + SLOT_THREADS


def own_tasks() -> int:
    """How many processes and threads this uid has now: what RLIMIT_NPROC counts."""
    uid, count = os.getuid(), 0
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                if entry.stat().st_uid == uid:
                    count += len(os.listdir(f"/proc/{entry.name}/task"))
            except OSError:
                continue
    return count
