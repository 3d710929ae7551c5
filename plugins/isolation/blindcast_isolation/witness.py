"""The forbidden thing that shows a control to hold, tried in a throw-away child (isolation.md I-90).

A witness is a generator: what stands before `yield` is made ready before the control is set up, what stands behind it is
the act. It raises where the act was not refused, or was refused by something else: each act names the error it wants.
"""

from __future__ import annotations

import errno
import importlib
import mmap
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Final

from blindcast_isolation import linux
from blindcast_isolation.measures import ANSWER, HOST_NAME, Locking
from blindcast_isolation.order import ENVIRONMENT

__all__ = ["INTERPRETER", "Missed", "Otherwise", "Witness", "open_descriptors", "refused"]

Witness = Callable[[Locking], Iterator[None]]

INTERPRETER: Final = "interpreter"  # beside the controls: lazy imports after the drop (I-22)
_LAZY: Final = ("decimal", "csv", "xml.etree.ElementTree", "email.mime.text", "numpy.version")  # of Python alone: each can be read again


class Missed(Exception):
    """The forbidden thing was done."""


class Otherwise(Exception):
    """The forbidden thing was refused, but not by what should have refused it."""


def must(holds: bool, what: str) -> None:
    """Raise Missed unless it holds."""
    if not holds:
        raise Missed(what)


def refused(act: Callable[[], object], *errnos: int) -> None:
    """Raise Missed unless `act` raises an OSError, and Otherwise unless that has one of `errnos`, where some are given."""
    try:
        act()
    except OSError as error:
        if errnos and error.errno not in errnos:
            raise Otherwise(f"refused by another error: {error}") from error
        return
    raise Missed("was not refused")


def open_descriptors(below: int = 1_024) -> tuple[int, ...]:
    """The descriptors that are open."""
    found = []
    for fd in range(below):
        try:
            os.fstat(fd)
        except OSError:
            continue
        found.append(fd)
    return tuple(found)


def descriptors(locking: Locking) -> Iterator[None]:
    """Nothing of the parent is open, but for the buffer until it is mapped: a file that it left open is not."""
    os.open("/", os.O_RDONLY)
    yield
    found = tuple(fd for fd in open_descriptors() if fd not in (ANSWER + 1, locking.proc))
    must(found == (0, 1, 2, 3, 4), f"open: {found}")


def environment(_locking: Locking) -> Iterator[None]:
    """Nothing of the server's environment."""
    yield
    must(dict(os.environ) == ENVIRONMENT, "another environment")


def user(_locking: Locking) -> Iterator[None]:
    """What it may do, it may do in its own namespaces only."""
    refused(lambda: socket.sethostname(os.uname().nodename), errno.EPERM)
    yield


def processes(locking: Locking) -> Iterator[None]:
    """The server is no process of its world: another one may have its number there."""
    yield
    try:
        fd = os.pidfd_open(locking.order.server)
    except ProcessLookupError:
        return
    seen = os.fstat(fd).st_ino
    os.close(fd)
    must(seen != locking.order.server_ino, "the server is seen")


def network(locking: Locking) -> Iterator[None]:
    """No interface but a loopback of its own, where the server's listener is not."""
    yield
    must([name for _, name in socket.if_nameindex()] in (["lo"], []), "other interfaces are seen")
    with socket.socket() as probe:
        refused(lambda: probe.connect(("127.0.0.1", locking.order.port)), errno.ENETUNREACH, errno.ECONNREFUSED)


def shared_memory(locking: Locking) -> Iterator[None]:
    """A segment of the host's is not found."""
    if "ipcns" in locking.order.given:
        yield
        return
    segment = linux.lingering_segment()
    yield
    must(not linux.sees_segment(segment), "a segment of the host is seen")


def host_name(_locking: Locking) -> Iterator[None]:
    """The host's name is not told."""
    yield
    must(os.uname().nodename == HOST_NAME, "the host's name is seen")


