"""Honest predictors: isolation changes nothing of what they give, and tells them what to do where it refuses (K-10 to K-12)."""

from __future__ import annotations

import importlib.util
import itertools
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import field, frozen

from blindcast.buffer import RevealBuffer
from blindcast.contracts import Child, Isolation
from blindcast.local import LocalSeat
from blindcast.records import IsolationReport, Policy, SpawnSpec
from blindcast.reveal import Reveal
from blindcast.walk import Walked, Walker
from blindcast.wire import ChildSeat, RunClock
from blindcast_isolation.corpus.market import CONTEXT, GRID, reveals
from blindcast_isolation.corpus.rows import ATTACKS

HONEST = ("c01_constant", "c02_rolling", "c03_lightgbm", "c04_sklearn", "c05_scipy", "c06_arrow")
GREEDY = {"c03_lightgbm": ("threads = 8", "threads = 1"), "c04_sklearn": ("jobs = -1", "jobs = 1")}
MODEL = '{"weight": 0.1, "bias": 0.02}\n'
TIMES = 1.1  # CPU seconds over wall seconds (K-10)

Place = Callable[[str], Path]


@frozen(eq=False)
class Counted:
    """A backend that keeps its children, and when each was asked for."""

    isolation: Isolation
    children: list[tuple[float, Child]] = field(factory=list)

    def probe(self, policy: Policy) -> IsolationReport:
        return self.isolation.probe(policy)

    def spawn(self, spec: SpawnSpec) -> Child:
        asked = time.monotonic()
        self.children.append((asked, self.isolation.spawn(spec)))
        return self.children[-1][1]


def source(name: str, *, alone: bool = False) -> str:
    """An honest predictor; `alone` with one thread where it asks for more."""
    text = (ATTACKS / f"{name}.py").read_text(encoding="utf-8")
    many, one = GREEDY.get(name, ("", ""))
    assert many in text
    return text.replace(many, one) if alone else text


def written(folder: Path, text: str) -> Path:
    (folder / "predictor.py").write_text(text, encoding="utf-8")
    (folder / "model.json").write_text(MODEL)
    return folder


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Write a predictor's source and its model into a folder of their own."""
    return lambda text: written(tmp_path_factory.mktemp("honest"), text)


@frozen(eq=False)
class Run:
    """A run to its end: the targets in the order they were walked, and what the children printed."""

    walked: Sequence[Walked]
    output: str
    took: Sequence[tuple[float | None, float]]  # CPU and wall seconds of each child

    @property
    def heads(self) -> list[bytes]:
        return [walked.head for walked in self.walked]

    @property
    def curves(self) -> list[bytes]:
        return [walked.curves.tobytes() for walked in self.walked]


def run(isolation: Isolation, folder: Path, *, is_fresh: bool = False, targets: Sequence[Reveal] = ()) -> Run:
    warmups, both = reveals()
    rows = max(len(reveal.ladder[0]) for reveal in (*warmups, *both))
    buffer, clock = RevealBuffer(CONTEXT.columns, rows, rows, GRID.steps + 1), RunClock(60.0)
    state: Any = "fresh" if is_fresh else "carry"
    seats: list[ChildSeat] = []
    counted = Counted(isolation)

    def seat() -> ChildSeat:
        seats.append(ChildSeat(counted, folder, Policy(), CONTEXT, state, buffer, lambda: warmups, clock))
        return seats[-1]

    try:
        walked = list(Walker(seat, lambda *_: None, GRID.steps, state).walk(seat(), targets or both))
    finally:
        buffer.close()
    ended = time.monotonic()
    took = [(child.usage().cpu_s, ended - asked) for asked, child in counted.children]
    return Run(walked, "".join(seat.output for seat in seats), took)


