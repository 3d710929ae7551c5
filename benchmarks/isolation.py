"""The bars of isolation.md section 13, on this machine: medians of ROUNDS, and whether it was quiet enough to judge them.

A tree of fifty processes is started and killed in a namespace of its own, which needs `unshare`; started by root.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from blindcast.buffer import RevealBuffer
from blindcast.frames import Step, encode
from blindcast.records import Blinded, Grid, Policy, SpawnSpec
from blindcast.reveal import Reveal, ready
from blindcast.view import Context
from blindcast.wire import ChildSeat, RunClock
from blindcast_isolation.backend import Backend
from blindcast_isolation.bwrap import Bubblewrap
from blindcast_isolation.hook import Hook
from blindcast_isolation.landlock import Landlock
from blindcast_isolation.privdrop import PrivDrop
from blindcast_isolation.userns import UserNamespaces

ROUNDS = 50
COLD_ROUNDS = 7
GRID = Grid(900, 15)
COLUMNS = tuple(f"c{i}" for i in range(81))
ROWS = 9_000
TREE = 50
CONSTANT = "class Predictor:\n    def predict(self, view):\n        return 0.5\n"
BUSH = """
import ctypes, time
class Predictor:
    def predict(self, view):
        libc = ctypes.CDLL(None)
        for _ in range(50):
            if libc.fork() == 0:
                libc.setsid()
                time.sleep(60)
        return [0.5, 0.5]
"""


def window() -> Reveal:
    random = np.random.default_rng(1)
    until = np.array([ROWS * i // GRID.steps for i in range(GRID.steps + 1)])
    ladder, events = random.normal(size=(ROWS, len(COLUMNS))).astype("f4"), random.normal(size=(ROWS, 2)).astype("f4")
    return ready(Blinded(COLUMNS, ladder, events, np.zeros(GRID.steps + 1), until, until))


@contextmanager
def opened(kind: type[Backend], without: tuple[str, ...] = ()) -> Iterator[Backend]:
    backend = kind(without)
    try:
        backend.probe(Policy())
        yield backend
    finally:
        backend.close()


def median_ms(act: Callable[[], float], rounds: int = ROUNDS) -> tuple[float, float, float]:
    act()
    found = sorted(act() * 1e3 for _ in range(rounds))
    return statistics.median(found), found[0], found[-1]


class Bench:
    """A submission in a folder, one buffer, one window."""

    def __init__(self, folder: Path, source: str = CONSTANT) -> None:
        (folder / "predictor.py").write_text(source)
        self.folder = folder
        self.buffer = RevealBuffer(COLUMNS, ROWS, ROWS, GRID.steps + 1)
        self.reveal = window()

    def to_ready(self, backend: Backend) -> float:
        """Seconds from asking to the frame `ready`."""
        fd = self.buffer.reopened()
        started = time.perf_counter()
        child = backend.spawn(SpawnSpec(self.folder, fd, self.buffer.size, Policy()))
        os.read(child.answer, 1 << 16)
        took_s = time.perf_counter() - started
        os.close(fd)
        child.kill("cancelled")
        return took_s

    def seat(self, backend: Backend) -> ChildSeat:
        return ChildSeat(backend, self.folder, Policy(), Context(GRID, 1.0, COLUMNS, 7), "carry", self.buffer, list, RunClock(60.0))

    def start_and_end(self, backend: Backend) -> float:
        """Seconds of a run that asks nothing."""
        started = time.perf_counter()
        self.seat(backend).leave()
        return time.perf_counter() - started

    def anchors(self, backend: Backend) -> list[float]:
        """Seconds of each anchor of one window: rows revealed, frame, answer checked."""
        seat = self.seat(backend)
        seat.open(0, self.reveal)
        took = []
        for anchor in range(GRID.steps):
            started = time.perf_counter()
            seat.ask(anchor)
            took.append(time.perf_counter() - started)
        seat.shut()
        seat.leave()
        return took

    def round_trip(self, backend: Backend) -> float:
        """Seconds of one frame out and its answer back, checked, 15 horizons, nothing revealed: the median of a thousand."""
        seat = self.seat(backend)
        seat.open(0, self.reveal)
        line, took = seat._line, []
        seat._seq += 1
        for seq in range(seat._seq, seat._seq + 1_000):
            nonce, started = os.urandom(16), time.perf_counter()
            line.step(encode(Step(seq, nonce, 0, 0, (1, 1, 1))), seq, nonce, GRID.steps, time.monotonic(), time.monotonic() + 5)
            took.append(time.perf_counter() - started)
        seat._seq += 1_000
        seat.shut()
        seat.leave()
        return statistics.median(took)

    def kill_tree(self, backend: Backend) -> float:
        """Seconds from the decision to kill until a tree of fifty is gone."""
        seat = self.seat(backend)
        seat.open(0, self.reveal)
        with suppress(Exception):  # the answer is one too many: its fifty stand
            seat.ask(0)
        child = seat._child
        assert child is not None
        started = time.perf_counter()
        child.kill("cancelled")
        return time.perf_counter() - started


def say(what: str, figures: tuple[float, float, float], bar: float, unit: str = "ms") -> None:
    print(f"{what:<58} {figures[0]:8.2f} {unit}  [{figures[1]:.2f}, {figures[2]:.2f}]  bar <= {bar:g}", flush=True)


def killing() -> None:
    """Inside a namespace of its own: each kill method with fifty processes, seccomp off."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o711)
        bench = Bench(Path(folder), BUSH)
        for title, without in (
            ("cgroup.kill", ()),
            ("pidns", ("cgroup-kill",)),
            ("uid helper", ("cgroup-kill", "pidns")),
        ):
            with opened(PrivDrop, ("seccomp", "hook", *without)) as backend:
                say(f"kill decision to a tree of {TREE} gone, {title}", median_ms(lambda b=backend: bench.kill_tree(b), 10), 50)  # type: ignore[misc]


