"""Runs on disk: whole, at work, or interrupted (DESIGN 7).

A run that was killed stays aside with its journal and is shown as `interrupted`.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal

from attrs import frozen

from blindcast.errors import DataError, IntegrityError, UsageError
from blindcast.journal import read_journal
from blindcast.names import did_you_mean

__all__ = ["SCHEMA", "Run", "list_runs", "open_run", "reading"]

SCHEMA: Final = "blindcast.run/1"
RUN_ID: Final = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{6}")


@frozen
class Run:
    """One run on disk: whole, at work, or interrupted."""

    folder: Path
    run_id: str
    status: Literal["success", "failed", "cancelled", "running", "interrupted"]
    reason: str | None
    facts: Mapping[str, Any]  # run.json; begun.json where there is none

    @property
    def is_whole(self) -> bool:
        """Whether the run directory is complete."""
        return self.status in ("success", "failed", "cancelled")

    def sealed(self) -> tuple[int, int]:
        """Windows and links sealed so far, of a run without a run directory."""
        windows, links = set(), 0
        path = self.folder / "journal.bin"
        for sealed in read_journal(path) if path.exists() else ():
            windows.add(sealed.ordinal)
            links += 1
        return len(windows), links


def _is_held(folder: Path) -> bool:
    try:
        fd = os.open(folder / "lock", os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False


def _read(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _run(folder: Path) -> Run:
    run_id = folder.name.lstrip(".")
    state, facts = _read(folder / "state.json"), _read(folder / "run.json") or _read(folder / "begun.json")
    if folder.name.startswith("."):
        return Run(folder, run_id, "running" if _is_held(folder) else "interrupted", None, facts)
    status = state.get("status")
    if status not in ("success", "failed", "cancelled"):
        return Run(folder, run_id, "interrupted", "state.json is missing or unreadable", facts)
    return Run(folder, run_id, status, state.get("reason"), facts)


@contextmanager
def reading(run: Run) -> Iterator[None]:
    """Around reading a run's files: what is not as it was written raises IntegrityError `run_damaged`."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, OSError, RuntimeError) as error:
        raise IntegrityError(
            "run_damaged",
            f"run {run.run_id} is damaged: {type(error).__name__}: {error}",
            expected="the files of a run directory, as the run wrote them",
            do="restore the folder from a backup, or run again; what was charged stays charged",
            folder=str(run.folder),
        ) from error


def list_runs(home: Path) -> tuple[Run, ...]:
    """Every run of a home, oldest first; runs at work and interrupted ones too."""
    folder = home / "runs"
    if not folder.is_dir():
        return ()
    found = [p for p in folder.iterdir() if p.is_dir() and RUN_ID.fullmatch(p.name.lstrip("."))]
    return tuple(_run(p) for p in sorted(found, key=_age))


def _age(folder: Path) -> tuple[str, int, str]:
    """By the second of its id, then by when it was last written to: six random digits order nothing."""
    run_id = folder.name.lstrip(".")
    return run_id.partition("-")[0], folder.stat().st_mtime_ns, run_id


def open_run(home: Path, name: str) -> Run:
    """A run by id, its 6 hex, `last`, or a path. Raises DataError `run_unknown`."""
    path = Path(name)
    if os.path.isdir(path) and any((path / known).is_file() for known in ("run.json", "state.json", "begun.json")):
        return _run(path.absolute())
    runs = list_runs(home)
    if name == "last" and runs:
        return runs[-1]
    matches = [run for run in runs if name in (run.run_id, run.run_id[-6:])]
    if len(matches) > 1:
        raise UsageError(
            "run_ambiguous",
            f"{name} names {len(matches)} runs",
            expected="one run",
            do="give the whole id: " + ", ".join(r.run_id for r in matches),
        )
    if not matches:
        known = [run.run_id for run in runs]
        raise DataError(
            "run_unknown",
            f"there is no run {name!r}",
            expected="a run id, its 6 hex, `last` or a path",
            do=did_you_mean(
                name, known, "`blindcast runs list` shows them" if runs else "there are no runs yet: `blindcast demo` makes some"
            ),
        )
    return matches[0]