def here(folder: Path) -> list[Walked]:
    """The same walk in this process."""
    spec = importlib.util.spec_from_file_location("predictor", folder / "predictor.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    warmups, targets = reveals()
    seat = LocalSeat(module.Predictor, CONTEXT, warmups)
    return list(Walker(lambda: seat, lambda *_: None, GRID.steps).walk(seat, targets))


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[Walked]]:
    """What an honest predictor gives in this process with one thread; walked once."""
    walked: dict[str, list[Walked]] = {}

    def give(name: str) -> list[Walked]:
        if name not in walked:
            walked[name] = here(written(tmp_path_factory.mktemp(name), source(name, alone=True)))
        return walked[name]

    return give


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Isolation, str], Run]:
    """What an honest predictor gives under a backend; walked once."""
    runs: dict[tuple[int, str], Run] = {}

    def give(backend: Isolation, name: str) -> Run:
        key = id(backend), name
        if key not in runs:
            runs[key] = run(backend, written(tmp_path_factory.mktemp(name), source(name)))
        return runs[key]

    return give


@pytest.mark.parametrize("name", HONEST)
def test_isolation_changes_nothing_of_what_an_honest_predictor_gives(
    backend: Isolation, given: Callable[[Isolation, str], Run], known: Callable[[str], list[Walked]], name: str
) -> None:
    """C-01 to C-06, I-33, K-10: byte-equal curves and links, one thread here against what it asks for there; no word, no refusal."""
    there, expected = given(backend, name), known(name)
    assert there.heads == [walked.head for walked in expected]
    assert there.curves == [walked.curves.tobytes() for walked in expected]
    assert [walked.failures for walked in there.walked] == [(), ()]
    assert there.output == ""
    assert there.walked[0].curves.any()
    assert (there.curves[0] == there.curves[1]) is (name == "c01_constant")


@pytest.mark.parametrize("name", GREEDY)
def test_many_jobs_take_one_core(backend: Isolation, given: Callable[[Isolation, str], Run], name: str) -> None:
    """K-10, I-61: CPU seconds over wall seconds, from spawn to end."""
    ((cpu_s, wall_s),) = given(backend, name).took
    assert cpu_s is None or cpu_s <= TIMES * wall_s


def test_a_model_file_is_read_and_not_written(backend: Isolation, place: Place) -> None:
    """K-10: C-06 goes on when it is refused."""
    checked = """

class Predictor(Predictor):
    def predict(self, view):
        assert self.model["weight"] == 0.1 and self.refused
        return super().predict(view)
"""
    folder = place(source("c06_arrow") + checked)
    done = run(backend, folder)
    assert [walked.failures for walked in done.walked] == [(), ()]
    assert (folder / "model.json").read_text() == MODEL
    assert sorted(path.name for path in folder.iterdir()) == ["model.json", "predictor.py"]


@pytest.mark.parametrize("name", ["c02_rolling", "c03_lightgbm"])
def test_fresh_windows_give_the_same_curves_in_any_order(backend: Isolation, place: Place, name: str) -> None:
    """K-11, I-35: C-02 keeps copies, which nothing of an earlier window may reach; C-03 is fitted anew in each child."""
    _, targets = reveals()
    folder = place(source(name))
    forth, back = run(backend, folder, is_fresh=True, targets=targets), run(backend, folder, is_fresh=True, targets=targets[::-1])
    assert forth.curves == back.curves[::-1]
    assert forth.curves[0] != forth.curves[1]


def test_what_a_predictor_keeps_is_seen_in_carry(backend: Isolation, place: Place) -> None:
    """K-11: the guard of the test above; there the order does matter."""
    _, targets = reveals()
    folder = place(source("c02_rolling"))
    assert run(backend, folder, targets=targets).curves != run(backend, folder, targets=targets[::-1]).curves[::-1]


COPY = "a view is read-only: take `.copy()` of what you want to change"
FILE = "isolation: a predictor writes no file; keep what you need in memory"
PROCESS = "isolation: a predictor starts no process; use n_jobs=1, or threads"
NETWORK = "isolation: a predictor has no network"
LISTED = "is not among the libraries of this court: numpy, pandas, pyarrow, scipy, sklearn, lightgbm, and the standard library"

