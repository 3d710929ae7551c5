"""`bwrap`: bubblewrap makes the namespaces, a second implementation of them; each child starts cold (isolation.md I-32, I-33)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from blindcast.records import SpawnSpec
from blindcast_isolation import root
from blindcast_isolation.backend import LANDLOCK, NAMESPACES, Backend, Design
from blindcast_isolation.cgroup import CONTROLS as GROUP_CONTROLS
from blindcast_isolation.cgroup import Group
from blindcast_isolation.launcher import Launcher, source_roots
from blindcast_isolation.measures import HOST_NAME
from blindcast_isolation.order import ENVIRONMENT
from blindcast_isolation.spawning import Spawning
from blindcast_isolation.userns import forbidden

__all__ = ["Bubblewrap", "command"]

LEAST: Final = (0, 8)
_GIVEN: Final = (*NAMESPACES, "utsns", "cgroup-kill")
_KEPT: Final = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_KILL")  # by root's zygote, to drop a child and to end it; none by the child
_JOIN: Final = ("/bin/sh", "-c", 'echo 0 >"$0/cgroup.procs" && exec "$@"')


class Bubblewrap(Backend):
    """A zygote for each child, inside namespaces that bubblewrap made. Needs bubblewrap 0.8."""

    design = Design(
        name="bwrap",
        classed="kernel",
        required=(*NAMESPACES, "caps", "no-new-privs", "undumpable", "fds", "env", "seccomp", "rlimits"),
        added=("utsns", *LANDLOCK, *GROUP_CONTROLS, "seals", "hook"),
        given=_GIVEN,
    )

    def lacks(self, *, is_root: bool) -> str:
        """Empty where a bubblewrap that is new enough is on the path."""
        path = shutil.which("bwrap")
        if path is None:
            return "bubblewrap is not installed"
        said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False, env=ENVIRONMENT).stdout
        found = re.search(r"(\d+)\.(\d+)", said)
        if found is None or (int(found[1]), int(found[2])) < LEAST:
            return f"bubblewrap {said.strip() or 'of an unknown version'}: 0.8 is needed"
        return "" if is_root else forbidden()

    def spawning(self) -> Spawning:
        """A launcher for each child."""
        return Spawning(_launcher, self.design.given, closes=True, binds=tuple(source_roots()))


def _launcher(spec: SpawnSpec, group: Group | None) -> Launcher:
    joined = () if group is None else (*_JOIN, group.path)
    return Launcher((*joined, *command(spec, is_root=os.geteuid() == 0)))


def command(spec: SpawnSpec, *, is_root: bool) -> tuple[str, ...]:
    """The command that runs another inside: the root of I-20 and nothing else. Raises FileNotFoundError without bubblewrap."""
    path = shutil.which("bwrap")
    if path is None:
        raise FileNotFoundError("bubblewrap is not installed")
    kept = ("--cap-drop", "ALL", *(word for name in _KEPT for word in ("--cap-add", name)))
    return (
        path,
        *("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--hostname", HOST_NAME),
        *("--die-with-parent", "--new-session", "--clearenv"),
        *(word for name, value in ENVIRONMENT.items() for word in ("--setenv", name, value)),
        *(kept if is_root else ("--unshare-user",)),
        *_disk(spec),
        *("--remount-ro", "/", "--chdir", "/", "--"),
    )


def _disk(spec: SpawnSpec) -> Iterator[str]:
    paths = (*root.system_paths(), *root.interpreter_paths(), *source_roots())
    parents = (str(parent) for path in paths for parent in reversed(Path(path).parents[:-1]))
    for parent in dict.fromkeys((*parents, root.SUBMISSION)):
        yield from ("--perms", "0755", "--dir", parent)
    for path in paths:
        if os.path.islink(path):
            yield from ("--symlink", os.readlink(path), path)
        else:
            yield from ("--ro-bind", path, path)
    submission = os.path.realpath(spec.submission)
    inner = root.SUBMISSION if os.path.isdir(submission) else f"{root.SUBMISSION}/{os.path.basename(submission)}"
    yield from ("--ro-bind", submission, inner)
    if spec.workspace is not None:
        yield from ("--bind", os.path.realpath(spec.workspace), root.WORKSPACE)
    if spec.data is not None:
        yield from ("--ro-bind", os.path.realpath(spec.data), root.DATA)
