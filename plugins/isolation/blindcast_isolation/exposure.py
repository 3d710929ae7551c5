"""Raw roots that a child could reach, or that other users of the host can see (isolation.md I-21, I-23)."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from os import PathLike
from typing import TypeAlias

from blindcast.errors import DeniedError
from blindcast.records import Policy

__all__ = ["exposed", "open_roots", "refuse_exposed"]

Place: TypeAlias = str | PathLike[str]


def exposed(raw_roots: Iterable[Place], bound: Iterable[Place]) -> tuple[tuple[str, str], ...]:
    """(raw root, bound path) wherever a raw root lies at or below a path that is bound into a child (I-23).

    Links are followed on both sides, those that stand right inside a raw root too (a pool whose files are links), and a
    folder mounted at a second place is known by its identity. A path need not exist. A bound path below a raw root
    is none: the submission lies below BLINDCAST_HOME.
    """
    bounds = [(os.fspath(path), os.path.realpath(path), _identity(path)) for path in bound]
    found = []
    for root in raw_roots:
        for place in _places(root):
            ways = _above(place)
            identities = {_identity(way) for way in ways} - {None}
            found += [(os.fspath(root), given) for given, real, identity in bounds if real in ways or identity in identities]
    return tuple(dict.fromkeys(found))


def _places(root: Place) -> Iterator[str]:
    """Where a raw root really is, and where the links right inside it lead."""
    yield os.path.realpath(root)
    try:
        with os.scandir(root) as entries:
            yield from [os.path.realpath(entry.path) for entry in entries if entry.is_symlink()]
    except OSError:
        return


def _above(path: str) -> list[str]:
    """A real path and every folder above it."""
    ways = [path]
    while (parent := os.path.dirname(ways[-1])) != ways[-1]:
        ways.append(parent)
    return ways


def _identity(path: Place) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def refuse_exposed(policy: Policy, binds: Iterable[Place]) -> None:
    """Refuse a child that could reach a raw root through `binds`: the interpreter, the system's folders, the submission.

    Raises DeniedError `raw_root_exposed`.
    """
    for root, bound in exposed(policy.raw_roots, binds):
        raise DeniedError(
            "raw_root_exposed",
            f"{root} lies inside {bound}, which every predictor can read",
            expected="pool, BLINDCAST_HOME and ledger outside the interpreter, the system's library folders and the submission",
            do="move the data out of it, or install blindcast in an environment elsewhere",
            raw_root=root,
            bound=bound,
        )


def open_roots(raw_roots: Iterable[Place]) -> list[str]:
    """What is wrong with the modes of the raw roots that exist: each should be 0700 (a file 0600) and of this uid (I-21).

    Landlock hides no names from `stat`, so without a mount namespace the modes alone do.
    """
    warnings = []
    for root in raw_roots:
        try:
            status = os.stat(root)
        except OSError:
            continue
        wanted = "0700" if stat.S_ISDIR(status.st_mode) else "0600"
        if status.st_mode & 0o077:
            warnings.append(
                f"raw root {os.fspath(root)} has mode {stat.S_IMODE(status.st_mode):04o}, open to other users: chmod {wanted} it"
            )
        if status.st_uid != os.geteuid():
            warnings.append(f"raw root {os.fspath(root)} belongs to uid {status.st_uid}, not to the uid of this process")
    return warnings
