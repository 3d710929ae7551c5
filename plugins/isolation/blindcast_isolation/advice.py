"""What honest code is told at doors that no audit event watches (attacks.md A-24, K-12).

Help, not a barrier: the calls behind these doors are refused by the walls. Everything is imported here, before any fork.
"""

from __future__ import annotations

import _multiprocessing  # type: ignore[import-not-found]  # typeshed leaves it out
import _posixsubprocess
import os
import selectors
import socket
import subprocess
import tempfile
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from blindcast_isolation.tripwire import NO_FILE, NO_NETWORK, NO_PROCESS, refuse

__all__ = ["advise"]

_DOORS: Final[tuple[tuple[ModuleType | type, str, str], ...]] = (
    (_posixsubprocess, "fork_exec", NO_PROCESS),
    (subprocess, "_fork_exec", NO_PROCESS),
    (_multiprocessing, "SemLock", NO_PROCESS),
    (os, "pipe", NO_PROCESS),
    (os, "pipe2", NO_PROCESS),
    (selectors.DefaultSelector, "_selector_cls", NO_NETWORK),  # what an event loop begins with
    (socket, "socketpair", NO_NETWORK),
)
_FILES: Final = (tempfile, "_get_default_tempdir", NO_FILE)


def advise(*, writes: bool) -> None:
    """Let each of the doors say what to do instead; who `writes` to a workspace finds its temporary folder there."""
    for module, name, rule in (*_DOORS, *(() if writes else (_FILES,))):
        if hasattr(module, name):
            setattr(module, name, _answer(getattr(module, name), rule, f"{module.__name__}.{name}"))


def _answer(door: object, rule: str, what: str) -> Callable[..., Any]:
    def told(*_args: object, **_options: object) -> Any:
        refuse(rule, what)

    told.SEM_VALUE_MAX = getattr(door, "SEM_VALUE_MAX", 0)  # type: ignore[attr-defined]  # asked for before a lock is made
    return told
