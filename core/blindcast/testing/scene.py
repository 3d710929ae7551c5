"""A scene for isolation backends: small invented windows, and predictors, honest and not, in real children (IS-01 to IS-10)."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from attrs import field, frozen

from blindcast.buffer import RevealBuffer
from blindcast.contracts import Isolation
from blindcast.local import LocalSeat
from blindcast.records import Blinded, Grid, Limits, Policy
from blindcast.reveal import Reveal, ready
from blindcast.view import Context
from blindcast.walk import RunBroken, Walked, Walker
from blindcast.wire import ChildSeat, RunClock

__all__ = ["Ran", "alive", "head_here", "run"]

GRID = Grid(60, 4)
COLUMNS = ("t", "p", "q")
ROWS = 80


@frozen(eq=False)
class Ran:
    """What a run left: its windows, why it broke, what was printed, and how long it took from the first question on, in s."""

    walked: Sequence[Walked] = field(factory=list)
    broken: RunBroken | None = None
    output: str = ""
    took_s: float = 0.0

    @property
    def reasons(self) -> list[str]:
        """Why windows and the run ended, where they did not end well."""
        windows = [walked.reason or failure.code for walked in self.walked for failure in walked.failures]
        return windows + ([self.broken.reason] if self.broken is not None else [])

    @property
    def head(self) -> str:
        """The head of the sealed chain, in hex."""
        return self.walked[-1].head.hex() if self.walked else ""


def window(seed: int) -> Reveal:
    """A seeded window of ROWS rows, revealed evenly."""
    rng = np.random.default_rng(seed)
    until = np.array([ROWS * i // GRID.steps for i in range(GRID.steps + 1)])
    ladder = rng.normal(size=(ROWS, len(COLUMNS))).astype(np.float32)
    path = np.concatenate([[0.0], np.cumsum(rng.normal(0, 5, GRID.steps))])
    return ready(Blinded(COLUMNS, ladder, ladder[:, :2].copy(), path, until, until))


def _context() -> Context:
    return Context(GRID, 1.0, COLUMNS, 7)


def run(isolation: Isolation, folder: Path, source: str, *, limits: Limits | None = None, targets: int = 1) -> Ran:
    """Walk the predictor of `source`, written into `folder`, over invented windows in a child. Raises DeniedError."""
    policy = Policy(limits or Limits())
    (folder / "predictor.py").write_text(source, encoding="utf-8")
    buffer, clock = RevealBuffer(COLUMNS, ROWS, ROWS, GRID.steps + 1), RunClock(policy.limits.run_wall_s)
    walked: list[Walked] = []
    seats: list[ChildSeat] = []
    broken: RunBroken | None = None

    def seat() -> ChildSeat:
        seats.append(ChildSeat(isolation, folder, policy, _context(), "carry", buffer, lambda: [window(100), window(101)], clock))
        return seats[-1]

    started = time.monotonic()
    try:
        first = seat()
        started = time.monotonic()
        for target in Walker(seat, lambda *_: None, GRID.steps).walk(first, [window(k) for k in range(targets)]):
            walked.append(target)
    except RunBroken as ending:
        broken = ending
    finally:
        buffer.close()
    return Ran(walked, broken, "".join(one.output for one in seats), time.monotonic() - started)


def head_here(source: str, targets: int) -> str:
    """The head of the chain of the same walk in this process, for a source of the kit's own."""
    space: dict[str, object] = {}
    exec(source, space)
    kind = space["Predictor"]
    assert isinstance(kind, type)
    seat = LocalSeat(kind, _context(), [window(100), window(101)])
    return [*Walker(lambda: seat, lambda *_: None, GRID.steps).walk(seat, [window(k) for k in range(targets)])][-1].head.hex()


def alive() -> frozenset[int]:
    """Processes that this process can see and that have not ended."""
    found = set()
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                state = Path("/proc", name, "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
            except OSError:
                continue
            if state not in "ZX":
                found.add(int(name))
    return frozenset(found)
