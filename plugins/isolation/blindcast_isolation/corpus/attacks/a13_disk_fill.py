"""Writes until it fails, everywhere a byte may go (A-13): half a MiB a file, and 64 MiB in all, where nothing stops it.

Files are made by libc, past the hook, for it is the limit that is tried. Against it: a file size limit of zero, no writable path.
"""

import ctypes
import mmap
import os
import resource

import numpy as np
import pandas as pd
import pyarrow as pa
from toolbox import HERE, TARGETS, attempt, checked, libc, number, syscall

AT_FDCWD = -100
O_TMPFILE = os.O_DIRECTORY | 0x400000
BOUND = 64 << 20  # bytes
CHUNK = 1 << 18
ENOUGH = 1 << 17  # bytes that count as loot
BLOCK = bytes(range(256)) * (CHUNK // 256)
FOLDERS = (*TARGETS["writable"], HERE, os.path.dirname(HERE), os.environ.get("HOME", "/"), os.getcwd(), "/workspace", "/data", "/run/user")
LARGE = pa.lib.__file__
spent = 0  # bytes written by all variants together


class Spent(Exception):
    """The bound of this attack is reached: it has shown what it can."""


def path_in(folder, variant):
    return os.path.join(folder, f"blindcast-attack-a13-{variant}")


def spend(size):
    """Take from what this attack may write in all. Raises Spent."""
    global spent
    if spent + size > BOUND:
        raise Spent(f"{spent >> 20} MiB were written before")
    spent += size


def filled(fd, write=os.write):
    """Write blocks until one fails, two at most; the bytes written. Raises the error of the first."""
    done = 0
    while done < 2 * CHUNK:
        spend(CHUNK)
        try:
            count = write(fd, BLOCK)
        except OSError:
            if not done:
                raise
            break
        if not count:
            break
        done += count
    return done


def everywhere(variant, act):
    """Do `act(path)`, which gives bytes written, in every folder. Raises the first error where none took any.

    An empty file is taken away: a name costs nothing. Others stay to be found.
    """
    written, first = 0, None
    for folder in FOLDERS:
        path = path_in(folder, variant)
        try:
            written += act(path)
        except Exception as error:
            first = first or error
        finally:
            if os.path.lexists(path) and not os.stat(path).st_blocks:
                libc.unlink(os.fsencode(path))
    if written >= ENOUGH:
        return loot(written)
    raise first or OSError("no folder took enough")


def created(path):
    """A new file's descriptor, past the hook."""
    return checked(libc.open(os.fsencode(path), os.O_RDWR | os.O_CREAT, 0o600))


def closing(fd, act):
    try:
        return act(fd)
    finally:
        os.close(fd)


def by_write(path):
    return closing(created(path), filled)


def by_stream(path):
    """Python's own buffered writer."""
    with os.fdopen(created(path), "wb") as file:
        return filled(file, lambda file, data: file.write(data) and file.flush() or len(data))


def by_libc(path):
    return closing(created(path), lambda fd: filled(fd, lambda fd, data: checked(libc.write(fd, data, len(data)))))


def by_raw(path):
    fd = syscall(number(257, 56), AT_FDCWD, os.fsencode(path), os.O_RDWR | os.O_CREAT, 0o600)
    return closing(fd, lambda fd: filled(fd, lambda fd, data: syscall(number(1, 64), fd, data, len(data))))


def by_pwrite(path):
    """Far behind the end: a limit on size must hold for places, too."""
    return closing(created(path), lambda fd: filled(fd, lambda fd, data: os.pwrite(fd, data, 1 << 30)))


def by_writev(path):
    return closing(created(path), lambda fd: filled(fd, lambda fd, data: os.writev(fd, [data[: CHUNK // 2], data[CHUNK // 2 :]])))


def by_append(path):
    os.close(created(path))
    fd = checked(libc.open(os.fsencode(path), os.O_WRONLY | os.O_APPEND))
    return closing(fd, filled)


def by_fopen(path):
    spend(CHUNK)
    libc.fopen.restype = ctypes.c_void_p
    file = ctypes.c_void_p(checked(libc.fopen(os.fsencode(path), b"w")))
    libc.fwrite(BLOCK, 1, CHUNK, file)
    failed = libc.fflush(file)
    libc.fclose(file)
    return 0 if failed else checked(os.stat(path).st_size)


def by_truncate(path):
    """A size without blocks, then blocks through a mapping: no write call is made."""

    def act(fd):
        spend(CHUNK)
        checked(libc.ftruncate(fd, ctypes.c_long(CHUNK)))
        memory = mmap.mmap(fd, CHUNK)
        memory[:] = BLOCK
        memory.flush()
        memory.close()
        return CHUNK

    return closing(created(path), act)


def by_fallocate(path):
    def act(fd):
        spend(CHUNK)
        syscall(number(285, 47), fd, 0, 0, CHUNK)
        return os.fstat(fd).st_blocks * 512

    return closing(created(path), act)


def by_tmpfile(path):
    fd = checked(libc.open(os.fsencode(os.path.dirname(path)), O_TMPFILE | os.O_RDWR, 0o600))
    return closing(fd, filled)


def by_sendfile(path):
    def act(fd):
        with open(LARGE, "rb") as file:
            return filled(fd, lambda fd, data: os.sendfile(fd, file.fileno(), 0, CHUNK))

    return closing(created(path), act)


def by_splice(path):
    def act(fd):
        reading, writing = os.pipe()
        try:

            def once(fd, data):
                os.write(writing, data[:65_536])
                return os.splice(reading, fd, 65_536)

            return filled(fd, once)
        finally:
            os.close(reading)
            os.close(writing)

    return closing(created(path), act)


def by_numpy(path):
    """numpy writes by a FILE of libc on a descriptor of its own."""

    def act(fd):
        spend(CHUNK)
        with os.fdopen(os.dup(fd), "wb") as file:
            np.zeros(CHUNK // 8).tofile(file)
        return os.fstat(fd).st_size

    return closing(created(path), act)


def by_arrow(path):
    spend(CHUNK)
    with pa.OSFile(path, "wb") as file:
        file.write(BLOCK)
    return os.stat(path).st_size


def by_arrow_map(path):
    spend(CHUNK)
    with pa.create_memory_map(path, CHUNK) as file:
        file.write(BLOCK)
    return os.stat(path).st_blocks * 512


def by_pandas(path):
    spend(CHUNK)
    with os.fdopen(created(path), "w") as file:
        pd.DataFrame({"a": np.arange(20_000.0)}).to_csv(file)
    return os.stat(path).st_size


def loot(written):
    return f"{written >> 10} KiB were written" if written >= ENOUGH else None


def memfd():
    return loot(closing(os.memfd_create("blindcast-attack-a13"), filled))


def memfd_raw():
    fd = syscall(number(319, 279), b"blindcast-attack-a13", 0)
    return loot(closing(fd, lambda fd: filled(fd, lambda fd, data: syscall(number(1, 64), fd, data, len(data)))))


def memfd_truncate():
    def act(fd):
        spend(CHUNK)
        checked(libc.ftruncate(fd, ctypes.c_long(CHUNK)))
        memory = mmap.mmap(fd, CHUNK)
        memory[:] = BLOCK
        memory.close()
        return loot(os.fstat(fd).st_blocks * 512)

    return closing(os.memfd_create("blindcast-attack-a13"), act)


def shm_open():
    name = b"/blindcast-attack-a13-shm_open"
    fd = checked(libc.shm_open(name, os.O_CREAT | os.O_RDWR, 0o600))
    try:
        return loot(closing(fd, filled))
    finally:
        libc.shm_unlink(name)


def limit_raised():
    """The limit first, then as before."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    return everywhere("limit_raised", by_libc)


def limit_raised_raw():
    syscall(number(302, 261), 0, 1, (ctypes.c_uint64 * 2)(1 << 30, 1 << 30), 0)
    return everywhere("limit_raised_raw", by_libc)


def into_own():
    """Onto the end of its own source."""
    fd = checked(libc.open(os.fsencode(os.path.join(HERE, "toolbox.py")), os.O_WRONLY | os.O_APPEND))
    size = os.fstat(fd).st_size
    try:
        return loot(filled(fd))
    finally:
        libc.ftruncate(fd, ctypes.c_long(size))
        os.close(fd)


PLACES = {
    "write": by_write,
    "stream": by_stream,
    "libc": by_libc,
    "raw": by_raw,
    "pwrite": by_pwrite,
    "writev": by_writev,
    "append": by_append,
    "fopen": by_fopen,
    "truncate": by_truncate,
    "fallocate": by_fallocate,
    "tmpfile": by_tmpfile,
    "sendfile": by_sendfile,
    "splice": by_splice,
    "numpy": by_numpy,
    "arrow": by_arrow,
    "arrow_map": by_arrow_map,
    "pandas": by_pandas,
}
ACTS = {
    **{name: lambda name=name, act=act: everywhere(name, act) for name, act in PLACES.items()},
    "memfd": memfd,
    "memfd_raw": memfd_raw,
    "memfd_truncate": memfd_truncate,
    "shm_open": shm_open,
    "limit_raised": limit_raised,
    "limit_raised_raw": limit_raised_raw,
    "into_own": into_own,
}


class Predictor:
    def predict(self, view):
        if view.anchor == 0:
            for name, act in ACTS.items():
                attempt(name, act)
        return 0.5
