"""What a run leaves behind: a picture of the namespace before and after, and the difference (K-05)."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from attrs import frozen

from blindcast_isolation.cgroup import own_group

__all__ = ["GROWTH_MIB", "Picture", "clean", "grown", "left", "settled", "taken"]

FOLDERS: Final = ("/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run")
GROWTH_MIB: Final = 16
DISK_MIB: Final = 2
GONE_S: Final = 2.0  # what a run's processes have to be gone, on a busy machine too
_SYSV: Final = ("/proc/sysvipc/shm", "/proc/sysvipc/sem", "/proc/sysvipc/msg")
_STEP_S: Final = 0.01


@frozen
class Picture:
    """What there was: names by kind, and for each of our own processes its descriptors, threads and memory."""

    things: Mapping[str, frozenset[str]]
    own: Mapping[str, tuple[int, int, float]]  # role -> descriptors, threads, resident MiB
    used_mib: float = 0.0  # of the folders that anybody may write to


def _processes() -> frozenset[str]:
    """`pid start-time name` of everything alive in this namespace."""
    found = set()
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError):
                fields = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
                if fields[0] not in "ZX":
                    found.add(f"{name} {fields[19]} {Path('/proc', name, 'comm').read_text().strip()}")
    return frozenset(found)


def _files(skipped: frozenset[str]) -> frozenset[str]:
    """Every path of our folders; what is mounted below them was there before any run."""
    found: set[str] = set()
    for folder in FOLDERS:
        with suppress(OSError):
            _walk(folder, os.lstat(folder).st_dev, skipped, found)
    return frozenset(found)


def _walk(folder: str, device: int, skipped: frozenset[str], found: set[str]) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            found.add(entry.path)
            with suppress(OSError):
                if entry.is_dir(follow_symlinks=False) and entry.path not in skipped and entry.stat(follow_symlinks=False).st_dev == device:
                    _walk(entry.path, device, skipped, found)


def _sysv() -> frozenset[str]:
    rows = set()
    for file in _SYSV:
        with suppress(OSError):
            rows |= {f"{file} {' '.join(row.split()[:2])}" for row in Path(file).read_text().splitlines()[1:]}
    return frozenset(rows)


def _abstract() -> frozenset[str]:
    with suppress(OSError):
        rows = Path("/proc/net/unix").read_text().splitlines()[1:]
        return frozenset(row.split()[-1] for row in rows if row.split()[-1].startswith("@"))
    return frozenset()


def _groups() -> frozenset[str]:
    """The control groups below this server's own; none where it may make none: what is there is another server's."""
    try:
        own = own_group()
    except OSError:
        return frozenset()
    if not os.access(own, os.W_OK):
        return frozenset()
    return frozenset(path for path, _, _ in os.walk(own) if path != own)


def _of_process(pid: int) -> tuple[int, int, float]:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return len(os.listdir(f"/proc/{pid}/fd")), len(os.listdir(f"/proc/{pid}/task")), pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)
    except OSError:
        return 0, 0, 0.0


def taken(own: Mapping[str, int], skipped: Iterable[str]) -> Picture:
    """The picture now. `own` are our long-lived processes by role; files below `skipped` are the stage's and the runs' own."""
    things = {
        "process": _processes(),
        "mount": frozenset(Path("/proc/self/mounts").read_text().splitlines()),
        "SysV object": _sysv(),
        "abstract socket": _abstract(),
        "cgroup": _groups(),
        "file": _files(frozenset(skipped)),
    }
    return Picture(things, {role: _of_process(pid) for role, pid in own.items()}, sum(map(_used_mib, FOLDERS)))


def _used_mib(folder: str) -> float:
    with suppress(OSError):
        room = os.statvfs(folder)
        return (room.f_blocks - room.f_bfree) * room.f_frsize / (1 << 20)
    return 0.0


def left(before: Picture, after: Picture) -> dict[str, frozenset[str]]:
    """What is there that was not, by kind; kinds without any are left out."""
    new = {kind: after.things[kind] - before.things[kind] for kind in after.things}
    return {kind: names for kind, names in new.items() if names}


def grown(before: Picture, after: Picture) -> list[str]:
    """How our own processes changed: other descriptors, other threads, memory beyond 16 MiB; and the disk."""
    told = []
    if after.used_mib - before.used_mib >= DISK_MIB:
        told.append(f"the disk: {after.used_mib - before.used_mib:.0f} MiB more are used")
    for role, (descriptors, threads, mib) in after.own.items():
        was = before.own.get(role, (descriptors, threads, mib))
        if was[0] and was[:2] != (descriptors, threads):
            told.append(f"{role}: {was[0]} descriptors and {was[1]} threads became {descriptors} and {threads}")
        if was[0] and mib - was[2] >= GROWTH_MIB:
            told.append(f"{role}: grew by {mib - was[2]:.0f} MiB")
    return told


def settled(before: Picture, own: Mapping[str, int], skipped: Iterable[str]) -> Picture:
    """The picture once processes and threads of the run had their time to go."""
    deadline = time.monotonic() + GONE_S
    while True:
        after = taken(own, skipped)
        is_still = "process" not in left(before, after) and all(after.own[r][:2] == before.own.get(r, after.own[r])[:2] for r in after.own)
        if is_still or time.monotonic() > deadline:
            return after
        time.sleep(_STEP_S)


def clean(found: Mapping[str, frozenset[str]]) -> None:
    """Remove what was left, so that the next row is not blamed: in a throw-away namespace only."""
    for name in found.get("process", ()):
        with suppress(OSError):
            os.kill(int(name.split()[0]), 9)
    for path in sorted(found.get("file", ()), reverse=True):
        with suppress(OSError):
            (os.rmdir if stat.S_ISDIR(os.lstat(path).st_mode) else os.unlink)(path.rstrip("/"))
    for row in found.get("SysV object", ()):
        _remove_sysv(row)


def _remove_sysv(row: str) -> None:
    import ctypes

    libc, (file, _key, number) = ctypes.CDLL(None), row.split()
    if file.endswith("shm"):
        libc.shmctl(int(number), 0, None)
    elif file.endswith("sem"):
        libc.semctl(int(number), 0, 0)
    else:
        libc.msgctl(int(number), 0, None)
