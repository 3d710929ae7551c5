"""One child after another: what each is given anew, when it is started, and that it has no say once it was told to leave (I-34 to I-38)."""

from __future__ import annotations

import os
import random
import select
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import psutil
import pytest
from attrs import field, frozen

from blindcast.buffer import RevealBuffer
from blindcast.contracts import Child, Isolation
from blindcast.frames import Log as LogFrame
from blindcast.frames import encode
from blindcast.records import Blinded, Grid, IsolationReport, Policy, SpawnSpec
from blindcast.reveal import Reveal, ready
from blindcast.view import Context
from blindcast.walk import RunBroken, Walked, Walker
from blindcast.wire import ChildSeat, RunClock
from blindcast_isolation.backend import Backend

GRID = Grid(60, 4)
COLUMNS = ("bid", "ask")
ROWS = 40
State = Literal["carry", "fresh"]

STILL = "class Predictor:\n    def predict(self, view): return 0.5\n"
COUNTS = """
class Predictor:
    seen = 0
    def fit(self, warmups):
        print("fit", len(warmups), flush=True)
    def predict(self, view):
        self.seen += 1
        return self.seen / 100
"""
DRAWS = """
import random
import numpy as np
class Predictor:
    def predict(self, view): return [random.random() * np.random.random() for _ in view.horizons]
"""
FORKS = """
import ctypes, os, time
class Predictor:
    def predict(self, view):
        libc = ctypes.CDLL(None)
        if view.anchor == 0 and libc.fork() == 0:
            libc.setsid()
            if libc.fork() == 0:
                time.sleep(60)
            time.sleep(60)
        return 0.5
"""


