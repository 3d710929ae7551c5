"""What is around the process that the isolation checks run in, before and after (IS-01, IS-06, IS-07)."""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

__all__ = ["alive", "changed", "left", "own_group", "resident_bytes", "strain", "surroundings"]

_GROUPS: Final = "0::"  # how the line of the one hierarchy of version 2 begins in /proc/self/cgroup


def alive() -> frozenset[int]:
    """Processes that this process can see and that have not ended."""
    found = set()
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                state = Path("/proc", name, "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
            except OSError:
                continue
            if state not in "ZX":
                found.add(int(name))
    return frozenset(found)


def left(before: frozenset[int], limit_s: float) -> frozenset[int]:
    """Processes that are still there, beyond those of before, once `limit_s` has passed."""
    deadline = time.monotonic() + limit_s
    while (more := alive() - before) and time.monotonic() < deadline:
        time.sleep(0.01)
    return more


def surroundings() -> dict[str, Any]:
    """Mounts, cgroups, temporary files, users and descriptors of this process, by name."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return {
        "mounts": Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace"),
        "cgroups": (Path("/proc/self/cgroup").read_text(encoding="utf-8"), _groups()),
        "files": sorted(os.listdir(tempfile.gettempdir())),
        "uids": [line for line in status.splitlines() if line.startswith(("Uid", "Gid", "Groups", "Cap"))],
        "descriptors": len(os.listdir("/proc/self/fd")),
    }


def own_group() -> str:
    """The folder of this process's cgroup; "/nowhere" where version 2 is not mounted as a whole."""
    rows = [row.split() for row in Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines()]
    places = [row[4] for row in rows if row[row.index("-") + 1] == "cgroup2" and row[3] == "/"]
    own = [row[len(_GROUPS) :] for row in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines() if row.startswith(_GROUPS)]
    return f"{places[0]}{own[0]}".rstrip("/") if places and own else "/nowhere"


def _groups() -> list[str]:
    """The cgroups below this process's own; none where it may make none: what is there is somebody else's."""
    own = own_group()
    with suppress(OSError):
        return sorted(entry.name for entry in os.scandir(own) if entry.is_dir()) if os.access(own, os.W_OK) else []
    return []


def changed(before: dict[str, Any], after: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """What differs, by name: as it was, as it is."""
    return {name: (was, after[name]) for name, was in before.items() if was != after[name]}


def strain() -> float:
    """How many times longer than alone something may take here: the load per processor, at least 1."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def resident_bytes() -> int:
    """The memory of this process."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
