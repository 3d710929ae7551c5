"""Read the truth on the server's heap and write into the server and the zygote: by `/proc/PID/mem`, across processes, and by ptrace.

Against it: seccomp, an own uid, a pid namespace, Landlock (I-10, I-14). Nothing is stopped by a signal but by ptrace's own attach, which
is let go at once; what is written goes to the one scratch address. An evaluated process that reads its judge's memory is the shortest way
to every answer, where both run as one uid.
"""

import ctypes
import os
import time

from toolbox import TARGETS, attempt, checked, libc, number, syscall

SERVER, ZYGOTE = TARGETS["server_pid"], TARGETS["zygote_pid"]
TRUTH, SCRATCH = TARGETS["truth_address"], TARGETS["scratch_address"]
WANTED = 64
PEEK, POKE, ATTACH, DETACH, SEIZE, INTERRUPT = 2, 5, 16, 17, 0x4206, 0x4207
WALL, NOHANG = 0x4000_0000, 1

libc.ptrace.restype = ctypes.c_long


class Iovec(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("size", ctypes.c_size_t))


def known(pid):
    if not pid:
        raise ProcessLookupError("there is no such process")
    return pid


def mem_python(pid, address):
    fd = os.open(f"/proc/{known(pid)}/mem", os.O_RDONLY)
    try:
        return os.pread(fd, WANTED, address)
    finally:
        os.close(fd)


def mem_libc(pid, address):
    fd, block = checked(libc.open(f"/proc/{known(pid)}/mem".encode(), os.O_RDONLY)), ctypes.create_string_buffer(WANTED)
    try:
        got = checked(libc.pread(fd, block, WANTED, ctypes.c_long(address)))
        return block.raw[:got]
    finally:
        libc.close(fd)


def mem_number(pid, address):
    fd = syscall(number(257, 56), -100, f"/proc/{known(pid)}/mem".encode(), os.O_RDONLY, 0)
    block = ctypes.create_string_buffer(WANTED)
    try:
        got = syscall(number(17, 67), fd, block, WANTED, address)
        return block.raw[:got]
    finally:
        libc.close(fd)


def mem_task(pid, address):
    fd = os.open(f"/proc/{known(pid)}/task/{pid}/mem", os.O_RDONLY)
    try:
        return os.pread(fd, WANTED, address)
    finally:
        os.close(fd)


def vectors(address, block):
    return Iovec(ctypes.addressof(block), len(block)), Iovec(address, len(block))


def readv_libc(pid, address):
    block = ctypes.create_string_buffer(WANTED)
    here, there = vectors(address, block)
    one, none = ctypes.c_ulong(1), ctypes.c_ulong(0)
    got = checked(libc.process_vm_readv(known(pid), ctypes.byref(here), one, ctypes.byref(there), one, none))
    return block.raw[:got]


