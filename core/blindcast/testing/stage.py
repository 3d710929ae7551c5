"""A stage for submissions: the synthetic market, blinded, and real children that walk it (PR-01 to PR-07)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
from attrs import evolve, field, frozen

from blindcast.backends import appoint, close
from blindcast.buffer import RevealBuffer
from blindcast.contracts import Anonymizer, DataSource, Isolation
from blindcast.host import Host
from blindcast.records import F64, Grid, Policy
from blindcast.reveal import Reveal, ready
from blindcast.submission import take
from blindcast.view import Context
from blindcast.walk import Failure, RunBroken, Seat, Walked, Walker
from blindcast.wire import ChildSeat, RunClock

__all__ = ["Played", "Stage", "flat", "isolated", "replaced", "staged"]

WINDOW_S: Final = 900
SEED: Final = 5
MARKET: Final[Mapping[str, object]] = {"windows": 12, "seed": 3}
NO_SALT: Final = bytes(32)


@frozen(eq=False)
class Played:
    """How one run went: its windows, its sealed links, why it broke, what was printed, the slowest step and the fit, in s."""

    walked: Sequence[Walked]
    links: Sequence[bytes]
    broken: RunBroken | None
    output: str
    slowest_s: float
    fit_s: float

    @property
    def failures(self) -> list[Failure]:
        """Every refused answer and ending, in order; last what broke the run."""
        every = [evolve(failure, code=walked.reason or failure.code) for walked in self.walked for failure in walked.failures]
        return every + ([Failure(len(self.walked), None, self.broken.reason, None, self.broken.trace)] if self.broken is not None else [])


Seating = Callable[[Policy, Context, RevealBuffer, Sequence[Reveal], RunClock], Seat]


def isolated(isolation: Isolation, folder: Path) -> Seating:
    """Seats in real children of a backend; `folder` is the submission's private copy."""

    def seat(policy: Policy, context: Context, buffer: RevealBuffer, warmups: Sequence[Reveal], clock: RunClock) -> Seat:
        return ChildSeat(isolation, folder, policy, context, "carry", buffer, lambda: warmups, clock)

    return seat


class _Timed:
    """A seat with a clock beside it."""

    def __init__(self, seat: Seat) -> None:
        self._seat = seat
        self.slowest_s = 0.0

    @property
    def trace(self) -> str:
        return self._seat.trace

    @property
    def output(self) -> str:
        return str(getattr(self._seat, "output", ""))

    def open(self, ordinal: int, reveal: Reveal) -> None:
        self._seat.open(ordinal, reveal)

    def ask(self, anchor: int) -> Sequence[float] | F64 | None:
        started = time.monotonic()
        try:
            return self._seat.ask(anchor)
        finally:
            self.slowest_s = max(self.slowest_s, time.monotonic() - started)

    def shut(self) -> None:
        self._seat.shut()

    def leave(self) -> None:
        self._seat.leave()


@frozen(eq=False)
class Stage:
    """One submission on the synthetic market. `folder` is its private copy, `seat` seats it; equal plays are played once."""

    folder: Path
    seat: Seating
    source: DataSource
    anonymizer: Anonymizer
    policy: Policy
    _played: dict[int, Played] = field(factory=dict)

    def reveal(self, position: int, steps: int = 15) -> Reveal:
        """One window of the market, blinded, in `steps` steps."""
        grid = Grid(WINDOW_S, steps)
        ref = self.source.windows(grid)[position].ref
        return ready(self.anonymizer.blind(self.source.window(ref, grid), NO_SALT))

    def base(self, take: int = 0) -> Played:
        """The run that most checks look at: three warm-ups, two targets. Each `take` is a fresh one, played once."""
        if take not in self._played:
            self._played[take] = self.play([self.reveal(8), self.reveal(9)], [self.reveal(k) for k in range(3)])
        return self._played[take]

    def play(self, targets: Sequence[Reveal], warmups: Sequence[Reveal]) -> Played:
        """Walk a fresh predictor, fitted on `warmups`, over `targets`."""
        every = [*targets, *warmups]
        context = Context(Grid(WINDOW_S, targets[0].steps), 1.0, targets[0].columns, SEED)
        rows, events = (max(reveal.rows[-1][part] for reveal in every) for part in (0, 1))
        buffer, clock = RevealBuffer(context.columns, rows, events, context.grid.steps + 1), RunClock(self.policy.limits.run_wall_s)
        seats: list[_Timed] = []
        links: list[bytes] = []
        walked: list[Walked] = []
        broken: RunBroken | None = None
        fit_s = 0.0

        def seat() -> Seat:
            seats.append(_Timed(self.seat(self.policy, context, buffer, warmups, clock)))
            return seats[-1]

        def store(*sealed: Any) -> None:
            links.append(sealed[-1])

        started = time.monotonic()
        try:
            first = seat()
            fit_s = time.monotonic() - started
            for target in Walker(seat, store, context.grid.steps).walk(first, targets):
                walked.append(target)
        except RunBroken as ending:
            broken = ending
        finally:
            buffer.close()
        return Played(walked, links, broken, "".join(s.output for s in seats), max((s.slowest_s for s in seats), default=0.0), fit_s)


@contextmanager
def staged(submission: Path, host: Host, environ: Mapping[str, str]) -> Iterator[Stage]:
    """A stage for `submission` under the strongest backend there is. Raises DataError `submission_refused`, DeniedError."""
    policy = Policy()
    source: DataSource = host.make(host.find("datasources", "synthetic"), MARKET)
    anonymizer: Anonymizer = host.make(host.find("anonymizers", "bps"), {})
    with TemporaryDirectory(prefix="blindcast-") as folder:
        taken = take(submission, Path(folder) / "predictor")
        backend = appoint(host, "any", policy, environ, root=os.geteuid() == 0)
        try:
            yield Stage(taken.folder, isolated(backend.isolation, taken.folder), source, anonymizer, policy)
        finally:
            close(backend.isolation)


def replaced(reveal: Reveal, other: Reveal, anchor: int) -> Reveal:
    """The window with the rows that `anchor` has not been shown replaced by those of `other`, and its path turned round from there."""
    ladder, events, knots = reveal.rows[anchor]
    ladder_from, events_from, _ = other.rows[anchor]
    path = np.concatenate([reveal.path[:knots], reveal.path[knots - 1] - 9.0 * (reveal.path[knots:] - reveal.path[knots - 1])])
    rows = [
        now if k <= anchor else (ladder + then[0] - ladder_from, events + then[1] - events_from, k + 1)
        for k, (now, then) in enumerate(zip(reveal.rows, other.rows, strict=True))
    ]
    return evolve(
        reveal,
        ladder=np.ascontiguousarray(np.concatenate([reveal.ladder[:, :ladder], other.ladder[:, ladder_from:]], axis=1)),
        events=np.ascontiguousarray(np.concatenate([reveal.events[:, :events], other.events[:, events_from:]], axis=1)),
        path=path,
        rows=tuple(rows),
    )


def flat(reveal: Reveal) -> Reveal:
    """The window with a path of zeros and one and the same book row throughout."""
    ladder = reveal.ladder.copy()
    ladder[1:] = ladder[1:, :1]
    return evolve(reveal, ladder=ladder, path=np.zeros_like(reveal.path))
