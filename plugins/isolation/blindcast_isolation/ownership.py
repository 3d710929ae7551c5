"""Who owns a workspace: the uid of the run that writes to it, and while none does, the server (isolation.md I-16, I-17)."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = ["everything", "hand"]

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def hand(folder: Path, uid: int) -> None:
    """Give a folder and all in it to `uid`; no link is followed. Only while no child of it lives. Raises OSError."""
    top = os.open(folder, _FOLDER)
    try:
        for beside, _, name, _ in everything(top):
            os.chown(name, uid, uid, dir_fd=beside, follow_symlinks=False)
        os.fchown(top, uid, uid)
        os.fchmod(top, 0o700)
    finally:
        os.close(top)


def everything(top: int) -> Iterator[tuple[int, str, str, os.stat_result]]:
    """(open folder, its path below `top`, name in it, status) of all beneath `top`, however deep its writer nested it.

    No link is followed, and two descriptors are open at most: the way back is `..`, whose identity must be the one that was
    seen on the way there. Raises OSError, where folders were moved meanwhile too.
    """
    here, ways = os.dup(top), list[tuple[str, os.stat_result, list[str]]]()
    place, inner = "", list[str]()
    try:
        while True:
            for name in os.listdir(here):
                status = os.stat(name, dir_fd=here, follow_symlinks=False)
                yield here, place, name, status
                if stat.S_ISDIR(status.st_mode):
                    inner.append(name)
            ways.append((place, os.fstat(here), inner))
            while not ways[-1][2]:
                ways.pop()
                if not ways:
                    return
                here = _moved(here, "..")
                if not os.path.samestat(os.fstat(here), ways[-1][1]):
                    raise OSError(f"{ways[-1][0] or '.'} was moved while it was read")
            name = ways[-1][2].pop()
            here, place, inner = _moved(here, name), f"{ways[-1][0]}{name}/", []
    finally:
        os.close(here)


def _moved(here: int, name: str) -> int:
    """The folder `name` beside an open one, which is closed."""
    there = os.open(name, _FOLDER, dir_fd=here)
    os.close(here)
    return there
