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
from typing import Final, NoReturn, get_args

from blindcast.frames import PROTOCOL, Ready, SetupFailed, encode
from blindcast.libraries import libraries
from blindcast_isolation import linux, seccomp
from blindcast_isolation.lockdown import ANSWER, NotInForce, lock
from blindcast_isolation.order import Order, forget, order_of
from blindcast_isolation.supervisor import SETUP_FAILED, supervise

__all__ = ["serve"]

MAX_THREADS: Final = 2  # one is an allocator's (I-31)
_SHIM: Final = "blindcast_isolation.shim"  # it needs numpy: probes do not wait for it
_SCRIPT: Final = "blindcast_isolation.script"
_DESCRIPTORS: Final = 5  # with an order: output, request, answer, buffer, line


def serve(fd: int, *, is_lone: bool = False) -> None:
    """Import and serve in turn until the server goes away: a child waits for what comes first, never for the rest.

    A lone one starts one child and imports nothing more than that needs to start.
    """
    line = socket.socket(fileno=fd)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps supervisors
    sys.dont_write_bytecode = True
    for profile in get_args(seccomp.Profile):
        seccomp.program(profile)  # assembled here, once for all children
    libpython = linux.identity_of_python()
    first = [name for library in libraries() if library.is_first for name in library.preload]
    later = [name for library in libraries() if not library.is_first for name in library.preload]
    held: list[tuple[Order, list[int]]] = []
    for name in (*first, _SCRIPT, _SHIM, *later):
        while _is_asked(line, 0):
            if not _take(line, held):
                return
        _fork_ready(held, libpython, line)
        if is_lone and name in later:
            break  # its one child imports what it needs
        importlib.import_module(name)
    _settle()
    while True:
        _fork_ready(held, libpython, line)
        if not _take(line, held):
            return


def _settle() -> None:
    sys.modules["pyarrow"].enable_signal_handlers(False)  # its CSV reader would make a pipe for them
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
            _fork(order, fds, libpython, own, held)


def _outlive_children() -> None:
    """Wait until the last supervisor has ended: each dies with this process (I-32)."""
    with suppress(ChildProcessError):
        os.waitpid(-1, 0)


def _fork(order: Order, fds: Sequence[int], libpython: str, own: socket.socket, held: list[tuple[Order, list[int]]]) -> None:
    """Fork one child's supervisor; the orders that are still `held`, other runs' pipes and paths, do not go along."""
    if os.path.isdir("/proc/self"):  # not in a root without /proc: there this is the only fork, before any library computed
        threads = len(os.listdir("/proc/self/task"))
        if threads > MAX_THREADS:
            raise RuntimeError(f"the zygote has {threads} threads, {MAX_THREADS} are allowed")
    output, request, answer, buffer, line = fds
    zygote = os.getpid()

    def child() -> NoReturn:
        _child(order, output, request, answer, buffer, libpython)

    if os.fork() == 0:
        try:
            own.close()
            for fd in [fd for _, others in held for fd in others]:
                os.close(fd)
            held.clear()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            supervise(order, socket.socket(fileno=line), answer, (output, request, buffer), child, zygote)
        except BaseException:
            traceback.print_exc()  # seen with BLINDCAST_TRACE
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
        forget(order)
        sys.argv, sys.orig_argv = [order.entry], [sys.executable]  # the zygote's own say where the server is installed
        os.write(ANSWER, encode(Ready(PROTOCOL, sys.version, libpython, order.controls)))
        if order.task == "probe":
            os._exit(0)
        if order.task == "code":
            importlib.import_module(_SCRIPT).run(order)
        importlib.import_module(_SHIM).run(memory)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(1)
