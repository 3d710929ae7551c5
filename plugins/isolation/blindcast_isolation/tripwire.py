"""The audit hook: a tripwire with good error text, in every backend. It is no barrier (I-02, CPython gh-87604)."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

__all__ = ["refused_text", "set_tripwire", "tripped"]

_WRITES: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_PROCESS: Final = "a predictor starts no process; use n_jobs=1, or threads"
_NETWORK: Final = "a predictor has no network"
_SIGNAL: Final = "a predictor signals nobody"
_CHANGE: Final = "a predictor writes no file; keep what you need in memory"
_RULES: Final[dict[str, str]] = {
    "os.fork": _PROCESS,
    "os.forkpty": _PROCESS,
    "os.exec": _PROCESS,
    "os.posix_spawn": _PROCESS,
    "os.spawn": _PROCESS,
    "os.system": _PROCESS,
    "subprocess.Popen": _PROCESS,
    "pty.spawn": _PROCESS,
    "socket.connect": _NETWORK,
    "socket.bind": _NETWORK,
    "socket.sendto": _NETWORK,
    "socket.getaddrinfo": _NETWORK,
    "socket.gethostbyname": _NETWORK,
    "os.kill": _SIGNAL,
    "os.killpg": _SIGNAL,
    "signal.pthread_kill": _SIGNAL,
    "os.mkdir": _CHANGE,
    "os.rename": _CHANGE,
    "os.remove": _CHANGE,
    "os.rmdir": _CHANGE,
    "os.link": _CHANGE,
    "os.symlink": _CHANGE,
    "os.truncate": _CHANGE,
    "os.chmod": _CHANGE,
    "os.chown": _CHANGE,
    "shutil.copyfile": _CHANGE,
    "tempfile.mkstemp": _CHANGE,
    "tempfile.mkdtemp": _CHANGE,
}
_READS: Final = ("os.listdir", "os.scandir")

tripped: list[str] = []
"""What the hook refused since it was last emptied, newest last."""


def refused_text(rule: str, what: str) -> str:
    """What code that trips is told.

    >>> refused_text("a predictor has no network", "socket.connect")
    'isolation: a predictor has no network (socket.connect)'
    """
    return f"isolation: {rule} ({what})"


def _refuse(rule: str, what: str) -> None:
    text = refused_text(rule, what)
    if len(tripped) < 64:
        tripped.append(text)
    raise PermissionError(1, text)


def set_tripwire(readable: Sequence[str]) -> None:
    """Refuse processes, network, signals, writes, and reads of what is not below `readable`; for good."""
    roots = tuple(sorted({os.path.realpath(path) for path in readable} | {os.path.abspath(path) for path in readable}))
    inner = tuple(f"{path}/" for path in roots)
    fspath: Callable[[Any], str] = os.fsdecode
    absolute = os.path.abspath

    def check_read(path: object) -> None:
        if not isinstance(path, str | bytes):
            return
        full = absolute(fspath(path))
        if full not in roots and not full.startswith(inner):
            _refuse(f"a predictor reads only its own folder and its libraries, not {full}", "open")

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            path, _mode, flags = args
            if isinstance(path, str | bytes):
                if isinstance(flags, int) and flags & _WRITES:
                    _refuse(_CHANGE, fspath(path))
                check_read(path)
        elif event in _RULES:
            _refuse(_RULES[event], event)
        elif event in _READS:
            check_read(args[0] if args and args[0] is not None else ".")

    sys.addaudithook(hook)