def main() -> None:
    if sys.argv[1:] == ["killing"]:
        killing()
        return
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    print(f"load {load:.2f} a CPU: {'quiet' if load < 0.5 else 'noisy, not to be judged'}")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o711)
        bench = Bench(Path(folder))
        kinds: list[type[Backend]] = [PrivDrop] if os.geteuid() == 0 else []
        starts: dict[str, float] = {}
        for kind in (*kinds, UserNamespaces, Landlock, Hook):
            with opened(kind) as backend:
                name = kind.design.name
                say(f"{name}: zygote fork to `ready`", median_ms(lambda b=backend: bench.to_ready(b)), 25)  # type: ignore[misc]
                run = median_ms(lambda b=backend: bench.start_and_end(b))  # type: ignore[misc]
                starts[name] = run[0]
                say(f"{name}: a run's start and end", run, 30 + starts.get("hook", run[0]))
                trip = bench.round_trip(backend) * 1e6
                say(f"{name}: framed round trip, 15 horizons", (trip, trip, trip), 60, "us")
                walks = [bench.anchors(backend) for _ in range(ROUNDS)]
                late = statistics.median(walk[-1] for walk in walks) * 1e6
                early = statistics.median(walk[1] for walk in walks) * 1e6
                say(f"{name}: reveal of 600 x 82 and frame, last anchor", (late, early, late), 200, "us")
                print(f"{'':<58} last against second {late / early:8.2f}  bar <= 1.5")
        strongest = next(iter(starts))
        print(f"{strongest} minus hook, start and end: {starts[strongest] - starts['hook']:.2f} ms  bar <= 30")
        with opened(Bubblewrap) as backend:
            say("bwrap (cold) to `ready`", median_ms(lambda: bench.to_ready(backend), COLD_ROUNDS), 5_000)
    if os.geteuid() == 0:
        words = ["unshare", "-m", "-p", "-n", "-i", "-f", "--mount-proc", "--kill-child", "--propagation", "private"]
        subprocess.run([*words, sys.executable, __file__, "killing"], check=True)


if __name__ == "__main__":
    main()
