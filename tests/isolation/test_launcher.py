"""The zygote is renewed when it is lost, and ends with its server."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from blindcast.records import Policy
from blindcast.walk import RunBroken
from blindcast.wire import ChildSeat
from blindcast_isolation import launcher
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
        select.select([child.pidfd], [], [])
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
