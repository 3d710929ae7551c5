"""The zygote is renewed when it is lost, and ends with its server."""

from __future__ import annotations

import select
import signal
from collections.abc import Callable
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
