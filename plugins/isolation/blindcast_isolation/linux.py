"""The kernel's calls that Python 3.11 does not offer, prepared before any fork. Each raises OSError."""

from __future__ import annotations

import ctypes
import os
from typing import Final

__all__ = [
    "CLONE",
    "become_reaper",
    "current_cpu",
    "die_with_parent",
    "drop_bounding_set",
    "drop_capabilities",
    "forbid_dumps",
    "forbid_new_privileges",
    "identity_of",
    "identity_of_python",
    "is_dumpable",
    "is_without_new_privileges",
    "lingering_segment",
    "make_writable",
    "map_read_only",
    "mkdir_past_hooks",
    "mount",
    "open_past_hooks",
    "pivot_root",
    "read_only_view",
    "sees_segment",
    "umount",
    "unshare",
]

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
_libc.mount.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p)
_view_of = ctypes.pythonapi.PyMemoryView_FromMemory
_view_of.restype = ctypes.py_object
_view_of.argtypes = (ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int)

CLONE: Final = {
    "mountns": 0x0002_0000,
    "utsns": 0x0400_0000,
    "ipcns": 0x0800_0000,
    "userns": 0x1000_0000,
    "pidns": 0x2000_0000,
    "netns": 0x4000_0000,
}
MS_RDONLY: Final = 1
MS_NOSUID: Final = 2
MS_NODEV: Final = 4
MS_NOEXEC: Final = 8
MS_REMOUNT: Final = 32
MS_BIND: Final = 4_096
MS_REC: Final = 16_384
MS_PRIVATE: Final = 1 << 18
MNT_DETACH: Final = 2
_PR_SET_PDEATHSIG, _PR_GET_DUMPABLE, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP = 1, 3, 4, 24
_PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS, _PR_GET_NO_NEW_PRIVS = 36, 38, 39
_CAPABILITY_VERSION_3: Final = 0x2008_0522
_SYS_PIVOT_ROOT: Final = {"x86_64": 155, "aarch64": 41}
_SIGKILL: Final = 9


def _check(result: int) -> int:
    if result == -1:
        errno = ctypes.get_errno()
        raise OSError(errno, os.strerror(errno))
    return result


def _prctl(option: int, value: int = 0) -> int:
    return _check(_libc.prctl(option, ctypes.c_ulong(value), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0)))


def unshare(namespaces: int) -> None:
    """Leave the given kinds of namespace (CLONE)."""
    _check(_libc.unshare(namespaces))


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    """Mount `source` at `target`."""
    _check(_libc.mount(os.fsencode(source), os.fsencode(target), kind.encode() or None, flags, data.encode() or None))


def umount(target: str) -> None:
    """Detach what is mounted at `target`."""
    _check(_libc.umount2(os.fsencode(target), MNT_DETACH))


def pivot_root(new: str, old: str) -> None:
    """Make `new` the root and hang the old one at `old`."""
    _check(_libc.syscall(_SYS_PIVOT_ROOT[os.uname().machine], os.fsencode(new), os.fsencode(old)))


def forbid_new_privileges() -> None:
    """No exec gains privileges from here on."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def is_without_new_privileges() -> bool:
    """Whether no exec can gain privileges."""
    return _prctl(_PR_GET_NO_NEW_PRIVS) == 1


def forbid_dumps() -> None:
    """No core, and no other process of the same uid may look in."""
    _prctl(_PR_SET_DUMPABLE, 0)


def is_dumpable() -> bool:
    """Whether the process may be dumped and looked into."""
    return _prctl(_PR_GET_DUMPABLE) != 0


def die_with_parent() -> None:
    """Be killed when the parent thread ends. A change of uid clears it."""
    _prctl(_PR_SET_PDEATHSIG, _SIGKILL)


def become_reaper() -> None:
    """Orphans of this process's descendants become its children."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def drop_bounding_set() -> None:
    """Take every capability out of the bounding set."""
    for capability in range(64):
        try:
            _prctl(_PR_CAPBSET_DROP, capability)
        except OSError:
            if capability == 0:
                raise
            return  # the kernel's last one is behind us


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


def drop_capabilities() -> None:
    """Empty the effective, permitted and inheritable sets."""
    header, empty = _Header(_CAPABILITY_VERSION_3, 0), (ctypes.c_uint32 * 6)()
    _check(_libc.capset(ctypes.byref(header), ctypes.byref(empty)))


def map_read_only(fd: int, size: int) -> int:
    """The address of a shared read-only mapping that holds no descriptor: `mmap.mmap` keeps a duplicate before Python 3.13 (I-42)."""
    address = _libc.mmap(None, size, 1, 1, fd, 0)  # PROT_READ, MAP_SHARED
    if address == ctypes.c_void_p(-1).value:
        _check(-1)
    return int(address)


def read_only_view(address: int, size: int) -> memoryview:
    """Memory that no owner makes writable: there is no object behind it."""
    view: memoryview = _view_of(address, size, 0x100)  # PyBUF_READ
    return view


def make_writable(address: int, size: int) -> None:
    """Ask for write access to a mapping."""
    _check(_libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), 3))


def open_past_hooks(path: str) -> None:
    """Open a file for reading without an audit event, so that what refuses is not the hook."""
    os.close(_check(_libc.open(os.fsencode(path), os.O_RDONLY | os.O_CLOEXEC)))


def mkdir_past_hooks(path: str) -> None:
    """Make a folder without an audit event."""
    _check(_libc.mkdir(os.fsencode(path), 0o700))


def lingering_segment() -> int:
    """The id of a SysV segment that lives until this process ends, whatever it does."""
    _libc.shmat.restype = ctypes.c_void_p
    segment = _check(_libc.shmget(0, ctypes.c_size_t(4_096), 0o1666))  # IPC_PRIVATE, IPC_CREAT
    attached = _libc.shmat(segment, None, 0)
    _check(_libc.shmctl(segment, 0, None))  # IPC_RMID: gone with the last mapping
    if attached == ctypes.c_void_p(-1).value:
        raise OSError("a SysV segment could not be attached")
    return segment


def sees_segment(segment: int) -> bool:
    """Whether this process finds the SysV segment of that id."""
    room = ctypes.create_string_buffer(512)
    return bool(_libc.shmctl(segment, 2, room) != -1)  # IPC_STAT


class _Place(ctypes.Structure):
    _fields_ = (("path", ctypes.c_char_p), ("base", ctypes.c_void_p), ("name", ctypes.c_char_p), ("address", ctypes.c_void_p))


def identity_of_python() -> str:
    """Path and file identity of the mapped libpython; `static` where the interpreter has none."""
    place, function = _Place(), ctypes.cast(ctypes.pythonapi.Py_GetVersion, ctypes.c_void_p)
    path = os.fsdecode(place.path) if _libc.dladdr(function, ctypes.byref(place)) else ""
    if "libpython" not in path:
        return "static"
    status = os.stat(path)
    return f"{path} {status.st_dev}:{status.st_ino}"


def identity_of(pid: int) -> int:
    """The inode of a process's pidfd."""
    fd = os.pidfd_open(pid)
    try:
        return os.fstat(fd).st_ino
    finally:
        os.close(fd)


def current_cpu() -> int:
    """The CPU this thread runs on."""
    return int(_check(_libc.sched_getcpu()))
