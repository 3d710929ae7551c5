"""The way into a throw-away namespace, and what is private in there: folders, loopback, names (I-92)."""

from __future__ import annotations

import os
import socket
import struct
import sys
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final, NoReturn

from blindcast_isolation import linux, root

__all__ = ["cover", "enter", "give_up", "raise_loopback"]

NEWUSER: Final = 0x1000_0000
FOLDERS: Final = ("/tmp", "/var/tmp", "/dev/shm", "/run")
_IFF_UP, _SIOCSIFFLAGS, _SIOCGIFFLAGS = 1, 0x8914, 0x8913
_ROOM: Final = "size=256m,mode=1777"


def enter(inside: Callable[[], int]) -> int:
    """Run `inside` as the second process of new namespaces, a user namespace first when not root; returns its status.

    Raises OSError where there is none to be had; nothing has been changed outside then.
    """
    uid, gid = os.geteuid(), os.getegid()
    if uid != 0:
        linux.unshare(NEWUSER)
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    for kind in ("mountns", "netns", "ipcns", "utsns", "pidns"):
        linux.unshare(linux.CLONE[kind])
    init = os.fork()
    if init == 0:
        _init(inside)
    _, status = os.waitpid(init, 0)
    return os.waitstatus_to_exitcode(status)


def _init(inside: Callable[[], int]) -> NoReturn:
    """The first process: it makes the mounts, starts the second, and reaps until that has ended; then all is gone."""
    code = 1
    try:
        linux.die_with_parent()
        root.make_private()
        linux.mount("proc", "/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
        raise_loopback()
        second = os.fork()
        if second == 0:
            code = inside()
        else:
            code = _reap(second)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _reap(second: int) -> int:
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == second:
            return os.waitstatus_to_exitcode(status) & 0xFF


def raise_loopback() -> None:
    """Bring `lo` up in this network namespace."""
    import fcntl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        fcntl.ioctl(line, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _IFF_UP))


def cover(kept: Iterable[str]) -> None:
    """Lay an empty 1777 folder of memory over each shared one, with the `kept` paths below it bound back; the rest is read-only."""
    paths = list(dict.fromkeys(path for path in kept if os.path.exists(path)))
    for folder in FOLDERS:
        if not os.path.isdir(folder) or os.path.islink(folder):
            continue
        inner = [path for path in paths if path.startswith(f"{folder}/")]
        held = [(path, os.open(path, os.O_PATH | os.O_CLOEXEC)) for path in inner]
        linux.mount("none", folder, "tmpfs", linux.MS_NODEV, _ROOM)
        for path, fd in held:
            os.makedirs(path, 0o755, exist_ok=True)
            linux.mount(f"/proc/self/fd/{fd}", path, flags=linux.MS_BIND)
            os.close(fd)
    with suppress(OSError):  # where it is locked its owner is another uid anyway
        linux.mount("none", "/", flags=linux.MS_REMOUNT | linux.MS_BIND | linux.MS_RDONLY)


def give_up(uid: int) -> None:
    """Become `uid` for good, with no capability left."""
    linux.drop_bounding_set()
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
