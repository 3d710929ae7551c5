"""The audit hook: a tripwire with good error text, in every backend. It is no barrier (I-02, CPython gh-87604)."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn

__all__ = ["NO_FILE", "NO_NETWORK", "NO_PROCESS", "refuse", "refused_text", "set_tripwire", "tripped"]

_WRITES: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
NO_PROCESS: Final = "a predictor starts no process; use n_jobs=1, or threads"
NO_NETWORK: Final = "a predictor has no network, and no event loop"
_SIGNAL: Final = "a predictor signals nobody"
NO_FILE: Final = "a predictor writes no file; keep what you need in memory"
_RULES: Final[dict[str, str]] = {
    "os.fork": NO_PROCESS,
    "os.forkpty": NO_PROCESS,
    "os.exec": NO_PROCESS,
    "os.posix_spawn": NO_PROCESS,
    "os.spawn": NO_PROCESS,
    "os.system": NO_PROCESS,
    "subprocess.Popen": NO_PROCESS,
    "pty.spawn": NO_PROCESS,
    "socket.__new__": NO_NETWORK,
    "socket.connect": NO_NETWORK,
    "socket.bind": NO_NETWORK,
    "socket.sendto": NO_NETWORK,
    "socket.sendmsg": NO_NETWORK,
    "socket.getaddrinfo": NO_NETWORK,
    "socket.gethostbyname": NO_NETWORK,
    "os.kill": _SIGNAL,
    "os.killpg": _SIGNAL,
    "signal.pthread_kill": _SIGNAL,
    "os.mkdir": NO_FILE,
    "os.rename": NO_FILE,
    "os.remove": NO_FILE,
    "os.rmdir": NO_FILE,
    "os.link": NO_FILE,
    "os.symlink": NO_FILE,
    "os.truncate": NO_FILE,
    "os.chmod": NO_FILE,
    "os.chown": NO_FILE,
    "shutil.copyfile": NO_FILE,
    "tempfile.mkstemp": NO_FILE,
    "tempfile.mkdtemp": NO_FILE,
}
_OF_A_WORKSPACE: Final = frozenset(
    ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate", "shutil.copyfile", "tempfile.mkstemp", "tempfile.mkdtemp")
)
_READS: Final = ("os.listdir", "os.scandir")

tripped: list[str] = []
"""What the hook refused since it was last emptied, newest last."""


def refused_text(rule: str, what: str) -> str:
    """What code that trips is told.

    >>> refused_text("a predictor has no network", "socket.connect")
    'isolation: a predictor has no network (socket.connect)'
    """
    return f"isolation: {rule} ({what})"


def refuse(rule: str, what: str) -> NoReturn:
    """Raise PermissionError with the rule, and take note of it."""
    text = refused_text(rule, what)
    if len(tripped) < 64:
        tripped.append(text)
    raise PermissionError(1, text)


def set_tripwire(readable: Sequence[str], writable: Sequence[str] = ()) -> None:
    """Refuse processes, network, signals, writes but below `writable`, and reads of what is not below `readable`; for good."""
    roots = tuple(sorted({os.path.realpath(path) for path in readable} | {os.path.abspath(path) for path in readable}))
    inner = tuple(f"{path}/" for path in roots)
    rules = {event: rule for event, rule in _RULES.items() if event not in _OF_A_WORKSPACE or not writable}
    workspaces = tuple(f"{os.path.realpath(path)}/" for path in writable)
    fspath: Callable[[Any], str] = os.fsdecode
    absolute = os.path.abspath

    def check_read(path: object) -> None:
        if not isinstance(path, str | bytes):
            return
        full = absolute(fspath(path))
        if full not in roots and not full.startswith(inner):
            refuse(f"a predictor reads only its own folder and its libraries, not {full}", "open")

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            path, _mode, flags = args
            if isinstance(path, str | bytes):
                is_writing = isinstance(flags, int) and flags & _WRITES
                if is_writing and not f"{absolute(fspath(path))}/".startswith(workspaces):  # a temporary file asks for its folder
                    refuse(NO_FILE, fspath(path))
                check_read(path)
        elif event in rules:
            refuse(rules[event], event)
        elif event == "sqlite3.connect":
            check_read(args[0])
        elif event in _READS:
            check_read(args[0] if args and args[0] is not None else ".")

    sys.addaudithook(hook)
