"""What the kernel says of a living child, and what the child saw itself: each control by a fact that no other control can hide (IS-03)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from blindcast.contracts import Child

__all__ = ["FACTS", "facts_of"]

Fact = Callable[[Path, Mapping[str, str]], "bool | None"]  # of /proc/<pid> and its status, by word


def facts_of(child: Child) -> dict[str, bool | None]:
    """Control id -> whether it holds the child, by what /proc tells from outside; None where that cannot be told.

    Empty where the child has no process here.
    """
    pid = _pid_of(child.pidfd)
    if pid <= 0:
        return {}
    place = Path("/proc", str(pid))
    rows = (row.partition(":") for row in (place / "status").read_text(encoding="utf-8", errors="replace").splitlines())
    status = {word: value.strip() for word, _, value in rows}
    return {control: fact(place, status) for control, fact in FACTS.items()}


def _pid_of(pidfd: int) -> int:
    if pidfd < 0:
        return 0
    for row in Path(f"/proc/self/fdinfo/{pidfd}").read_text(encoding="ascii").splitlines():
        if row.startswith("Pid:"):
            return int(row.split()[1])
    return 0


def _user(_place: Path, status: Mapping[str, str]) -> bool:
    uids, gids = status["Uid"].split(), status["Gid"].split()
    return len({*uids}) == len({*gids}) == 1 and str(os.geteuid()) not in uids and not status["Groups"]


def _capabilities(_place: Path, status: Mapping[str, str]) -> bool:
    return all(int(status[word], 16) == 0 for word in ("CapInh", "CapPrm", "CapEff", "CapAmb"))


def _undumpable(place: Path, status: Mapping[str, str]) -> bool | None:
    """Its entries belong to another user than its own; of a child that is root itself that cannot be told."""
    own = int(status["Uid"].split()[1])
    return None if own == 0 else os.stat(place / "environ").st_uid != own


def _limits(place: Path, _status: Mapping[str, str]) -> bool:
    limits = {row[:26].strip(): row[26:].split() for row in (place / "limits").read_text(encoding="ascii").splitlines()[1:]}
    bounded = ("Max cpu time", "Max processes", "Max open files", "Max address space")
    spent = limits["Max core file size"][:2] == ["0", "0"]
    return spent and all(limits[name][1] != "unlimited" for name in bounded)


def _namespace(kind: str) -> Fact:
    def differs(place: Path, _status: Mapping[str, str]) -> bool | None:
        try:
            return os.readlink(place / "ns" / kind) != os.readlink(f"/proc/self/ns/{kind}")
        except OSError:
            return None  # it may not be looked into from here

    return differs


def _group(place: Path, _status: Mapping[str, str]) -> bool:
    return (place / "cgroup").read_bytes() != Path("/proc/self/cgroup").read_bytes()


FACTS: Final[dict[str, Fact]] = {
    "uid-drop": _user,
    "no-new-privs": lambda _place, status: status["NoNewPrivs"] == "1",
    "undumpable": _undumpable,
    "caps": _capabilities,
    "seccomp": lambda _place, status: status["Seccomp"] == "2",
    "rlimits": _limits,
    "userns": _namespace("user"),
    "netns": _namespace("net"),
    "ipcns": _namespace("ipc"),
    "utsns": _namespace("uts"),
    "pidns": lambda _place, status: (
        len(status["NSpid"].split()) > len(Path("/proc/self/status").read_text().partition("NSpid:")[2].split("\n")[0].split())
    ),
    "cgroup-kill": _group,
}
