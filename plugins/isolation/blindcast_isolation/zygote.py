"""The zygote: a process that has imported the libraries and forks a child when asked (isolation.md section 5).

It is exec'd before any truth is loaded, computes nothing, and executes no byte of a submission.
"""

from __future__ import annotations

import gc
import importlib
import os
import select
import signal
import socket
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NoReturn

from blindcast.frames import PROTOCOL, Ready, SetupFailed, encode
from blindcast_isolation.libraries import libraries
from blindcast_isolation.lockdown import ANSWER, NotInForce, lock
from blindcast_isolation.order import Order, order_of
from blindcast_isolation.supervisor import SETUP_FAILED, supervise
from blindcast_isolation.witness import testify

__all__ = ["serve"]

MAX_THREADS: Final = 2  # one is an allocator's (I-31)
_SHIM: Final = "blindcast_isolation.shim"  # it needs numpy: probes do not wait for it
_DESCRIPTORS: Final = 5  # with an order: output, request, answer, buffer, line


def serve(fd: int) -> None:
    """Import and serve in turn until the server goes away: a child waits for what comes first, never for the rest."""
    line = socket.socket(fileno=fd)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps supervisors
    sys.dont_write_bytecode = True
    libpython = _libpython()
    first = [name for library in libraries() if library.is_first for name in library.preload]
    later = [name for library in libraries() if not library.is_first for name in library.preload]
    held: list[tuple[Order, list[int]]] = []
    for name in (*first, _SHIM, *later):
        while _is_asked(line, 0):
            if not _take(line, held):
                return
        _fork_ready(held, libpython, line)
        importlib.import_module(name)
    _settle()
    while True:
        _fork_ready(held, libpython, line)
        if not _take(line, held):
            return


def _settle() -> None:
    gc.collect()
    gc.freeze()


def _is_asked(line: socket.socket, wait_ms: int) -> bool:
    poll = select.poll()
    poll.register(line, select.POLLIN)
    return bool(poll.poll(wait_ms))


def _take(line: socket.socket, held: list[tuple[Order, list[int]]]) -> bool:
    """Take one order; False at the end of the line, when the children are waited for."""
    data, fds, _, _ = socket.recv_fds(line, 1 << 16, _DESCRIPTORS)
    if not data:
        _outlive_children()
        return False
    held.append((order_of(data), fds))
    return True


def _fork_ready(held: list[tuple[Order, list[int]]], libpython: str, own: socket.socket) -> None:
    """Fork every order that can be served by now: a probe at once, a predictor's child when the shim is there."""
    for item in list(held):
        order, fds = item
        if order.task == "probe" or _SHIM in sys.modules:
            held.remove(item)
            _fork(order, fds, libpython, own)


def _outlive_children() -> None:
    """Wait until the last supervisor has ended: each dies with this process (I-32)."""
    with suppress(ChildProcessError):
        os.waitpid(-1, 0)


def _fork(order: Order, fds: Sequence[int], libpython: str, own: socket.socket) -> None:
    threads = len(os.listdir("/proc/self/task"))
    if threads > MAX_THREADS:
        raise RuntimeError(f"the zygote has {threads} threads, {MAX_THREADS} are allowed")
    output, request, answer, buffer, line = fds

    def child() -> NoReturn:
        _child(order, output, request, answer, buffer, libpython)

    if os.fork() == 0:
        try:
            own.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            supervise(order, socket.socket(fileno=line), answer, (output, request, buffer), child)
        finally:
            os._exit(1)
    for fd in fds:
        os.close(fd)


def _child(order: Order, output: int, request: int, answer: int, buffer: int, libpython: str) -> NoReturn:
    try:
        try:
            memory = lock(order, output, request, answer, buffer)
        except NotInForce as failure:
            place = answer if failure.control == "fds" else ANSWER
            os.write(place, encode(SetupFailed(failure.control, failure.errno, failure.text[:2_000])))
            os._exit(SETUP_FAILED)
        os.write(ANSWER, encode(Ready(PROTOCOL, sys.version, libpython, order.controls)))
        if order.task == "probe":
            testify(order)
        importlib.import_module(_SHIM).run(memory)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(1)


def _libpython() -> str:
    """The mapped libpython's path and file identity; `static` where the interpreter has none."""
    with open("/proc/self/maps") as maps:
        for row in maps:
            path = row.rstrip("\n").partition("/")[2]
            if "libpython" in path:
                status = os.stat(f"/{path}")
                return f"/{path} {status.st_dev}:{status.st_ino}"
    return "static"
