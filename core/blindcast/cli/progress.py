"""Progress on stderr: a bar on a terminal, one line per 10 % elsewhere (F-02)."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

import click

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

__all__ = ["Advance", "progress"]


class Advance(Protocol):
    """What `progress` gives to the block."""

    def advance(self, n: int = 1, **shown: object) -> None:
        """Count `n` more as done; `shown` are words for the line, such as `failures=2`."""
        ...


def _words(shown: dict[str, object]) -> str:
    return "  ".join(f"{name.replace('_', ' ')} {value}" for name, value in shown.items())


class _Silent:
    def advance(self, n: int = 1, **shown: object) -> None:
        """Nothing is said under -q."""


class _Lines:
    """One line whenever another tenth is done, once the work has lasted `after_s` seconds."""

    def __init__(self, total: int, label: str, unit: str, after_s: float) -> None:
        self._total, self._label, self._unit = max(total, 1), label, unit
        self._from_s = time.monotonic() + after_s
        self._done = 0
        self._tenths = 0

    def advance(self, n: int = 1, **shown: object) -> None:
        self._done += n
        tenths = min(10 * self._done // self._total, 10)
        if tenths > self._tenths and time.monotonic() >= self._from_s:
            self._tenths = tenths
            said = f"{self._label}: {self._done} of {self._total} {self._unit} ({10 * tenths} %)  {_words(shown)}"
            click.echo(said.rstrip(), err=True)


class _Bar:
    """A rich bar; the task is redrawn by rich's own thread."""

    def __init__(self, bar: Progress, task: TaskID) -> None:
        self._bar, self._task = bar, task

    def advance(self, n: int = 1, **shown: object) -> None:
        self._bar.update(self._task, advance=n, shown=_words(shown))


@contextmanager
def _drawn(total: int, label: str, unit: str) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn(unit, markup=False),
        TextColumn("{task.fields[shown]}", markup=False),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield _Bar(bar, bar.add_task(label, total=total, shown=""))


@contextmanager
def progress(total: int, label: str, unit: str = "windows", *, after_s: float = 2.0) -> Iterator[Advance]:
    """Show that `total` units are being worked off; call `.advance(n, **shown)` on what it yields.

    Where there is no terminal, nothing is said of work that is done within `after_s`.
    """
    from blindcast.cli.door import current_door

    if current_door().quiet:
        yield _Silent()
    elif sys.stderr.isatty():
        with _drawn(total, label, unit) as bar:
            yield bar
    else:
        yield _Lines(total, label, unit, after_s)
