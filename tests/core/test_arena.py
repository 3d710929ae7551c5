"""A run waits for its slot before anything is opened, and what it waited is charged to nothing (isolation.md I-81)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from blindcast.cli import walking
from blindcast.jobs import Cancelled, Queue, Ticket
from blindcast.ledger import Ledger
from blindcast.testing.runner import Said

Cli = Callable[..., Said]


def entries(tmp_path: Path) -> list[str]:
    return [entry.kind for entry in Ledger(tmp_path / "home" / "ledger.sqlite").entries()]


def test_a_request_that_is_cancelled_while_it_waits_costs_nothing(
    blindcast_cli: Cli, blindcast_task: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """I-81: not even a folder is left."""
    queue = Queue((0,))
    queue.enter("another")

    def cancelled() -> Ticket:
        ticket = queue.enter("operator")
        assert ticket.position == 1
        ticket.cancel()
        return ticket

    monkeypatch.setattr(walking, "own_ticket", cancelled)
    said = blindcast_cli("run", "flat", "--task", blindcast_task)
    assert said.exit_code != 0
    assert Cancelled.__name__ in said.stderr
    assert entries(tmp_path) == []
    assert not any((tmp_path / "home" / "runs").iterdir())


def test_a_submission_that_is_refused_never_waits(
    blindcast_cli: Cli, blindcast_task: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """FE-11: checks come before the queue."""

    @contextmanager
    def never() -> Iterator[int]:
        raise AssertionError("it asked for a slot")
        yield 0

    monkeypatch.setattr(walking, "own_ticket", never)
    (tmp_path / "empty").mkdir()
    said = blindcast_cli("run", tmp_path / "empty", "--task", blindcast_task, "--json")
    assert said.document["error"]["code"] == "submission_refused"
