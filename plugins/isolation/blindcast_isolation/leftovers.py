"""What there is of a uid on this host: processes, SysV objects and files of a workspace (I-16)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from blindcast_isolation.ownership import everything

__all__ = ["files_of", "leftover", "processes_of", "sysv_of"]

_SYSV: Final = ("shm", "msg", "sem")


def leftover(uid: int, workspaces: Iterable[Path] = (), proc: Path = Path("/proc")) -> str:
    """The first thing found of `uid`, in words; empty where there is nothing.

    >>> leftover(4_000_000_001)
    ''
    """
    if (pid := next(processes_of(uid, proc), None)) is not None:
        return f"process {pid}"
    if found := next(sysv_of(uid, proc), ""):
        return found
    return next((f"file {file}" for workspace in workspaces for file in files_of(uid, workspace)), "")


def processes_of(uid: int, proc: Path = Path("/proc")) -> Iterator[int]:
    """Living processes that run under `uid`; the dead that nobody reaped do no harm."""
    for entry in os.scandir(proc):
        if entry.name.isdecimal():
            with suppress(OSError):
                if entry.stat().st_uid == uid and not _is_dead(entry.path):
                    yield int(entry.name)


def _is_dead(process: str) -> bool:
    with open(f"{process}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()[0] in (b"Z", b"X")


def sysv_of(uid: int, proc: Path = Path("/proc")) -> Iterator[str]:
    """Shared memory, message queues and semaphores that `uid` owns or made, as `shm 3`; none where the kernel has no such thing."""
    for kind in _SYSV:
        with suppress(FileNotFoundError):
            head, *rows = (proc / "sysvipc" / kind).read_text().splitlines() or [""]
            columns = head.split()
            for row in rows:
                facts = dict(zip(columns, row.split(), strict=False))
                if str(uid) in (facts["uid"], facts["cuid"]):
                    yield f"{kind} {row.split()[1]}"  # shmid, msqid, semid


def files_of(uid: int, workspace: Path) -> Iterator[str]:
    """Everything in and including `workspace` that `uid` owns; no link is followed."""
    with suppress(FileNotFoundError):
        if workspace.lstat().st_uid == uid:
            yield str(workspace)
        top = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            for _, place, name, status in everything(top):
                if status.st_uid == uid:
                    yield f"{workspace}/{place}{name}"
        finally:
            os.close(top)