def readv_number(pid, address):
    block = ctypes.create_string_buffer(WANTED)
    here, there = vectors(address, block)
    got = syscall(number(310, 270), known(pid), ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
    return block.raw[:got]


WRITERS = ("write_mem_python", "write_mem_libc", "write_mem_number", "writev_libc", "writev_number", "poke_libc", "poke_number")


def words(variant):
    """What is written: it names the variant, so that a look from outside tells who wrote."""
    return ctypes.create_string_buffer(f"blindcast-attack-{variant}".encode().ljust(63, b" "))


def place(variant):
    """Where: each has a place of its own."""
    return SCRATCH + 64 * WRITERS.index(variant)


def write_mem(variant, way):
    text, path = words(variant), f"/proc/{SERVER}/mem"
    if way == "python":
        fd = os.open(path, os.O_WRONLY)
    elif way == "libc":
        fd = checked(libc.open(path.encode(), os.O_RDWR))
    else:
        fd = syscall(number(257, 56), -100, path.encode(), os.O_RDWR, 0)
    try:
        if way == "number":
            return f"{syscall(number(18, 68), fd, text, len(text), place(variant))} bytes written"
        return f"{os.pwrite(fd, text.raw, place(variant))} bytes written"
    finally:
        os.close(fd)


def writev_libc(variant):
    here, there = vectors(place(variant), words(variant))
    one, none = ctypes.c_ulong(1), ctypes.c_ulong(0)
    return f"{checked(libc.process_vm_writev(SERVER, ctypes.byref(here), one, ctypes.byref(there), one, none))} bytes written"


def writev_number(variant):
    text = words(variant)
    here, there = vectors(place(variant), text)
    return f"{syscall(number(311, 271), SERVER, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)} bytes written"


def trace_libc(request, pid, address=0, data=0):
    ctypes.set_errno(0)
    done = libc.ptrace(ctypes.c_long(request), ctypes.c_long(pid), ctypes.c_void_p(address), ctypes.c_void_p(data))
    return done if done != -1 or not ctypes.get_errno() else checked(done)


def trace_number(request, pid, address=0, data=0):
    if request != PEEK:
        return syscall(number(101, 117), request, pid, address, data)
    word = ctypes.c_long()
    syscall(number(101, 117), request, pid, address, ctypes.byref(word))
    return word.value


def wait_stopped(pid):
    status, deadline = ctypes.c_int(), time.monotonic() + 0.8
    while libc.waitpid(pid, ctypes.byref(status), WALL | NOHANG) != pid and time.monotonic() < deadline:
        time.sleep(0.000_2)


def traced(trace, start, act, pid=SERVER):
    """Attach, wait until it stands, act, and let go at once."""
    trace(start, known(pid))
    try:
        if start == SEIZE:
            trace(INTERRUPT, pid)
        wait_stopped(pid)
        return act(trace, pid)
    finally:
        trace(DETACH, pid)


def peek(trace, pid):
    return b"".join((trace(PEEK, pid, TRUTH + i) & 0xFFFF_FFFF_FFFF_FFFF).to_bytes(8, "little") for i in range(0, WANTED, 8))


def poke(variant):
    def act(trace, pid):
        text = words(variant).raw
        for i in range(0, len(text), 8):
            trace(POKE, pid, place(variant) + i, int.from_bytes(text[i : i + 8], "little"))
        return f"{len(text)} bytes written"

    return act


def of_zygote(read):
    """The zygote's memory where the server's truth is, and where its own heap and stack are: a fork of the server would hold both."""
    pid = known(ZYGOTE)
    with os.fdopen(checked(libc.open(f"/proc/{pid}/maps".encode(), os.O_RDONLY))) as file:
        areas = [int(line.split("-")[0], 16) for line in file if line.rstrip().endswith(("[heap]", "[stack]"))]
    found = []
    for address in (TRUTH, *areas):
        try:
            found.append(read(pid, address))
        except OSError:
            found.append(b"-")
    return b" ".join(found)


def scan(pids):
    """The truth's address in every process that can be named."""
    found, refused = [], ProcessLookupError("no process was found")
    for pid in pids:
        for read in (mem_libc, readv_number):
            try:
                found.append(b"%d %s" % (pid, read(pid, TRUTH)))
            except OSError as error:
                refused = error
    if not found:
        raise refused
    return b" ".join(found)


def listed():
    """What `/proc` lists, past the interpreter."""
    fd = checked(libc.open(b"/proc", os.O_RDONLY | os.O_DIRECTORY))
    try:
        return [int(name) for name in os.listdir(fd) if name.isdigit() and int(name) != os.getpid()]
    finally:
        os.close(fd)


class Predictor:
    def predict(self, view):
        if view.anchor == 0:
            for read in (mem_python, mem_libc, mem_number, mem_task, readv_libc, readv_number):
                attempt(f"{read.__name__}_server", read, SERVER, TRUTH)
                attempt(f"{read.__name__}_zygote", of_zygote, read)
            for way in ("python", "libc", "number"):
                attempt(f"write_mem_{way}", write_mem, f"write_mem_{way}", way)
            for write in (writev_libc, writev_number):
                attempt(write.__name__, write, write.__name__)
            for name, trace in (("libc", trace_libc), ("number", trace_number)):
                attempt(f"attach_{name}", traced, trace, ATTACH, peek)
                attempt(f"seize_{name}", traced, trace, SEIZE, peek)
                attempt(f"poke_{name}", traced, trace, SEIZE, poke(f"poke_{name}"))
            attempt("scan_listed", lambda: scan(listed()))
            attempt("scan_numbers", lambda: scan(pid for pid in range(1, 2_000) if pid != os.getpid()))
        return 0.5
