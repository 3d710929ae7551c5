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
from blindcast_isolation.cgroup import is_populated, kill_group
from blindcast_isolation.order import Ending, Order, Started

__all__ = ["supervise"]

SETUP_FAILED: Final = 70  # exit status of a child that could not be locked down
STUCK_S: Final = 5.0


def supervise(
    order: Order, line: socket.socket, answer: int, others: tuple[int, ...], child: Callable[[], NoReturn], zygote: int
) -> NoReturn:
    """Fork a child that runs `child`, watch over it, and exit when its whole tree is gone."""
    linux.die_with_parent()
    linux.become_reaper()
    outer = {name for name in ("userns", "pidns") if name in order.controls} - set(order.given)
    control = ""
    try:
        if "userns" in outer:
            control = "userns"
            _enter_user_namespace(order.uid)
            linux.die_with_parent()  # a change of credentials clears it
        if "pidns" in outer:
            control = "pidns"
            linux.unshare(linux.CLONE["pidns"])
        control = "kill"
        if os.getppid() != zygote:
            raise ProcessLookupError("the zygote is gone")
        pid = os.fork()
    except (OSError, ValueError) as error:
        os.write(answer, encode(SetupFailed(control, getattr(error, "errno", None) or 0, str(error))))
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


def _enter_user_namespace(uid: int | None) -> None:
    """An ordinary user is mapped on itself; started by root, 0 on 0 and the slot on the slot, written from outside (I-05)."""
    if uid is None:
        maps = {"uid_map": f"{os.getuid()} {os.getuid()} 1", "gid_map": f"{os.getgid()} {os.getgid()} 1"}
        linux.unshare(linux.CLONE["userns"])
        _write("setgroups", "deny")
        for name, text in maps.items():
            _write(name, text)
        return
    asked, ask = os.pipe()
    me = os.getpid()
    helper = os.fork()
    if helper == 0:
        status = 1
        try:
            os.close(ask)  # else the end of this pipe would never come, should the other die now
            if os.read(asked, 1):
                for name in ("uid_map", "gid_map"):
                    _write(name, f"0 0 1\n{uid} {uid} 1", me)
                status = 0
        finally:
            os._exit(status)
    os.close(asked)
    try:
        linux.unshare(linux.CLONE["userns"])
    finally:
        os.write(ask, b"m")
        os.close(ask)
        _, status = os.waitpid(helper, 0)
    if status:
        raise PermissionError(f"the uids 0 and {uid} could not be mapped")
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)


def _write(name: str, text: str, pid: int | None = None) -> None:
    fd = os.open(f"/proc/{'self' if pid is None else pid}/{name}", os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def _watch(line: socket.socket, pidfd: int) -> None:
    """Return when the child has ended, or is to be killed: on any message, and at the end of the line."""
    poll = select.poll()
    poll.register(line, select.POLLIN)
    poll.register(pidfd, select.POLLIN)
    poll.poll()


def _end(order: Order, pid: int, pidfd: int, line: socket.socket) -> None:
    """Leave nothing of the child's tree, then say how it ended."""
    if order.kill == "cgroup":
        with suppress(OSError):
            kill_group(order.cgroup)
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    _, status, usage = os.wait4(pid, 0)
    deadline = time.monotonic() + STUCK_S
    while _lives(order) and time.monotonic() < deadline:
        if order.kill == "uid" and order.uid:
            _kill_uid(order.uid)
        elif order.kill == "cgroup":
            time.sleep(0.0005)
        else:
            _kill_children()
    ending = Ending(status, usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
    try:
        line.send(msgspec.msgpack.encode(ending))
    except OSError:  # the server is gone: nobody else takes the group away
        if order.cgroup and order.kill == "cgroup":
            with suppress(OSError):
                os.rmdir(order.cgroup)


def _lives(order: Order) -> bool:
    """Whether anything of the child's tree is left: in its group, or an orphan that came to this process."""
    if order.kill == "given":
        return False  # the namespaces around this process end with the one who made them
    return _has_orphans() or (order.kill == "cgroup" and is_populated(order.cgroup))


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
