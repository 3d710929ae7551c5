"""What `run`, `submit` and `demo` share: one walk with a bar, its grade object and its text."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from blindcast.cli.door import current_door, progress
from blindcast.cli.score import score_text, signed

if TYPE_CHECKING:
    from blindcast.backends import Backend
    from blindcast.conduct import Conduct, Order
    from blindcast.court import Court
    from blindcast.host import Host
    from blindcast.jobs import Ticket
    from blindcast.walk import Walked

__all__ = ["appointed", "own_ticket", "walk"]


@contextmanager
def appointed(host: Host, court: Court) -> Iterator[Backend]:
    """The isolation backend that satisfies the task and the environment, named on stderr, ended with the block (I-06)."""
    from blindcast.backends import appoint, close, isolation_line

    backend = appoint(host, court.spec.isolation.require, court.policy, os.environ, root=os.geteuid() == 0)
    try:
        if not current_door().quiet:
            click.echo(isolation_line(backend.report), err=True)
        yield backend
    finally:
        close(backend.isolation)


def own_ticket() -> Ticket:
    """A place in the queue of this process; all that one command runs is one session (I-80). Raises UsageError."""
    from blindcast.jobs import own_queue

    queue, warning = own_queue(os.environ)
    if warning is not None:
        click.echo(f"warning: {warning}", err=True)
    return queue.enter("operator")


def walk(host: Host, court: Court, order: Order, backend: Backend, *, label: str) -> tuple[Conduct, dict[str, Any], str]:
    """Conduct one run with a progress bar; returns the run, its grade object and the text for people."""
    from blindcast.arena import conduct
    from blindcast.backends import isolation_line
    from blindcast.documents import Keeper
    from blindcast.lock import lock

    used = [*court.used, ("isolations", backend.name)]
    keeper = Keeper(lock(host, [host.find(kind, name) for kind, name in used]))
    seen = {"failures": 0, "reward": 0.0}

    with progress(len(court.task(order.split, order.index).targets), label) as bar:

        def watch(_run: Conduct, walked: Walked, reward: float | None) -> None:
            seen["failures"] += len(walked.failures)
            shown: dict[str, object] = {"failures": int(seen["failures"])}
            if reward is not None:
                seen["reward"] += reward
                shown["reward_bps"] = signed(seen["reward"])
            bar.advance(1, **shown)

        run, folder = conduct(court, order, backend, environ=os.environ, keep=keeper, watch=watch, turn=own_ticket)
    step_s = court.grid.window_s / court.grid.steps
    text = score_text(keeper.grade, grid=f"grid {court.grid.steps}x{step_s:g} s", isolation=isolation_line(run.backend.report))
    return run, {**keeper.grade, "folder": str(folder)}, text
