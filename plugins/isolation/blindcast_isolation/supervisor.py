"""The process between the zygote and a child: it waits, kills when told, and says how the child ended (I-10, I-70).

It dies with the zygote, and a closed line to the server is an order to kill (I-71).
"""

from __future__ import annotations

import os
import select
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NoReturn

import msgspec

from blindcast.frames import SetupFailed, encode
from blindcast_isolation import linux
from blindcast_isolation.order import Ending, Order, Started

__all__ = ["supervise"]

SETUP_FAILED: Final = 70  # exit status of a child that could not be locked down
STUCK_S: Final = 5.0


def supervise(order: Order, line: socket.socket, answer: int, others: tuple[int, ...], child: Callable[[], NoReturn]) -> NoReturn:
    """Fork a child that runs `child`, watch over it, and exit when its whole tree is gone."""
    linux.die_with_parent()
    linux.become_reaper()
    try:
        if "pidns" in order.controls:
            linux.unshare(linux.CLONE["pidns"])
        pid = os.fork()
    except OSError as error:
        os.write(answer, encode(SetupFailed("pidns", error.errno or 0, str(error))))
        os._exit(SETUP_FAILED)
    if pid == 0:
        line.close()
        child()
    for fd in (*others, answer):
        os.close(fd)
    pidfd = os.pidfd_open(pid)
    try:
        socket.send_fds(line, [msgspec.msgpack.encode(Started(pid))], [pidfd])
        _watch(line, pidfd)
    finally:
        _end(order, pid, pidfd, line)
    os._exit(0)


def _watch(line: socket.socket, pidfd: int) -> None:
    """Return when the child has ended, or is to be killed: on any message, and at the end of the line."""
    poll = select.poll()
    poll.register(line, select.POLLIN)
    poll.register(pidfd, select.POLLIN)
    poll.poll()


def _end(order: Order, pid: int, pidfd: int, line: socket.socket) -> None:
    """Leave nothing of the child's tree, then say how it ended."""
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    _, status, usage = os.wait4(pid, 0)
    deadline = time.monotonic() + STUCK_S
    while _has_orphans() and time.monotonic() < deadline:
        if order.kill == "uid" and order.uid:
            _kill_uid(order.uid)
        else:
            _kill_children()
    ending = Ending(status, usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
    with suppress(OSError):
        line.send(msgspec.msgpack.encode(ending))


def _has_orphans() -> bool:
    """Whether any descendant lives that the child left behind; the dead among them are reaped."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _kill_children() -> None:
    """Kill every orphan that came to this process; their own children come next time."""
    me = os.getpid()
    with open(f"/proc/{me}/task/{me}/children") as file:
        for pid in file.read().split():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(int(pid), signal.SIGKILL)
    time.sleep(0.001)


def _kill_uid(uid: int) -> None:
    """A helper of the slot's uid kills everything of that uid but itself; none of it can fork away from this (I-70)."""
    helper = os.fork()
    if helper == 0:
        try:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            if os.getresuid() == (uid, uid, uid) and uid != 0:
                os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)
    os.waitpid(helper, 0)
