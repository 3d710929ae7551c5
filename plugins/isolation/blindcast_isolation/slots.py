"""One uid per run: slots are files held by `flock` (I-16).

A slot's file is empty, or says line by line what its next holder must know: `workspace PATH`, a folder that a session of
that uid writes to, and `quarantined REASON`, after which nobody takes it until the file is removed.
"""

from __future__ import annotations

import fcntl
import os
import pwd
import stat
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from attrs import field, frozen

from blindcast.errors import DeniedError
from blindcast.printable import printable
from blindcast_isolation.leftovers import leftover

__all__ = ["SLOTS", "Quarantined", "Slot", "quarantined", "take_slot"]

SLOTS: Final = Path("/run/blindcast")  # one folder for all servers of a host
SETTLE_S: Final = 1.0  # what the tree of a server that was killed has to be gone (I-71)
_POLL_S: Final = 0.005
_QUARANTINED: Final = "quarantined "
_WORKSPACE: Final = "workspace "


@frozen
class Quarantined:
    """A uid that was not clean: `reason` says what was found of it."""

    uid: int
    reason: str


@frozen(eq=False)
class Slot:
    """A uid that this process holds until it lets go."""

    uid: int
    _fd: int
    _workspaces: list[Path] = field(factory=list)

    def keep_workspace(self, workspace: Path) -> None:
        """Note the folder that the uid may write to, for whoever takes the slot after a server that died."""
        self._workspaces.append(workspace)
        _write(self._fd, f"{_WORKSPACE}{workspace}\n")

    def leftover(self, *, apart: Sequence[Path] = ()) -> str:
        """What there is of the uid, in words; empty where it is clean. A session asks before each use, its workspace `apart`."""
        return leftover(self.uid, [place for place in self._workspaces if place not in apart])

    def quarantine(self, reason: str) -> None:
        """Once released, nobody takes the uid again: its child is `stuck`, say (I-71)."""
        _quarantine(self._fd, reason)

    def release(self) -> None:
        """Let the uid go; one that is not clean is quarantined first."""
        if not _is_quarantined(_lines(self._fd)):
            if found := _settled(self.uid, self._workspaces, time.monotonic() + SETTLE_S):
                self.quarantine(found)
            else:
                os.ftruncate(self._fd, 0)
        _let_go(self._fd)


def take_slot(uid_range: tuple[int, int], folder: Path = SLOTS) -> Slot:
    """The lowest free uid of the range that no user has and nothing is left of. Raises DeniedError `uid_slots_spent`.

    One that is not clean is quarantined on the way; what is about to end has SETTLE_S in all to do so.
    """
    _make_private(folder)
    deadline = time.monotonic() + SETTLE_S
    for uid in range(max(uid_range[0], 1), uid_range[1] + 1):
        if _is_known(uid):
            continue
        fd = _locked(folder / str(uid))
        if fd is None:
            continue
        lines = _lines(fd)
        workspaces = [Path(line.removeprefix(_WORKSPACE)) for line in lines if line.startswith(_WORKSPACE)]
        if not _is_quarantined(lines):
            if not (found := _settled(uid, workspaces, deadline)):
                os.ftruncate(fd, 0)
                return Slot(uid, fd)
            _quarantine(fd, found)
        _let_go(fd)
    held = f"; {len(spoilt)} quarantined, {spoilt[0].uid}: {spoilt[0].reason}" if (spoilt := quarantined(folder)) else ""
    raise DeniedError(
        "uid_slots_spent",
        f"no uid of {uid_range[0]}-{uid_range[1]} is free{held}",
        expected="one uid per run that no process, user or other run has",
        do="wait for a run to end, look at what `blindcast doctor` names, or widen [isolation] uid_range",
    )


def quarantined(folder: Path = SLOTS) -> list[Quarantined]:
    """The uids that nobody takes any more, with what was found, in order; none where the folder is not there or not ours."""
    found = []
    with suppress(FileNotFoundError, PermissionError):
        for place in folder.iterdir():
            if place.name.isdecimal():
                for line in place.read_text(errors="surrogateescape").splitlines():
                    if line.startswith(_QUARANTINED):
                        found.append(Quarantined(int(place.name), printable(line.removeprefix(_QUARANTINED))))
                        break
    return sorted(found, key=lambda one: one.uid)


def _make_private(folder: Path) -> None:
    """Make the folder, 0700 and ours whatever it was: who may write there could hold or spoil every slot."""
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise DeniedError(
            "slots_not_private",
            f"{folder} is no folder of uid {os.geteuid()}",
            expected="a folder that only the servers of this host may enter",
            do=f"remove {folder}: it is made anew",
        )
    if stat.S_IMODE(status.st_mode) != 0o700:
        folder.chmod(0o700)


def _locked(place: Path) -> int | None:
    """The slot's file, held; None where another holds it, or somebody has just removed it."""
    fd = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    if os.fstat(fd).st_nlink == 0:
        _let_go(fd)
        return None
    return fd


def _let_go(fd: int) -> None:
    fcntl.flock(fd, fcntl.LOCK_UN)  # a fork that has not yet exec'd holds the descriptor too
    os.close(fd)


def _settled(uid: int, workspaces: Sequence[Path], deadline: float) -> str:
    """What is left of a uid at the deadline, or before it if that is nothing."""
    while (found := leftover(uid, workspaces)) and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    return found


def _write(fd: int, line: str) -> None:
    os.pwrite(fd, line.encode(errors="surrogateescape"), os.fstat(fd).st_size)


def _quarantine(fd: int, reason: str) -> None:
    _write(fd, f"{_QUARANTINED}{printable(reason).replace(chr(10), ' ')}\n")


def _lines(fd: int) -> list[str]:
    return os.pread(fd, 1 << 16, 0).decode(errors="surrogateescape").splitlines()


def _is_quarantined(lines: Sequence[str]) -> bool:
    return any(line.startswith(_QUARANTINED) for line in lines)


def _is_known(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True
