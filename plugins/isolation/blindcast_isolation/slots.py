"""One uid per run: slots are files held by `flock` (I-16)."""

from __future__ import annotations

import fcntl
import os
import pwd
from pathlib import Path
from typing import Final

from attrs import frozen

from blindcast.errors import DeniedError

__all__ = ["SLOTS", "Slot", "take_slot"]

SLOTS: Final = Path("/run/blindcast")  # one folder for all servers of a host


@frozen
class Slot:
    """A uid that this process holds until it lets go."""

    uid: int
    _fd: int

    def release(self) -> None:
        """Let the uid go; one that is not clean stays unused, since the next taker looks too."""
        os.close(self._fd)


def take_slot(uid_range: tuple[int, int], folder: Path = SLOTS) -> Slot:
    """The lowest free uid of the range that no user has and no process runs under. Raises DeniedError `uid_slots_spent`."""
    folder.mkdir(mode=0o700, exist_ok=True)
    busy = _running_uids(uid_range)
    for uid in range(uid_range[0], uid_range[1] + 1):
        if uid in busy or uid == 0 or _is_known(uid):
            continue
        fd = os.open(folder / str(uid), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            continue
        return Slot(uid, fd)
    raise DeniedError(
        "uid_slots_spent",
        f"no uid of {uid_range[0]}-{uid_range[1]} is free",
        expected="one uid per run that no process, user or other run has",
        do="wait for a run to end, or widen [isolation] uid_range",
    )


def _is_known(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def _running_uids(uid_range: tuple[int, int]) -> set[int]:
    """The uids of the range that living processes run under; the dead that nobody reaped do no harm."""
    found = set()
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                uid = entry.stat().st_uid
                if uid_range[0] <= uid <= uid_range[1] and not _is_dead(entry.path):
                    found.add(uid)
            except OSError:
                continue
    return found


def _is_dead(process: str) -> bool:
    with open(f"{process}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()[0] in (b"Z", b"X")