HELPED = [
    ("view.ladder.iloc[0, 0] = 1.0", COPY),
    ("view.ladder['bid'].to_numpy()[:] = 1.0", COPY),
    ("view.events.to_numpy()[0] = 1.0", COPY),
    ("view.y[0] = 1.0", COPY),
    ("view.ladder.to_numpy().sort()", COPY),
    ("open('cache.json', 'w')", FILE),
    ("open('/tmp/cache.json', 'w')", FILE),
    ("import os; os.makedirs('models')", FILE),
    ("import shutil; shutil.copyfile(__file__, 'copy.py')", FILE),
    ("import subprocess; subprocess.run(['ls'])", PROCESS),
    ("import os; os.system('ls')", PROCESS),
    ("import os; os.fork()", PROCESS),
    ("import socket; socket.create_connection(('127.0.0.1', 9))", NETWORK),
    ("import urllib.request; urllib.request.urlopen('http://127.0.0.1:9')", NETWORK),
    ("import pandas; pandas.read_csv('http://127.0.0.1:9/rows.csv')", NETWORK),
    ("import torch", f"'torch' {LISTED}"),
    ("import importlib; importlib.import_module('xgboost')", f"'xgboost' {LISTED}"),
    ("import blindcast", f"'blindcast' {LISTED}"),
]
UNHELPED = [
    ("import tempfile; tempfile.mkdtemp()", FILE),
    ("import tempfile; tempfile.TemporaryFile()", FILE),
    ("import multiprocessing; multiprocessing.Pool(2)", PROCESS),
    ("import concurrent.futures as f; f.ProcessPoolExecutor(2).submit(print).result()", PROCESS),
    ("import multiprocessing as m; m.get_context('spawn').Process(target=print).start()", PROCESS),
    ("import os; os.popen('ls')", PROCESS),
    ("import asyncio; asyncio.new_event_loop()", NETWORK),
]
"""Refused by the kernel or by the standard library before the hook can say a word."""


def told(walk: Callable[..., Any], backend: Isolation, lines: Sequence[str]) -> list[str]:
    """What each line of a predictor was told: two lines a window, an honest answer after each."""
    text = (
        f"LINES = iter({list(lines)!r})\n"
        "class Predictor:\n"
        "    def predict(self, view):\n"
        "        line = next(LINES, '') if view.anchor % 2 else ''\n"
        "        exec(line, globals() | {'view': view})\n"
        "        return 0.0\n"
    )
    done = walk(backend, text, targets=-(-len(lines) // 2))
    assert done.broken is None
    return [failure.trace for walked in done.walked for failure in walked.failures]


def test_who_trips_over_the_lock_down_is_told_what_to_do(backend: Isolation, walk: Callable[..., Any]) -> None:
    """K-12, I-25, I-42: a read-only view, no folder to write to, no process, no network, a library that is not on the list."""
    texts = told(walk, backend, [line for line, _ in HELPED])
    assert len(texts) == len(HELPED)
    unhelpful = [(line, text[-300:]) for (line, words), text in zip(HELPED, texts, strict=True) if words not in text]
    assert unhelpful == []


def test_who_is_refused_before_the_hook_can_speak_is_told_too(backend: Isolation, walk: Callable[..., Any]) -> None:
    """K-12."""
    texts = told(walk, backend, [line for line, _ in UNHELPED])
    assert [line for (line, words), text in itertools.zip_longest(UNHELPED, texts, fillvalue=("", "")) if words not in text] == []


def test_a_copy_is_ones_own(backend: Isolation, walk: Callable[..., Any]) -> None:
    """K-12, I-45: what the text advises works."""
    text = """
    class Predictor:
        def predict(self, view):
            own = view.copy()
            own.y[:] = 1.0
            return float(own.y[0]) / 2
    """
    done = walk(backend, text)
    assert done.broken is None
    assert np.array_equal(done.walked[0].curves[0], [0.0, 0.5, 0.5, 0.5, 0.5])
