"""The small blind market of the corpus, and a walk through it by the court's own parent code."""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from blindcast.buffer import RevealBuffer
from blindcast.contracts import Isolation
from blindcast.records import Blinded, Grid, Policy
from blindcast.reveal import Reveal, ready
from blindcast.view import Context
from blindcast.walk import RunBroken, Seat, Walked, Walker
from blindcast.wire import ChildSeat, RunClock

__all__ = ["COLUMNS", "CONTEXT", "GRID", "Walk", "reveals", "walk", "walk_seat"]

GRID: Final = Grid(60, 4)
COLUMNS: Final = ("bid", "ask", "weight")
ROWS: Final = 40
CONTEXT: Final = Context(GRID, 1.0, COLUMNS, 7)
_WARMUP: Final = 100  # seed of the first warm-up

State = Literal["carry", "fresh"]


@frozen(eq=False)
class Walk:
    """What a run left: its targets, why it broke ("" where it did not), and every text that came with it."""

    walked: Sequence[Walked]
    broken: str = ""
    output: str = ""
    texts: tuple[str, ...] = ()  # tracebacks and logs
    altered: str = ""  # what a child changed of rows that were revealed

    @property
    def curves(self) -> bytes:
        """All curves, little-endian float64."""
        return b"".join(walked.curves.astype("<f8").tobytes() for walked in self.walked)

    @property
    def ended(self) -> str:
        """The reason that ended the run, else the first that ended a window, else ""."""
        return self.broken or next((walked.reason for walked in self.walked if walked.reason), "")

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of the refused commitments."""
        return tuple(failure.code for walked in self.walked for failure in walked.failures)


def _window(seed: int) -> Reveal:
    random = np.random.default_rng(seed)
    until = np.array([ROWS * i // GRID.steps for i in range(GRID.steps + 1)])
    ladder = random.normal(100.0, 1.0, (ROWS, len(COLUMNS))).astype("<f4")
    events = random.normal(size=(ROWS, 2)).astype("<f4")
    path = np.concatenate([[0.0], np.cumsum(random.normal(0, 5, GRID.steps))])
    return ready(Blinded(COLUMNS, ladder, events, path, until, until))


def reveals(targets: int = 2, warmups: int = 1) -> tuple[tuple[Reveal, ...], tuple[Reveal, ...]]:
    """(warm-ups, targets): seeded, the same each time."""
    return tuple(_window(_WARMUP + i) for i in range(warmups)), tuple(_window(i) for i in range(targets))


def walk_seat(seat: Seat) -> list[Walked]:
    """The targets walked by a seat that is there already."""
    return list(Walker(lambda: seat, lambda *_: None, GRID.steps).walk(seat, reveals()[1]))


def walk(isolation: Isolation, submission: Path, policy: Policy, state: State = "carry", windows: int = 2) -> Walk:
    """Run a submission from its start to its end. Raises DeniedError where no child can be had."""
    shown, targets = reveals(windows)
    buffer, clock = RevealBuffer(COLUMNS, ROWS, ROWS, GRID.steps + 1), RunClock(policy.limits.run_wall_s)
    seats: list[ChildSeat] = []
    walked: list[Walked] = []
    broken, words = "", list[str]()
    altered: list[str] = []

    def store(ordinal: int, anchor: int, *_sealed: bytes) -> None:
        """At each commitment: the rows shown so far still read as they were written (A-09)."""
        if not _reads_as(buffer, targets[ordinal], anchor):
            altered.append(f"rows of target {ordinal} had changed by anchor {anchor}")

    def seat() -> ChildSeat:
        seats.append(ChildSeat(isolation, submission, policy, CONTEXT, state, buffer, lambda: shown, clock))
        return seats[-1]

    try:
        for target in Walker(seat, store, GRID.steps, state).walk(seat(), targets):
            walked.append(target)  # one by one: those before a break stand
    except RunBroken as ending:
        broken = ending.reason
        words.append(ending.trace)
    finally:
        buffer.close()
    words += [failure.trace for target in walked for failure in target.failures] + [one.trace for one in seats]
    return Walk(walked, broken, "".join(one.output for one in seats), tuple(filter(None, words)), "; ".join(altered[:1]))


def _reads_as(buffer: RevealBuffer, reveal: Reveal, anchor: int) -> bool:
    """Whether the buffer, opened anew, holds what was revealed up to `anchor`, or nothing once its window was lost."""
    fd = buffer.reopened()
    try:
        with mmap.mmap(fd, buffer.size, prot=mmap.PROT_READ) as memory:
            held = bytes(memory)
    finally:
        os.close(fd)
    tables: tuple[NDArray[Any], ...] = (reveal.ladder, reveal.events, reveal.path[None, :])
    for section, table, rows in zip(buffer.sections, tables, reveal.rows[anchor], strict=True):
        shape = (len(section.columns), section.cap_rows)
        shown = np.ndarray(shape, section.dtype, held, section.offset)[:, :rows]
        if shown.any() and shown.tobytes() != table[:, :rows].tobytes():
            return False
    return True
