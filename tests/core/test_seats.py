"""The seats of a run: a lost zygote, fresh windows, and the slot that a run holds (isolation.md I-32, I-35, I-82)."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from blindcast import backends
from blindcast.cli import walking
from blindcast.contracts import Child, Isolation
from blindcast.ledger import Ledger
from blindcast.records import IsolationReport, Policy, SpawnSpec
from blindcast.testing.runner import Said

Cli = Callable[..., Said]
Write = Callable[[str], Path]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for the zygote in /proc")

FITS = "class Predictor:\n    def fit(self, warmups): pass\n    def predict(self, view): return 0.5\n"
STILL = "class Predictor:\n    def predict(self, view): return 0.5\n"
DIES = "import os\nclass Predictor:\n    def predict(self, view): os._exit(9)\n"


class Watched:
    """A backend that is seen at work; after each spawn in `deadly`, counted from 1, its zygote gets SIGKILL."""

    def __init__(self, inner: Isolation, deadly: tuple[int, ...] = ()) -> None:
        self.inner, self.deadly = inner, deadly
        self.specs: list[SpawnSpec] = []
        self.children: list[Child] = []

    def probe(self, policy: Policy) -> IsolationReport:
        return self.inner.probe(policy)

    def spawn(self, spec: SpawnSpec) -> Child:
        self.specs.append(spec)
        self.children.append(self.inner.spawn(spec))
        if len(self.specs) in self.deadly:
            for pid in zygotes():
                os.kill(pid, signal.SIGKILL)
            if self.children[-1].pidfd >= 0:  # else it was lost before it had begun
                select.select([self.children[-1].pidfd], [], [])  # its children die with it
        return self.children[-1]

    def close(self) -> None:
        backends.close(self.inner)


def zygotes() -> list[int]:
    """Our own children that fork predictors."""
    own = [int(pid) for path in Path("/proc/self/task").glob("*/children") for pid in path.read_text().split()]
    return [pid for pid in own if b"blindcast_isolation" in Path(f"/proc/{pid}/cmdline").read_bytes()]


@pytest.fixture
def watched(blindcast_cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Watched]]:
    """Put a watched hook around what commands appoint; the list fills as they do."""
    real, made = backends.appoint, []

    def watch(*deadly: int) -> list[Watched]:
        def appoint(*args: Any, **named: Any) -> backends.Backend:
            backend = real(*args, **named)
            made.append(Watched(backend.isolation, deadly))
            return evolve(backend, isolation=made[-1])

        monkeypatch.setenv("BLINDCAST_REQUIRE_ISOLATION", "hook")
        monkeypatch.setattr("blindcast_isolation.launcher._START_S", 60.0, raising=False)  # a busy machine is no lost zygote
        monkeypatch.setattr(backends, "appoint", appoint)
        return made

    return watch


def record_of(said: Said) -> Any:
    """`isolation` of the run's run.json."""
    return json.loads((Path(said.data["folder"]) / "run.json").read_text())["isolation"]


def counted(tmp_path: Path) -> list[str]:
    return [entry.kind for entry in Ledger(tmp_path / "home" / "ledger.sqlite").entries()]


def test_a_run_whose_zygote_is_lost_before_the_reveal_is_tried_again(
    blindcast_cli: Cli, blindcast_task: Path, submission: Write, watched: Callable[..., list[Watched]], tmp_path: Path
) -> None:
    """I-32: once, and nobody sees it."""
    made = watched(1)
    said = blindcast_cli("run", submission(FITS), "--task", blindcast_task, "--json")
    assert (said.exit_code, said.data["status"]) == (0, "success")
    assert said.data["windows"]["restarts"] == 0
    assert [len(one.specs) for one in made] == [2]
    assert counted(tmp_path) == ["trial", "score"]


def test_a_zygote_that_is_lost_twice_is_told_and_costs_nothing(
    blindcast_cli: Cli, blindcast_task: Path, submission: Write, watched: Callable[..., list[Watched]], tmp_path: Path
) -> None:
    """I-32, I-73: exit 6."""
    made = watched(1, 2, 3)
    said = blindcast_cli("run", submission(FITS), "--task", blindcast_task, "--json")
    assert (said.exit_code, said.document["error"]["code"]) == (6, "zygote_lost")
    assert [len(one.specs) for one in made] == [2]
    assert counted(tmp_path) == []


def test_a_zygote_that_is_lost_after_the_reveal_ends_the_run(
    blindcast_cli: Cli, blindcast_task: Path, submission: Write, watched: Callable[..., list[Watched]], tmp_path: Path
) -> None:
    """I-32: what was revealed is not shown twice; the trial is spent."""
    watched(2)
    said = blindcast_cli("run", submission(DIES), "--task", blindcast_task, "--keep-going", "--json")
    assert (said.exit_code, said.data["status"], said.data["reason"]) == (6, "failed", "zygote_lost")
    assert counted(tmp_path) == ["trial", "score"]


def test_a_run_holds_its_slot_until_its_tree_is_gone(
    blindcast_cli: Cli,
    blindcast_task: Path,
    submission: Write,
    watched: Callable[..., list[Watched]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """I-82, I-61: its children are bound to the slot's CPU, and none is there before it has one."""
    made, cpu = watched(), min(os.sched_getaffinity(0))
    seen: list[list[object]] = []

    @contextmanager
    def turn() -> Iterator[int]:
        seen.append([len(one.children) for one in made])
        yield cpu
        seen.append([child.usage().reason for one in made for child in one.children])

    monkeypatch.setattr(walking, "own_ticket", turn)
    assert blindcast_cli("run", submission(STILL), "--task", blindcast_task).exit_code == 0
    assert seen == [[0], ["ok"]]
    assert {spec.cpu for one in made for spec in one.specs} == {cpu}
    assert {tmp_path / "home"} == {path for one in made for spec in one.specs for path in spec.policy.raw_roots}


@pytest.mark.parametrize(("source", "mode"), [(FITS, "refit"), (STILL, "none")])
def test_a_fresh_run_says_how_its_windows_started(
    blindcast_cli: Cli, blindcast_task: Path, submission: Write, source: str, mode: str
) -> None:
    """I-35: `fresh.mode`; null in `carry`."""
    path = submission(source)
    assert record_of(blindcast_cli("run", path, "--task", blindcast_task, "--json"))["fresh"] is None
    blindcast_task.write_text(blindcast_task.read_text() + '[isolation]\nstate = "fresh"\n')
    assert record_of(blindcast_cli("run", path, "--task", blindcast_task, "--json"))["fresh"] == {"mode": mode}


def test_refits_that_cannot_end_are_refused_before_anything_is_counted(
    blindcast_cli: Cli, blindcast_task: Path, submission: Write, tmp_path: Path
) -> None:
    """I-35: `refit_too_slow`, exit 7; 39 fits of 1 s and more do not go into 30 s."""
    text = (
        blindcast_task.read_text().replace("windows = 12", "windows = 44").replace("targets = 3\nwarmups = 2", "targets = 40\nwarmups = 1")
    )
    blindcast_task.write_text(text.replace("step_wall_s = 2", 'run_wall_s = 30\n[isolation]\nstate = "fresh"'))
    slow = "import time\n" + FITS.replace("pass", "time.sleep(1)")
    said = blindcast_cli("run", submission(slow), "--task", blindcast_task, "--json")
    assert (said.exit_code, said.document["error"]["code"]) == (7, "refit_too_slow")
    assert counted(tmp_path) == []