def disk(_locking: Locking) -> Iterator[None]:
    """Nothing of the host is there, and nothing can be written."""
    yield
    refused(lambda: linux.open_past_hooks("/etc/passwd"), errno.ENOENT)
    refused(lambda: linux.open_past_hooks("/proc"), errno.ENOENT)
    refused(lambda: linux.mkdir_past_hooks("/written"), errno.EROFS)


def limits(locking: Locking) -> Iterator[None]:
    """Descriptors and memory end where they should."""
    yield
    held: list[int] = []

    def fill() -> None:
        for _ in range(locking.order.open_files + 1):
            held.append(os.dup(0))

    refused(fill, errno.EMFILE)
    for fd in held:
        os.close(fd)
    refused(lambda: mmap.mmap(-1, (locking.order.memory_mb + 1) << 20), errno.ENOMEM)


def uid(locking: Locking) -> Iterator[None]:
    """The slot's uid, and no way back."""
    yield
    wanted = (locking.order.uid,) * 3
    must(os.getresuid() == wanted and os.getresgid() == wanted and os.getgroups() == [], "another uid")
    refused(lambda: os.setresuid(0, 0, 0), errno.EPERM)


def capabilities(_locking: Locking) -> Iterator[None]:
    """No mount, no host name, not in its own namespaces either."""
    yield
    refused(lambda: linux.mount("none", "/", flags=linux.MS_REC | linux.MS_PRIVATE), errno.EPERM)
    refused(lambda: socket.sethostname("taken"), errno.EPERM)


def privileges(_locking: Locking) -> Iterator[None]:
    """No exec gains anything: the kernel's own word, since an exec would end the witness."""
    yield
    must(linux.is_without_new_privileges(), "not set")


def dumps(locking: Locking) -> Iterator[None]:
    """Its own entry of /proc belongs to root, so that no process of its uid may look in."""
    yield
    must(not linux.is_dumpable(), "dumpable")
    if locking.proc >= 0 and os.geteuid() != 0:
        refused(lambda: os.open("environ", os.O_RDONLY, dir_fd=locking.proc), errno.EACCES)


def files(_locking: Locking) -> Iterator[None]:
    """What is there and not listed is refused, whatever its mode."""
    yield
    refused(lambda: os.listdir("/"), errno.EACCES)


def ports(_locking: Locking) -> Iterator[None]:
    """No TCP port, not in its own network either."""
    yield
    with socket.socket() as probe:
        refused(lambda: probe.bind(("", 0)), errno.EACCES)


def scope(_locking: Locking) -> Iterator[None]:
    """Nobody outside is signalled, and no abstract socket of an outsider is reached."""
    with socket.socket(socket.AF_UNIX) as outsider:
        outsider.bind("")
        outsider.listen()
        yield
        with socket.socket(socket.AF_UNIX) as probe:
            refused(lambda: probe.connect(outsider.getsockname()), errno.EPERM)
    if os.getppid() != 0:
        refused(lambda: os.kill(os.getppid(), 0), errno.EPERM)


def calls(_locking: Locking) -> Iterator[None]:
    """No socket of any family, no process."""
    yield
    refused(lambda: socket.socket(), errno.EPERM)
    refused(lambda: socket.socket(socket.AF_UNIX), errno.EPERM)
    refused(fork, errno.EPERM)


def fork() -> None:
    """Fork; the other process leaves at once."""
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def hook(_locking: Locking) -> Iterator[None]:
    """The tripwire names its rule."""
    yield
    try:
        os.open("/etc/shadow", os.O_RDONLY)
    except OSError as error:
        must("isolation:" in str(error), f"refused without the hook's text: {error}")
        return
    raise Missed("was not refused")


def interpreter(_locking: Locking) -> Iterator[None]:
    """The libraries can still be read, and threads started."""
    yield
    for name in _LAZY:
        importlib.import_module(name)
        sys.modules.pop(name)  # the zygote may have had it: read it now
        importlib.import_module(name)
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()
