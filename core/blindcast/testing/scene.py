"""A scene for isolation backends: small invented windows, and predictors, honest and not, in real children (IS-01 to IS-10)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from attrs import field, frozen

from blindcast.buffer import RevealBuffer
from blindcast.contracts import Child, Isolation
from blindcast.local import LocalSeat
from blindcast.records import Blinded, Grid, IsolationReport, Policy, SpawnSpec
from blindcast.reveal import Reveal, ready
from blindcast.view import Context
from blindcast.walk import RunBroken, Walked, Walker
from blindcast.wire import ChildSeat, RunClock

__all__ = ["POLICY", "Ran", "head_here", "run"]

GRID = Grid(60, 4)
COLUMNS = ("t", "p", "q")
ROWS = 80
_BLOCK: Final = 61_100 + 4 * (int.from_bytes(os.urandom(2), "little") % 200)
POLICY: Final = Policy(uid_range=(_BLOCK, _BLOCK + 3))  # by lot: threads count by uid, and no other namespace sees it


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


class _Seen:
    """A backend whose newest child is at hand."""

    def __init__(self, inner: Isolation) -> None:
        self._inner = inner
        self.child: Child | None = None

    def probe(self, policy: Policy) -> IsolationReport:
        return self._inner.probe(policy)

    def spawn(self, spec: SpawnSpec) -> Child:
        self.child = self._inner.spawn(spec)
        return self.child


def run(
    isolation: Isolation,
    folder: Path,
    source: str,
    *,
    policy: Policy | None = None,
    targets: int = 1,
    cpu: int | None = None,
    look: Callable[[Child], object] = lambda _child: None,
) -> Ran:
    """Walk the predictor of `source`, written into `folder`, over invented windows in a child. Raises DeniedError.

    `look` sees the living child behind its first answer.
    """
    policy, seen = policy or POLICY, _Seen(isolation)
    (folder / "predictor.py").write_text(source, encoding="utf-8")
    buffer, clock = RevealBuffer(COLUMNS, ROWS, ROWS, GRID.steps + 1), RunClock(policy.limits.run_wall_s)
    walked: list[Walked] = []
    seats: list[ChildSeat] = []
    broken: RunBroken | None = None

    def seat() -> ChildSeat:
        shown = [window(100), window(101)]
        seats.append(ChildSeat(seen, folder, policy, _context(), "carry", buffer, lambda: shown, clock, cpu=cpu))
        return seats[-1]

    def store(_ordinal: int, anchor: int, *_: bytes) -> None:
        if anchor == 0 and seen.child is not None:
            look(seen.child)

    started = time.monotonic()
    try:
        first = seat()
        started = time.monotonic()
        for target in Walker(seat, store, GRID.steps).walk(first, [window(k) for k in range(targets)]):
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
