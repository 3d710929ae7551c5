"""One zygote per backend and test session, and a small blind market to walk."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from attrs import field, frozen

from blindcast.buffer import RevealBuffer
from blindcast.records import Blinded, Grid, Limits, Policy
from blindcast.reveal import Reveal, ready
from blindcast.view import Context
from blindcast.walk import RunBroken, Walked, Walker
from blindcast.wire import ChildSeat, RunClock
from blindcast_isolation.backend import Backend
from blindcast_isolation.bwrap import Bubblewrap
from blindcast_isolation.hook import Hook
from blindcast_isolation.landlock import Landlock
from blindcast_isolation.privdrop import PrivDrop
from blindcast_isolation.userns import UserNamespaces

GRID = Grid(60, 4)
COLUMNS = ("bid", "ask", "weight")
ROWS = 40

BACKENDS: dict[str, type[Backend]] = {
    "privdrop": PrivDrop,
    "userns": UserNamespaces,
    "bwrap": Bubblewrap,
    "landlock": Landlock,
    "hook": Hook,
}
NEEDED_IN_CI = ("privdrop", "userns", "bwrap")


@frozen(eq=False)
class Walk:
    """What a run left: its targets, why it broke, what was printed and the seats that were made."""

    walked: list[Walked]
    broken: RunBroken | None
    output: str
    seats: list[ChildSeat] = field(factory=list)

    @property
    def reasons(self) -> list[str | None]:
        return [walked.reason for walked in self.walked]

    @property
    def codes(self) -> list[str]:
        return [failure.code for walked in self.walked for failure in walked.failures]


def window(seed: int) -> Reveal:
    """A seeded window of ROWS rows, revealed evenly."""
    random = np.random.default_rng(seed)
    until = np.array([ROWS * i // GRID.steps for i in range(GRID.steps + 1)])
    ladder, events = random.normal(size=(ROWS, len(COLUMNS))).astype("f4"), random.normal(size=(ROWS, 2)).astype("f4")
    path = np.concatenate([[0.0], np.cumsum(random.normal(0, 5, GRID.steps))])
    return ready(Blinded(COLUMNS, ladder, events, path, until, until))


def opened(name: str) -> Iterator[Backend]:
    """A backend that is available here; a skip with its reason, or in CI a failure, where it is not."""
    backend = BACKENDS[name]()
    try:
        report = backend.probe(Policy())
        if not report.available:
            if os.environ.get("CI") == "true" and name in NEEDED_IN_CI:
                pytest.fail(f"{name} is not available in CI: {report.reason}")
            pytest.skip(f"{name} is not available here: {report.reason}")
        yield backend
    finally:
        backend.close()


@pytest.fixture(scope="session")
def hook() -> Iterator[Backend]:
    yield from opened("hook")


@pytest.fixture(scope="session")
def privdrop() -> Iterator[Backend]:
    yield from opened("privdrop")


@pytest.fixture(scope="session")
def userns() -> Iterator[Backend]:
    yield from opened("userns")


@pytest.fixture(scope="session")
def bwrap() -> Iterator[Backend]:
    yield from opened("bwrap")


@pytest.fixture(scope="session")
def landlock() -> Iterator[Backend]:
    yield from opened("landlock")


@pytest.fixture(params=list(BACKENDS))
def backend(request: pytest.FixtureRequest) -> Backend:
    found: Backend = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def submission(tmp_path: Path) -> Callable[[str], Path]:
    """Write the source of a predictor into a folder of its own."""

    def write(source: str) -> Path:
        folder = tmp_path / "submission"
        folder.mkdir(exist_ok=True)
        (folder / "predictor.py").write_text(textwrap.dedent(source))
        return folder

    return write


@pytest.fixture
def seated(submission: Callable[[str], Path]) -> Iterator[Callable[[Backend, str], ChildSeat]]:
    """Seat a predictor's source with no warm-ups and open its first window."""
    buffer = RevealBuffer(COLUMNS, ROWS, ROWS, GRID.steps + 1)

    def seat(backend: Backend, source: str) -> ChildSeat:
        made = ChildSeat(backend, submission(source), Policy(), Context(GRID, 1.0, COLUMNS, 7), "carry", buffer, list, RunClock(60.0))
        made.open(0, window(0))
        return made

    yield seat
    buffer.close()


@pytest.fixture
def walk(submission: Callable[[str], Path]) -> Callable[..., Walk]:
    """Walk a predictor's source over `targets` windows after `warmups` warm-ups."""

    def go(backend: Backend, source: str, *, targets: int = 2, warmups: int = 1, limits: Limits | None = None) -> Walk:
        policy, context = Policy(limits or Limits()), Context(GRID, 1.0, COLUMNS, 7)
        folder, clock = submission(source), RunClock(policy.limits.run_wall_s)
        buffer = RevealBuffer(COLUMNS, ROWS, ROWS, GRID.steps + 1)
        seats: list[ChildSeat] = []
        shown: Sequence[Reveal] = [window(100 + i) for i in range(warmups)]

        def seat() -> ChildSeat:
            seats.append(ChildSeat(backend, folder, policy, context, "carry", buffer, lambda: shown, clock))
            return seats[-1]

        walked: list[Walked] = []
        try:
            for target in Walker(seat, lambda *_: None, GRID.steps).walk(seat(), [window(i) for i in range(targets)]):
                walked.append(target)
        except RunBroken as broken:
            return Walk(walked, broken, "".join(s.output for s in seats), seats)
        finally:
            buffer.close()
        return Walk(walked, None, "".join(s.output for s in seats), seats)

    return go