def window(seed: int) -> Reveal:
    draw = np.random.default_rng(seed)
    until = np.array([ROWS * i // GRID.steps for i in range(GRID.steps + 1)])
    ladder, events = draw.normal(size=(ROWS, len(COLUMNS))).astype("f4"), draw.normal(size=(ROWS, 2)).astype("f4")
    path = np.concatenate([[0.0], np.cumsum(draw.normal(0, 5, GRID.steps))])
    return ready(Blinded(COLUMNS, ladder, events, path, until, until))


class Watched:
    """A backend that is looked at before each child; what was seen of a child is kept, its pipes held open."""

    def __init__(self, inner: Isolation, look: Callable[[SpawnSpec], object]) -> None:
        self.inner, self.look = inner, look
        self.pipes: list[tuple[int, int]] = []
        self.held: list[int] = []
        self.pidfds: list[int] = []

    def probe(self, policy: Policy) -> IsolationReport:
        return self.inner.probe(policy)

    def spawn(self, spec: SpawnSpec) -> Child:
        self.look(spec)
        child = self.inner.spawn(spec)
        self.pipes.append((os.fstat(child.request).st_ino, os.fstat(child.answer).st_ino))
        self.held += [os.dup(child.request), os.dup(child.answer)]  # so that no number is given again
        self.pidfds.append(os.dup(child.pidfd))
        return child


@frozen(eq=False)
class Run:
    walked: list[Walked]
    broken: RunBroken | None
    seats: list[ChildSeat] = field(factory=list)
    watched: Watched | None = None

    @property
    def output(self) -> str:
        return "".join(seat.output for seat in self.seats)


@pytest.fixture
def go(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """Walk a predictor's source over `targets` windows after two warm-ups."""
    watches: list[Watched] = []

    def walk(
        backend: Isolation,
        source: str,
        *,
        state: State = "fresh",
        targets: int = 3,
        look: Callable[[SpawnSpec], object] = lambda _spec: None,
    ) -> Run:
        (tmp_path / "predictor.py").write_text(source)
        watched = Watched(backend, look)
        watches.append(watched)
        buffer, clock, seats = RevealBuffer(COLUMNS, ROWS, ROWS, GRID.steps + 1), RunClock(60.0), list[ChildSeat]()
        shown = [window(100), window(101)]

        def seat() -> ChildSeat:
            seats.append(ChildSeat(watched, tmp_path, Policy(), Context(GRID, 1.0, COLUMNS, 7), state, buffer, lambda: shown, clock))
            return seats[-1]

        walked, broken = list[Walked](), None
        try:
            walked.extend(Walker(seat, lambda *_: None, GRID.steps, state).walk(seat(), [window(i) for i in range(targets)]))
        except RunBroken as ending:
            broken = ending
        finally:
            buffer.close()
        return Run(walked, broken, seats, watched)

    yield walk
    for watched in watches:
        for fd in (*watched.held, *watched.pidfds):
            os.close(fd)


def convictions(run: Run) -> list[float]:
    """The first conviction of each anchor, window by window."""
    return [float(walked.curves[anchor, anchor + 1]) for walked in run.walked for anchor in range(GRID.steps)]


def test_in_carry_one_child_walks_the_whole_run(backend: Backend, go: Callable[..., Run]) -> None:
    """I-34: load, warm-ups, fit, all targets in time order."""
    run = go(backend, COUNTS, state="carry")
    assert (len(run.seats), run.output.count("fit 2")) == (1, 1)
    assert convictions(run) == [i / 100 for i in range(1, 13)]


def test_in_fresh_each_window_begins_where_the_first_began(backend: Backend, go: Callable[..., Run]) -> None:
    """I-35, I-37: a child of its own, warmed and fitted."""
    run = go(backend, COUNTS)
    assert (len(run.seats), run.output.count("fit 2")) == (3, 3)
    assert convictions(run) == [0.01, 0.02, 0.03, 0.04] * 3


def test_a_child_that_died_is_followed_by_one_that_is_warmed_and_fitted_again(backend: Backend, go: Callable[..., Run]) -> None:
    """I-34."""
    dies = COUNTS.replace("self.seen += 1", "self.seen += 1\n        if self.seen == 2: __import__('os')._exit(3)")
    run = go(backend, dies, state="carry", targets=2)
    assert [walked.reason for walked in run.walked] == ["exit:3"] * 2
    assert (len(run.seats), run.output.count("fit 2")) == (2, 2)


def test_random_numbers_begin_anew_in_each_windows_child(backend: Backend, go: Callable[..., Run]) -> None:
    """I-37: `random` and numpy are seeded alike for each; in `carry` they go on."""
    fresh, carried = convictions(go(backend, DRAWS)), convictions(go(backend, DRAWS, state="carry"))
    assert fresh[:4] == fresh[4:8] == fresh[8:]
    assert fresh[0] == random.Random(7).random() * np.random.RandomState([7, 0]).random_sample()  # the seed's two halves
    assert carried[:4] == fresh[:4]
    assert carried[4:8] != carried[:4]


def test_every_child_gets_pipes_of_its_own(backend: Backend, go: Callable[..., Run]) -> None:
    """I-37."""
    run = go(backend, STILL)
    assert run.watched is not None
    assert len({number for pair in run.watched.pipes for number in pair}) == 6


def test_every_child_gets_a_description_of_the_buffer_of_its_own(backend: Backend, go: Callable[..., Run]) -> None:
    """I-37: 63 bits left in the offset of one are not in the next, nor a flag, nor a row; it is for reading only."""
    seen = []

    def look(spec: SpawnSpec) -> None:
        offset, flags = os.lseek(spec.buffer_fd, 0, os.SEEK_CUR), os.get_blocking(spec.buffer_fd)
        seen.append((offset, flags, any(os.pread(spec.buffer_fd, spec.buffer_bytes, 0))))
        os.lseek(spec.buffer_fd, 1_234_567, os.SEEK_SET)
        os.set_blocking(spec.buffer_fd, False)
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.pwrite(spec.buffer_fd, b"x", 0)

    go(backend, STILL, look=look)
    assert seen == [(0, True, False)] * 3


def test_a_windows_child_is_started_when_all_of_the_one_before_is_gone(hook: Backend, go: Callable[..., Run]) -> None:
    """I-37: its tree too; here a submission may fork, as it can under no backend of class `kernel`."""
    left: list[list[psutil.Process]] = []

    def look(_spec: SpawnSpec) -> None:
        zygotes = psutil.Process().children()
        supervisors = [one for zygote in zygotes for one in zygote.children()]  # they leave last
        left.append([one for one in psutil.Process().children(recursive=True) if one not in (*zygotes, *supervisors)])

    go(hook, STILL, targets=1)  # the zygote is there
    assert go(hook, FORKS, look=look).broken is None
    assert left == [[]] * 3


def test_a_windows_child_has_ended_before_the_next_is_asked_for(backend: Backend, go: Callable[..., Run]) -> None:
    """I-37."""
    ended: list[int] = []
    watches: list[Any] = []

    class Noting(Watched):
        def spawn(self, spec: SpawnSpec) -> Child:
            ended.append(len(select.select(self.pidfds, [], [], 0)[0]))
            watches.append(self)
            return super().spawn(spec)

    noting = Noting(backend, lambda _spec: None)
    go(noting, STILL)
    assert ended == [0, 1, 2]
    for fd in (*noting.held, *noting.pidfds):
        os.close(fd)


FRAME = encode(LogFrame("info", "late"))
LATE = {
    "an exit handler": "import atexit\n        atexit.register(os.write, 4, FRAME * 100)",
    "a finalizer": "self.held = Held()",
    "its standard output": "sys.stdout = Held()",
    "a thread": "import threading\n        threading.Thread(target=flood, daemon=True).start()",
}
LEAVES = """
import os, sys, time
FRAME = {frame!r}

class Held:
    def __del__(self):
        os.write(4, FRAME * 100)
    def write(self, text): return len(text)
    def flush(self):
        os.write(4, FRAME * 100)
        time.sleep(60)

def flood():
    while os.fstat(3):  # until the pipe holds `bye`
        import select
        if select.select([3], [], [], 0)[0] and asked == 4:
            os.write(4, FRAME * 100)
            time.sleep(60)
        time.sleep(0.0001)

asked = 0

class Predictor:
    def predict(self, view):
        global asked
        asked += 1
        if asked == 1:
            self.begin()
        return 0.25
    def begin(self):
        {begin}
"""


@pytest.mark.parametrize("name", LATE)
def test_who_was_told_to_leave_has_no_say(backend: Backend, go: Callable[..., Run], name: str) -> None:
    """I-38: it leaves by `_exit` or is killed; nothing that is sent then counts, and no reason is told."""
    run = go(backend, LEAVES.format(frame=FRAME, begin=LATE[name]), state="carry", targets=1)
    assert run.broken is None
    assert [(walked.status, walked.failures) for walked in run.walked] == [("ok", ())]
    assert convictions(run) == [0.25] * 4
