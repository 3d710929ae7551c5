"""The self-test of each child, behind the last wall and before the submission is opened (isolation.md I-13).

It proves the composition: what a submission would try first is refused, whichever layer refuses it.
"""

from __future__ import annotations

import os
import resource
import socket
from collections.abc import Callable
from typing import Final

from blindcast_isolation import linux
from blindcast_isolation.measures import Locking
from blindcast_isolation.order import ENVIRONMENT
from blindcast_isolation.witness import fork, open_descriptors

__all__ = ["prove"]

_TABLE: Final = (0, 1, 2, 3, 4)  # I-11


def prove(locking: Locking) -> None:
    """Raise PermissionError unless each thing is refused that the child's controls must refuse."""
    order = locking.order
    if order.act:
        return  # a probe of one control, the others off
    if locking.proc >= 0:
        os.close(locking.proc)
        locking.proc = -1
    controls = frozenset(order.controls)
    if (found := open_descriptors(order.open_files)) != _TABLE:
        raise PermissionError(f"descriptors {found} are open")
    if dict(os.environ) != ENVIRONMENT:
        raise PermissionError("the environment is another one")
    if locking.mapped:
        _refused("making the buffer writable", lambda: linux.make_writable(locking.mapped, order.buffer_bytes))
    if "uid-drop" in controls:
        _refused("setresuid(0)", lambda: os.setresuid(0, 0, 0))
        _refused("setgroups", lambda: os.setgroups([0]))
    if controls & {"mountns", "landlock"}:
        for path in ("/etc/passwd", *order.raw):
            _refused(f"opening {path}", lambda path=path: linux.open_past_hooks(path))  # type: ignore[misc]
        if not order.workspace:
            _refused("making a file", lambda: linux.mkdir_past_hooks("/tmp/blindcast-self-test"))
    if "seccomp" in controls:
        _refused("a socket", socket.socket)
        _refused("a fork", fork)
        _refused("a signal to the server", lambda: os.kill(order.server, 0))
        _refused("limits of the server", lambda: resource.prlimit(order.server, resource.RLIMIT_CORE))


def _refused(what: str, act: Callable[[], object]) -> None:
    try:
        act()
    except OSError:
        return
    raise PermissionError(f"{what} was not refused")
