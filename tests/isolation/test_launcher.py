"""The zygote is renewed when it is lost, and ends with its server."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from blindcast.records import Policy
from blindcast.walk import RunBroken
from blindcast.wire import ChildSeat
from blindcast_isolation import launcher
from blindcast_isolation.cgroup import own_group
from blindcast_isolation.hook import Hook

STILL = "class Predictor:\n    def predict(self, view): return 0.25\n"


def test_a_zygote_that_died_is_replaced(walk: Callable[..., Any]) -> None:
    """I-32."""
    backend = Hook()
    try:
        assert backend.probe(Policy()).available
        process = backend._launcher._process
        assert process is not None
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert walk(backend, STILL).broken is None
    finally:
        backend.close()


def test_a_zygote_lost_during_a_run_ends_it(seated: Callable[[Hook, str], ChildSeat]) -> None:
    """I-32, I-73: `zygote_lost`; its children die with it."""
    backend = Hook()
    try:
        seat = seated(backend, STILL)
        seat.ask(0)
        process = backend._launcher._process
        assert process is not None
        process.send_signal(signal.SIGKILL)
        child = seat._child
        assert child is not None
        assert select.select([child.pidfd], [], [], 5.0)[0], "the child outlived its zygote"
        with pytest.raises(RunBroken, match="zygote_lost"):
            seat.ask(1)
    finally:
        backend.close()


def test_a_zygote_is_renewed_after_its_share_of_forks(monkeypatch: pytest.MonkeyPatch, walk: Callable[..., Any]) -> None:
    """I-32: 2,000 forks."""
    assert launcher.FORKS == 2_000
    monkeypatch.setattr(launcher, "FORKS", 2)
    backend = Hook()
    try:
        seen = set()
        for _ in range(4):
            assert walk(backend, STILL).broken is None
            process = backend._launcher._process
            assert process is not None
            seen.add(process.pid)
        assert len(seen) >= 2
    finally:
        backend.close()


def test_closing_ends_the_zygote(walk: Callable[..., Any]) -> None:
    """K-05: no process is left."""
    backend = Hook()
    assert backend.probe(Policy()).available
    process = backend._launcher._process
    assert process is not None
    backend.close()
    backend.close()
    assert process.poll() is not None


def test_children_that_are_asked_for_at_once_hold_no_pipe_of_each_other(seated: Callable[[Hook, str], ChildSeat]) -> None:
    """I-71: while a zygote still imports, orders wait in it; a supervisor that kept another's would hold up its end."""
    backend = Hook()
    try:
        assert backend.probe(Policy()).available
        with ThreadPoolExecutor(3) as pool:
            seats = list(pool.map(lambda _: seated(backend, STILL), range(3)))
        pipes, held = [], []
        for seat in seats:
            child = seat._child
            assert child is not None
            pipes.append({os.fstat(fd).st_ino for fd in (child.request, child.answer)})
            held.append({file for pid in _above(child.pidfd) for file in _files(pid)})
        for i, own in enumerate(held):
            assert not any(own & other for j, other in enumerate(pipes) if j != i)
        for seat in seats:
            seat.leave()
    finally:
        backend.close()


def _above(pidfd: int) -> list[int]:
    """A child's process and its supervisor's."""
    with open(f"/proc/self/fdinfo/{pidfd}") as file:
        pid = next(int(row.split()[1]) for row in file if row.startswith("Pid:"))
    with open(f"/proc/{pid}/stat") as file:
        return [pid, int(file.read().rpartition(")")[2].split()[1])]


def _files(pid: int) -> set[int]:
    return {os.stat(f"/proc/{pid}/fd/{fd}").st_ino for fd in os.listdir(f"/proc/{pid}/fd")}


@pytest.mark.parametrize("name", ["privdrop", "userns"])
def test_a_server_that_was_killed_leaves_no_process_and_no_group(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """I-71, K-05: whoever watches over the child takes its cgroup away, since nobody else is left to."""
    backend = request.getfixturevalue(name)
    if "cgroup-kill" not in backend.in_force:
        pytest.skip("no cgroup of one's own here")
    (tmp_path / "predictor.py").write_text(STILL)
    kind = type(backend)
    argv = [sys.executable, "-c", SERVER, kind.__module__, kind.__name__, str(tmp_path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == b"up\n"
        groups, held = Path(own_group()), f"blindcast-{server.pid}-*"
        processes = psutil.Process(server.pid).children(recursive=True)
        assert list(groups.glob(held))
        server.kill()
    assert psutil.wait_procs(processes, timeout=5)[1] == []
    deadline = time.monotonic() + 5
    while list(groups.glob(held)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert list(groups.glob(held)) == []


SERVER = """
import importlib, os, sys, time
from pathlib import Path
from blindcast.records import Policy, SpawnSpec
backend = getattr(importlib.import_module(sys.argv[1]), sys.argv[2])()
child = backend.spawn(SpawnSpec(Path(sys.argv[3]), os.open("/dev/null", os.O_RDONLY), 0, Policy()))
os.read(child.answer, 1)
print("up", flush=True)
time.sleep(60)
"""
