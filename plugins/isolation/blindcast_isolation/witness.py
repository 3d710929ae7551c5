"""What a locked-down probe saw: each control tried by doing the forbidden thing (I-90). Runs in a throw-away child."""

from __future__ import annotations

import errno
import importlib
import mmap
import os
import socket
from collections.abc import Callable
from typing import Final, NoReturn

from blindcast.frames import Log, encode
from blindcast_isolation import linux
from blindcast_isolation.lockdown import ANSWER, open_descriptors
from blindcast_isolation.order import ENVIRONMENT, Order

__all__ = ["INTERPRETER", "testify"]

INTERPRETER: Final = "interpreter"  # beside the controls: lazy imports after the drop (I-22)
_LAZY: Final = ("decimal", "csv", "xml.etree.ElementTree", "email.mime.text", "numpy")


class _Missed(Exception):
    """The forbidden thing was not refused."""


def testify(order: Order) -> NoReturn:
    """Say of each control what was measured, empty where it holds, and leave."""
    for control in (*order.controls, INTERPRETER):
        os.write(ANSWER, encode(Log(control, _word(_WITNESSES.get(control, _set_up), order))))
    os._exit(0)


def _set_up(_order: Order) -> None:
    """Nothing to try from inside: its set-up call succeeded."""


def _word(witness: Callable[[Order], None], order: Order) -> str:
    try:
        witness(order)
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:500]
    return ""


def _must(holds: bool, what: str) -> None:
    if not holds:
        raise _Missed(what)


def _refused(act: Callable[[], object], *errnos: int) -> None:
    try:
        act()
    except OSError as error:
        _must(not errnos or error.errno in errnos, f"refused by another errno: {error}")
        return
    raise _Missed("was not refused")


def _fds(_order: Order) -> None:
    _must(open_descriptors() == (0, 1, 2, 3, 4), f"open: {open_descriptors()}")


def _env(_order: Order) -> None:
    _must(dict(os.environ) == ENVIRONMENT, "another environment")


def _uid(order: Order) -> None:
    _must(os.getresuid() == (order.uid,) * 3 and os.getresgid() == (order.uid,) * 3 and os.getgroups() == [], "another uid")
    _refused(lambda: os.setresuid(0, 0, 0), errno.EPERM)


def _caps(_order: Order) -> None:
    _refused(lambda: linux.mount("none", "/", flags=linux.MS_REC | linux.MS_PRIVATE), errno.EPERM)
    _refused(lambda: socket.sethostname("taken"), errno.EPERM)


def _network(_order: Order) -> None:
    _must([name for _, name in socket.if_nameindex()] in (["lo"], []), "other interfaces are seen")
    with socket.socket() as probe:
        _refused(lambda: probe.connect(("127.0.0.1", 9)), errno.ENETUNREACH, errno.EPERM)


def _disk(_order: Order) -> None:
    _refused(lambda: linux.open_past_hooks("/etc/passwd"), errno.ENOENT)
    _refused(lambda: linux.open_past_hooks("/proc"), errno.ENOENT)
    _refused(lambda: linux.mkdir_past_hooks("/written"), errno.EROFS, errno.EACCES)


def _limits(order: Order) -> None:
    def fill() -> None:
        for _ in range(order.open_files + 1):
            held.append(os.dup(0))

    held: list[int] = []
    _refused(fill, errno.EMFILE)
    for fd in held:
        os.close(fd)
    _refused(lambda: mmap.mmap(-1, (order.memory_mb + 1) << 20), errno.ENOMEM)


def _hook(_order: Order) -> None:
    try:
        os.open("/etc/shadow", os.O_RDONLY)
    except OSError as error:
        _must("isolation:" in str(error), f"refused without the hook's text: {error}")
        return
    raise _Missed("was not refused")


def _interpreter(_order: Order) -> None:
    for name in _LAZY:
        importlib.import_module(name)


_WITNESSES: Final[dict[str, Callable[[Order], None]]] = {
    "fds": _fds,
    "env": _env,
    "uid-drop": _uid,
    "no-new-privs": lambda _order: _must(linux.is_without_new_privileges(), "not set"),
    "undumpable": lambda _order: _must(not linux.is_dumpable(), "dumpable"),
    "caps": _caps,
    "netns": _network,
    "mountns": _disk,
    "pidns": lambda _order: _must(os.getpid() == 1, "not the first process"),
    "utsns": lambda _order: _must(os.uname().nodename == "blindcast", "the host's name is seen"),
    "rlimits": _limits,
    "hook": _hook,
    INTERPRETER: _interpreter,
}
