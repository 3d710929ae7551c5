"""What a child may use, as the kernel is told."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from typing import Final

__all__ = ["SLOT_THREADS", "nproc", "own_tasks"]

SLOT_THREADS = 64  # of a uid that nobody else has
_ROOTS: Final = (0, 65_534)  # as a user namespace without a root shows it, too
_FIRST: Final = "pid:[4026531836]"  # the kernel's constant
_COUNT: Final = """\
import os, resource
hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
low, high = 0, hard if 0 < hard < 1 << 22 else 1 << 22
while low < high:
    middle = (low + high) // 2
    resource.setrlimit(resource.RLIMIT_NPROC, (middle, hard))
    try:
        pid = os.fork()
    except BlockingIOError:
        low = middle + 1
        continue
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    high = middle
print(low - 1)
"""  # the tasks of the uid, this one with them: one more is let through by a limit of one more


def nproc(tasks: int | None = None) -> int:
    """RLIMIT_NPROC: 64 for a slot's uid, `tasks` + 64 where the uid is shared and runs `tasks` tasks already (I-60).

    >>> nproc(), nproc(200)
    (64, 264)
    """
    return SLOT_THREADS if tasks is None else tasks + SLOT_THREADS


def own_tasks() -> int:
    """How many processes and threads this uid has now: what RLIMIT_NPROC counts.

    One that is not dumpable, as every child of ours, seems to be root's; what another pid namespace hides counts too.
    """
    return _seen_tasks() + (0 if _is_first_pid_namespace() else _hidden_tasks())


def _seen_tasks() -> int:
    uid, count = os.getuid(), 0
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                if entry.stat().st_uid in (uid, *_ROOTS):
                    count += _tasks_of(entry.name, uid)
            except OSError:
                continue
    return count


def _tasks_of(pid: str, uid: int) -> int:
    with open(f"/proc/{pid}/status", "rb") as file:
        text = file.read()
    real = int(text.partition(b"\nUid:")[2].split(None, 1)[0])
    return int(text.partition(b"\nThreads:")[2].split(None, 1)[0]) if real == uid else 0


def _is_first_pid_namespace() -> bool:
    try:
        return os.readlink("/proc/self/ns/pid") == _FIRST
    except OSError:
        return True


@cache
def _hidden_tasks() -> int:
    """What the kernel counts of this uid beyond what is seen, in a container say: measured once, by what it refuses."""
    seen = _seen_tasks()
    said = subprocess.run([sys.executable, "-I", "-S", "-c", _COUNT], capture_output=True, text=True, check=False).stdout
    return max(0, int(said) - 1 - seen) if said.strip().isdecimal() else 0
