"""Landlock: what an unprivileged process may still reach of files, TCP and its neighbours (I-10 step 9, I-21, I-87).

These functions only set up; whether a control is in force is for a witness to say (I-01).
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
from collections.abc import Sequence
from typing import Final

__all__ = ["NET_VERSION", "SCOPE_VERSION", "restrict", "version"]

NET_VERSION: Final = 4  # of the kernel's interface, from which TCP can be refused
SCOPE_VERSION: Final = 6  # and from which signals and abstract sockets can

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _REMOVE_DIR, _REMOVE_FILE = (1 << bit for bit in range(6))
_MAKE_DIR, _MAKE_REG, _REFER, _TRUNCATE, _IOCTL_DEV = 1 << 7, 1 << 8, 1 << 13, 1 << 14, 1 << 15
_FILE_BITS: Final = {1: 13, 2: 14, 3: 15, 5: 16}  # interface version -> how many access bits it knows, from the lowest
_FOR_FILES: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV  # what a rule on a file may give
_READ: Final = _EXECUTE | _READ_FILE | _READ_DIR
# Neither devices, sockets, pipes nor links are made in a workspace (I-17), and nothing in it is executed (I-86).
_WRITE: Final = _READ_FILE | _READ_DIR | _WRITE_FILE | _TRUNCATE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _REFER
_ALL_TCP: Final = 0b11  # bind, connect
_ALL_SCOPES: Final = 0b11  # abstract sockets, signals

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # the same numbers on every architecture
_ASK_VERSION: Final = 1
_BENEATH: Final = 1
_RULESET: Final = struct.Struct("=QQQ")  # handled file bits, handled network bits, scopes; older kernels want their ends zero
_RULE: Final = struct.Struct("=Qi")  # allowed bits, descriptor

_syscall = ctypes.CDLL(None, use_errno=True).syscall


def version() -> int:
    """The version of the kernel's Landlock interface; 0: there is none."""
    found = _syscall(ctypes.c_long(_CREATE), None, ctypes.c_size_t(0), ctypes.c_uint(_ASK_VERSION))
    return max(int(found), 0)


def restrict(readable: Sequence[str] | None, writable: Sequence[str] = (), *, refuses_net: bool, scopes: bool) -> None:
    """Give up all files but those at or beneath the paths, for good, and with the flags TCP, foreign signals and abstract sockets.

    Every file right that the running kernel knows is given up. `readable` may be read, listed and executed, `writable` read,
    written, made, moved and removed: regular files and folders. `readable` None leaves files alone, but that they are moved
    beneath `writable` only. It binds the calling
    thread and what that starts from here on, so it is called while there is one. No-new-privs must stand (or CAP_SYS_ADMIN).

    Raises OSError: ENOTSUP where the kernel lacks what is asked for, else as the kernel or a path says it.
    """
    known = version()
    needed = SCOPE_VERSION if scopes else NET_VERSION if refuses_net else 1
    if known < needed:
        raise OSError(errno.ENOTSUP, f"landlock: version {needed} is needed and the kernel has {known or 'none'}")
    handled = _handled(known) & (_REFER if readable is None else -1)  # moving is refused by every layer that does not give it
    head = _RULESET.pack(handled, _ALL_TCP if refuses_net else 0, _ALL_SCOPES if scopes else 0)
    ruleset = _call("create the ruleset", _CREATE, head, ctypes.c_size_t(len(head)), ctypes.c_uint(0))
    try:
        for path in readable or ():
            _give(ruleset, path, _READ & handled)
        for path in writable:
            _give(ruleset, path, _WRITE & handled)
        _call("restrict this thread", _RESTRICT, ctypes.c_int(ruleset), ctypes.c_uint(0))
    finally:
        os.close(ruleset)


def _handled(known: int) -> int:
    return (1 << max(bits for since, bits in _FILE_BITS.items() if since <= known)) - 1


def _give(ruleset: int, path: str, rights: int) -> None:
    """Add a rule for `path`; its link, if it is one, is followed."""
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        given = rights if stat.S_ISDIR(os.fstat(fd).st_mode) else rights & _FOR_FILES
        rule = _RULE.pack(given, fd)
        _call(f"give {path}", _ADD, ctypes.c_int(ruleset), ctypes.c_int(_BENEATH), rule, ctypes.c_uint(0))
    finally:
        os.close(fd)


def _call(what: str, number: int, *arguments: object) -> int:
    result = _syscall(ctypes.c_long(number), *arguments)
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, f"landlock: could not {what}: {os.strerror(code)}")
    return int(result)
