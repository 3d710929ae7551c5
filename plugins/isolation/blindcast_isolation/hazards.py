"""What of this host and this server weakens what the backends promise (isolation.md I-16, I-21, I-90)."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Final

from blindcast.printable import printable
from blindcast_isolation.exposure import open_roots
from blindcast_isolation.root import interpreter_paths
from blindcast_isolation.slots import SLOTS, Quarantined

__all__ = ["hazards", "homes_among", "secrets_in"]

SYSCTLS: Final = Path("/proc/sys")
_STICKY: Final = ("protected_symlinks", "protected_hardlinks", "protected_regular", "protected_fifos")
_SECRET: Final = re.compile(r"TOKEN(?!IZER)|SECRET|PASSWORD|PASSWD|(?:\A|_)(?:API)?KEY\Z")


def hazards(
    raw_roots: Iterable[str | PathLike[str]],
    environ: Mapping[str, str],
    spoilt: Collection[Quarantined],
    *,
    is_root: bool,
    sysctls: Path = SYSCTLS,
) -> tuple[str, ...]:
    """One line for each; none where the host is as it should be. `spoilt` are the quarantined uids."""
    return tuple(printable(line) for line in _hazards(raw_roots, environ, spoilt, is_root, sysctls))


def _hazards(
    raw_roots: Iterable[str | PathLike[str]], environ: Mapping[str, str], spoilt: Collection[Quarantined], is_root: bool, sysctls: Path
) -> Iterator[str]:
    yield from open_roots(raw_roots)
    if not is_root:
        yield "not started by root: runs have no uid of their own, so nothing but namespaces or Landlock stands between them and your files"
    scope = _value(sysctls / "kernel/yama/ptrace_scope")
    if scope is None:
        yield "Yama is absent: any process of your uid may look into another that is dumpable, this server too"
    elif scope == "0":
        yield "Yama is off: any process of your uid may look into another that is dumpable; set kernel.yama.ptrace_scope to 1"
    if (sysctls / "fs").is_dir() and (off := [name for name in _STICKY if _value(sysctls / "fs" / name) in (None, "0")]):
        yield "sticky-folder protection is off: set " + ", ".join(f"fs.{name}" for name in off) + " to 1"
    if named := secrets_in(environ):
        yield "the server's environment holds what looks like secrets: " + ", ".join(named) + "; unset what a run does not need"
    for path in homes_among(interpreter_paths()):
        yield f"the environment's prefix is the home folder {path}: every predictor can read all of it; make the environment a folder below"
    for uid in spoilt:
        yield f"uid {uid.uid} is quarantined: {uid.reason}; once that is gone, remove {SLOTS / str(uid.uid)}"


def homes_among(paths: Iterable[str]) -> list[str]:
    """The paths that are somebody's home folder.

    >>> homes_among(["/usr/lib"])
    []
    """
    homes = {os.path.realpath(user.pw_dir) for user in pwd.getpwall()} - {"/", "/nonexistent"}
    return [path for path in paths if os.path.realpath(path) in homes]


def secrets_in(environ: Mapping[str, str]) -> list[str]:
    """Names, never values, of variables that look like a secret and are not empty.

    >>> secrets_in({"HF_TOKEN": "x", "PATH": "/bin", "AWS_SECRET_ACCESS_KEY": "y", "API_KEY": ""})
    ['AWS_SECRET_ACCESS_KEY', 'HF_TOKEN']
    """
    return sorted(name for name, value in environ.items() if value and _SECRET.search(name.upper()))


def _value(file: Path) -> str | None:
    try:
        return file.read_text().strip()
    except OSError:
        return None
