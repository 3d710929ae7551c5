"""What a child sees on disk: a private read-only root (I-20), or closed parents opened for it alone (I-22).

Every mount here is made in a mount namespace of the child's own, after its propagation was made private.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from blindcast_isolation.linux import (
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_RDONLY,
    MS_REC,
    MS_REMOUNT,
    mount,
    pivot_root,
    umount,
)

__all__ = [
    "DATA",
    "SUBMISSION",
    "WORKSPACE",
    "closed_parents",
    "enter",
    "interpreter_paths",
    "make_private",
    "open_parents",
    "system_paths",
]

SUBMISSION: Final = "/submission"
WORKSPACE: Final = "/workspace"
DATA: Final = "/data"
_LIBRARY_FOLDERS: Final = ("/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/local/lib")
_NEVER_WHOLE: Final = ("/", "/usr", "/usr/local")  # a system interpreter's prefix: its library folders are bound anyway
_OPTIONS: Final = MS_NOSUID | MS_NODEV
_BASE: Final = "/"


def interpreter_paths() -> tuple[str, ...]:
    """The interpreter's prefixes and the folders its libraries were installed in, outermost ones only."""
    found = {os.path.realpath(path) for path in (sys.base_prefix, sys.base_exec_prefix)}
    found |= {os.path.abspath(path) for path in (sys.prefix, sys.exec_prefix)}
    found |= {path for path in sys.path if path.endswith(("site-packages", "dist-packages")) and os.path.isdir(path)}
    wanted = sorted(path for path in found if path not in _NEVER_WHOLE)
    return tuple(path for path in wanted if not any(path.startswith(f"{other}/") for other in wanted))


def system_paths() -> tuple[str, ...]:
    """The system's library folders that are there, links as links."""
    return tuple(path for path in (*_LIBRARY_FOLDERS, "/etc/ld.so.cache") if os.path.lexists(path))


def closed_parents(paths: Iterable[str]) -> tuple[str, ...]:
    """The topmost folders above `paths` that another uid may not pass."""
    closed: set[str] = set()
    for path in paths:
        for parent in reversed(Path(path).parents):
            if not parent.stat().st_mode & stat.S_IXOTH:
                closed.add(str(parent))
                break
    return tuple(sorted(closed))


def make_private() -> None:
    """No mount made here is seen elsewhere."""
    mount("none", "/", flags=MS_REC | MS_PRIVATE)


def _bind(source: str, target: str, options: int = MS_RDONLY | _OPTIONS) -> None:
    """Bind a file or folder, read-only unless `options` say otherwise; what is mounted below it stays away."""
    if os.path.isdir(source):
        os.makedirs(target, 0o755, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), 0o755, exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    mount(source, target, flags=MS_BIND)
    is_noexec = MS_NOEXEC if os.statvfs(target).f_flag & os.ST_NOEXEC else 0  # a user namespace may not take it away
    mount("none", target, flags=MS_REMOUNT | MS_BIND | is_noexec | options)


def enter(binds: Iterable[str], submission: str, entry: str, workspace: str = "", data: str = "") -> None:
    """Build the in-memory root with `binds` at their own paths and the submission, and go there for good.

    `workspace` is the one folder that may be written, `data` one more to read.

    Step 5 of I-10: private mounts, root, pivot, old root detached, root read-only. `umask` must be open here.
    """
    make_private()
    mount("none", "/proc", "tmpfs", _OPTIONS | MS_NOEXEC, "size=1m,mode=755")  # over a folder every Linux has
    new = "/proc"
    for path in binds:
        if os.path.islink(path):
            os.makedirs(os.path.dirname(new + path), 0o755, exist_ok=True)
            os.symlink(os.readlink(path), new + path)
        else:
            _bind(path, new + path)
    _bind(submission, new + (SUBMISSION if os.path.isdir(submission) else entry))
    if workspace:
        _bind(workspace, new + WORKSPACE, _OPTIONS | MS_NOEXEC)
    if data:
        _bind(data, new + DATA, _OPTIONS | MS_NOEXEC | MS_RDONLY)
    os.mkdir(f"{new}/.old", 0o700)
    os.chdir(new)
    pivot_root(".", ".old")
    os.chdir(_BASE)
    umount("/.old")
    os.rmdir("/.old")
    mount("none", _BASE, flags=MS_REMOUNT | MS_BIND | MS_RDONLY | _OPTIONS | MS_NOEXEC)


def open_parents(closed: Iterable[str], paths: Iterable[str], writable: Iterable[str] = ()) -> None:
    """Cover each closed folder with an in-memory one, 0755, that holds of `paths` those below it, read-only (I-22)."""
    make_private()
    options = dict.fromkeys(paths, MS_RDONLY | _OPTIONS) | dict.fromkeys(writable, _OPTIONS | MS_NOEXEC)
    for parent in closed:
        inner = [path for path in options if path.startswith(f"{parent}/")]
        held = [(path, os.open(path, os.O_PATH | os.O_CLOEXEC)) for path in inner]
        mount("none", parent, "tmpfs", _OPTIONS, "size=1m,mode=755")
        for path, fd in held:
            _bind(f"/proc/self/fd/{fd}", path, options[path])
            os.close(fd)
        mount("none", parent, flags=MS_REMOUNT | MS_BIND | MS_RDONLY | _OPTIONS)
