"""Takes memory until it fails: at once, bit by bit, by a join, by touching what was promised, and past the limit itself.

Against it: the limit of the address space, and the cgroup's where there is one. A MemoryError is a refused answer and the
run goes on. A variant holds at most half a gibibyte more than its limit, and lets it go again.
"""

import ctypes
import mmap
import resource

import numpy as np
import pandas as pd
from toolbox import TARGETS, attempt, checked, libc, number, report, syscall

MIB = 1 << 20
LIMIT = int(TARGETS.get("memory_mb", 4096)) * MIB
MORE = LIMIT + 512 * MIB
STEP = 32 * MIB
PAGE = mmap.PAGESIZE


def told(taken):
    return f"held {taken // MIB} MiB of {LIMIT // MIB}"


def array():
    held = np.zeros(9 << 30, dtype=np.uint8)
    held[-1] = 1
    return told(held.nbytes)


def growing_list():
    held = []
    while len(held) * STEP < MORE:
        held.append(b"x" * STEP)
    return told(len(held) * STEP)


def objects():
    held = [[]]
    while len(held) * 8 < MORE:
        held += held
    return told(len(held) * 8)


def cross_join():
    rows = int((MORE / 16) ** 0.5)
    frame = pd.DataFrame({"a": np.arange(rows)})
    return told(len(frame.merge(frame, how="cross")) * 16)


def mapped(flags):
    """Map piece after piece by raw number and touch every page of each."""
    libc.syscall.restype = ctypes.c_long
    pieces, taken = [], 0
    try:
        while taken < MORE:
            address = syscall(number(9, 222), 0, STEP, 3, flags, -1, 0)
            pieces.append(address)
            ctypes.memset(address, 1, STEP)
            taken += STEP
        return told(taken)
    finally:
        for address in pieces:
            syscall(number(11, 215), address, STEP)


def overcommit():
    """One promise of the whole address space, of which only the first half gibibyte is touched."""
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    address = checked(libc.mmap(None, MORE, 3, 0x4022, -1, 0))  # private, anonymous, no reserve
    try:
        for start in range(0, 512 * MIB, PAGE):
            ctypes.memset(address + start, 1, 1)
        return told(MORE)
    finally:
        libc.munmap(ctypes.c_void_p(address), ctypes.c_size_t(MORE))


def heap_break():
    """Move the heap's end by raw `brk`, which leaves the old end where it was when refused."""
    libc.syscall.restype = ctypes.c_long
    end = libc.syscall(ctypes.c_long(number(12, 214)), ctypes.c_long(0))
    reached = libc.syscall(ctypes.c_long(number(12, 214)), ctypes.c_long(end + MORE))
    if reached <= end:
        raise MemoryError("brk stayed where it was")
    libc.syscall(ctypes.c_long(number(12, 214)), ctypes.c_long(end))
    return told(reached - end)


def raise_limit():
    """Lift the limit by Python, by libc and by raw number, then take what it forbade."""
    words, none = [], (ctypes.c_ulong * 2)(2**64 - 1, 2**64 - 1)
    for lift in (
        lambda: resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)),
        lambda: checked(libc.setrlimit(resource.RLIMIT_AS, none)),
        lambda: syscall(number(302, 261), 0, resource.RLIMIT_AS, none, 0),
    ):
        try:
            lift()
        except Exception as error:
            words.append(str(error))
        else:
            return f"lifted, then {array()}"
    raise PermissionError("; ".join(words))


class Predictor:
    windows = 0

    def predict(self, view):
        self.windows += view.anchor == 0
        if self.windows > 1:
            return 0.5
        if view.anchor == 0:
            attempt("array", array)
            attempt("growing_list", growing_list)
            attempt("objects", objects)
            attempt("cross_join", cross_join)
            attempt("mapped", mapped, 0x22)
            attempt("mapped_shared", mapped, 0x21)
            attempt("overcommit", overcommit)
            attempt("heap_break", heap_break)
            attempt("raise_limit", raise_limit)
        if view.anchor == 1:
            np.zeros(9 << 30, dtype=np.uint8)[-1] = 1  # unhandled: an answer `exception`, and the next anchor is asked
            report("unhandled", "got", told(9 << 30))
        if view.anchor == 2:
            report("unhandled", "raised", "MemoryError at the anchor before")
        if view.anchor == 3:
            report("answer", "nothing")
            return np.broadcast_to(np.float64(0.5), 1 << 40)  # eight bytes that say they are 8 TiB
        return 0.5
