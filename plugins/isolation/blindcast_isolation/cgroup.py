"""A run's own cgroup: a child of the server's, of version 2 only; no controller is switched on (isolation.md I-10 step 4, I-70)."""

from __future__ import annotations

import errno
import itertools
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from attrs import frozen

__all__ = ["CONTROLS", "Group", "is_populated", "kill_group", "make_group", "own_group"]

CONTROLS: Final = ("cgroup-kill", "cgroup-memory", "cgroup-pids")
_count: Final[Iterator[int]] = itertools.count()
_REMOVE_S: Final = 1.0


@frozen
class Group:
    """One group folder, and which controls its files offer."""

    path: str
    controls: tuple[str, ...]

    def limit(self, memory_mb: int, tasks: int) -> None:
        """Set the limits whose files are there. Raises OSError."""
        if "cgroup-memory" in self.controls:
            _write(f"{self.path}/memory.max", str(memory_mb << 20))
            with suppress(OSError):  # without swap accounting there is no such file
                _write(f"{self.path}/memory.swap.max", "0")
        if "cgroup-pids" in self.controls:
            _write(f"{self.path}/pids.max", str(tasks))

    def ran_out_of_memory(self) -> bool:
        """Whether the kernel killed something here for want of memory."""
        with suppress(OSError), open(f"{self.path}/memory.events") as file:
            return any(row.startswith("oom_kill ") and row.split()[1] != "0" for row in file)
        return False

    def remove(self) -> None:
        """Kill what is left and take the folder away. Raises OSError where it stays."""
        deadline = time.monotonic() + _REMOVE_S
        while True:
            try:
                os.rmdir(self.path)
            except FileNotFoundError:
                return
            except OSError as error:
                if error.errno != errno.EBUSY or time.monotonic() > deadline:
                    raise
                kill_group(self.path)
                time.sleep(0.001)
            else:
                return


def own_group() -> str:
    """The folder of this process's group. Raises OSError where version 2 is not mounted."""
    with open("/proc/self/cgroup") as file:
        own = next((row.rstrip("\n")[3:] for row in file if row.startswith("0::")), None)
    with open("/proc/self/mountinfo") as file:
        rows = [row.split() for row in file]
    for row in rows:
        if own is not None and "cgroup2" in row[row.index("-") :]:
            root, mounted = row[3], row[4]
            inner = own.removeprefix(root.rstrip("/")) if own.startswith(root.rstrip("/")) else own
            return f"{mounted}{inner}".rstrip("/")
    raise OSError(errno.ENOENT, "no cgroup of version 2 is mounted")


def make_group() -> Group:
    """A new group below this process's own. Raises OSError where none can be had."""
    path = f"{own_group()}/blindcast-{os.getpid()}-{next(_count)}"
    os.mkdir(path)
    found = {"cgroup-kill": "cgroup.kill", "cgroup-memory": "memory.max", "cgroup-pids": "pids.max"}
    return Group(path, tuple(control for control, file in found.items() if os.path.exists(f"{path}/{file}")))


def kill_group(path: str) -> None:
    """Kill everything in the group at once, whatever it forks meanwhile. Raises OSError."""
    _write(f"{path}/cgroup.kill", "1")


def is_populated(path: str) -> bool:
    """Whether a process lives in the group."""
    try:
        with open(f"{path}/cgroup.events") as file:
            return "populated 1" in file.read()
    except FileNotFoundError:
        return False


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
