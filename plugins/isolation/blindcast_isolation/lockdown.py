"""The lock-down of a child, in the order of I-10. A control that fails ends the child: there is no weaker one (I-04)."""

from __future__ import annotations

import os
import resource
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from blindcast_isolation import linux, root
from blindcast_isolation.order import ENVIRONMENT, Order
from blindcast_isolation.tripwire import set_tripwire

__all__ = ["ANSWER", "REQUEST", "NotInForce", "lock", "open_descriptors"]

REQUEST: Final = 3
ANSWER: Final = 4
_BUFFER: Final = 5
_TABLE: Final = (0, 1, 2, REQUEST, ANSWER)  # I-11
_ABOVE: Final = 64  # descriptors are moved here first, so that none is overwritten
_STACK: Final = 8 << 20  # bytes
_HOST_NAME: Final = "blindcast"


class NotInForce(Exception):
    """A control that could not be put in force."""

    def __init__(self, control: str, errno: int, text: str) -> None:
        super().__init__(f"{control}: {text}")
        self.control = control
        self.errno = errno
        self.text = text


@contextmanager
def _as(control: str) -> Iterator[None]:
    try:
        yield
    except NotInForce:
        raise
    except Exception as error:
        raise NotInForce(control, getattr(error, "errno", None) or 0, f"{type(error).__name__}: {error}") from error


def lock(order: Order, output: int, request: int, answer: int, buffer: int) -> memoryview:
    """Lock this process down and return the reveal buffer, mapped read-only. Raises NotInForce."""
    wanted = frozenset(order.controls)
    with _as("fds"):
        _place(output, request, answer, buffer)
    with _as("env"):
        os.environ.clear()
        os.environ.update(ENVIRONMENT)
        os.umask(0o077)
        os.setsid()
    for control in ("netns", "ipcns", "utsns", "mountns"):
        if control in wanted:
            with _as(control):
                linux.unshare(linux.CLONE[control])
    if "utsns" in wanted:
        with _as("utsns"):
            socket.sethostname(_HOST_NAME)
    _disk(order, wanted)
    with _as("seals"):
        memory = linux.map_read_only(_BUFFER, order.buffer_bytes)
        os.close(_BUFFER)
    with _as("rlimits"):
        _limit(order)
    _privileges(order, wanted)
    _self_test(order, wanted)
    if "hook" in wanted:
        with _as("hook"):
            set_tripwire(_readable(order))
    return memory


def _place(output: int, request: int, answer: int, buffer: int) -> None:
    """The table of I-11, with the buffer behind it until it is mapped."""
    import fcntl

    null = os.open("/dev/null", os.O_RDWR)
    high = [fcntl.fcntl(fd, fcntl.F_DUPFD, _ABOVE) for fd in (null, output, output, request, answer, buffer)]
    for target, fd in enumerate(high):
        os.dup2(fd, target)
    os.closerange(_BUFFER + 1, os.sysconf("SC_OPEN_MAX"))


def _disk(order: Order, wanted: frozenset[str]) -> None:
    os.umask(0o022)
    with _as("mountns"):
        if "mountns" in wanted:
            root.enter(order.binds, order.submission, order.entry)
        elif order.closed:
            linux.unshare(linux.CLONE["mountns"])
            root.open_parents(order.closed, (*order.binds, order.submission))
            os.chdir("/")
    os.umask(0o077)


def _limit(order: Order) -> None:
    limits = {
        resource.RLIMIT_AS: order.memory_mb << 20,
        resource.RLIMIT_CPU: order.cpu_s,
        resource.RLIMIT_NPROC: order.threads,
        resource.RLIMIT_NOFILE: order.open_files,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_MSGQUEUE: 0,
    }
    for kind, limit in limits.items():
        hard = resource.getrlimit(kind)[1]
        kept = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (kept, kept))
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    if soft == resource.RLIM_INFINITY or soft > _STACK:
        resource.setrlimit(resource.RLIMIT_STACK, (_STACK, hard))
    os.nice(10)
    os.sched_setaffinity(0, {order.cpu})


def _privileges(order: Order, wanted: frozenset[str]) -> None:
    """Step 8: a change of uid clears the death signal, so that stands behind it."""
    parent = os.getppid()
    if order.uid is not None:
        with _as("caps"):
            linux.drop_bounding_set()
        with _as("uid-drop"):
            os.setgroups([])
            os.setresgid(order.uid, order.uid, order.uid)
            os.setresuid(order.uid, order.uid, order.uid)
    if "caps" in wanted:
        with _as("caps"):
            linux.drop_capabilities()
    with _as("no-new-privs"):
        linux.forbid_new_privileges()
    with _as("undumpable"):
        linux.forbid_dumps()
    with _as("kill"):
        linux.die_with_parent()
        if os.getppid() != parent:  # in a pid namespace of its own it reads 0 both times: its init dies with the namespace
            raise ProcessLookupError("the parent is gone")


def open_descriptors(below: int = 1_024) -> tuple[int, ...]:
    """The descriptors that are open."""
    found = []
    for fd in range(below):
        with suppress(OSError):
            os.fstat(fd)
            found.append(fd)
    return tuple(found)


def _self_test(order: Order, wanted: frozenset[str]) -> None:
    """Each must be refused, or be as it should: this proves the composition (I-13)."""
    with _as("fds"):
        if open_descriptors(order.open_files) != _TABLE:
            raise PermissionError(f"descriptors {open_descriptors(order.open_files)} are open")
    with _as("env"):
        if dict(os.environ) != ENVIRONMENT:
            raise PermissionError("the environment is another one")
    if "uid-drop" in wanted:
        _refused("uid-drop", lambda: os.setresuid(0, 0, 0))
        _refused("uid-drop", lambda: os.setgroups([0]))
    if os.geteuid() == 0:
        raise NotInForce("uid-drop", 0, "no predictor runs as uid 0 (I-05)")
    if "mountns" in wanted:
        _refused("mountns", lambda: os.open("/etc/passwd", os.O_RDONLY))
        _refused("mountns", lambda: os.mkdir("/written"))


def _refused(control: str, act: Callable[[], object]) -> None:
    try:
        act()
    except OSError:
        return
    raise NotInForce(control, 0, "the self-test was not refused")


def _readable(order: Order) -> Sequence[str]:
    """What the tripwire lets a child read: the interpreter, the libraries and the submission."""
    return (*order.binds, *root.system_paths(), order.entry.rpartition("/")[0] if order.entry.endswith(".py") else order.entry)
