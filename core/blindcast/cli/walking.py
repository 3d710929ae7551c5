"""What `run`, `submit` and `demo` share: one walk with a bar, its grade object and its text."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from blindcast.cli.door import current_door, progress
from blindcast.cli.score import score_text, signed

if TYPE_CHECKING:
    from blindcast.conduct import Conduct, Order
    from blindcast.court import Court
    from blindcast.host import Host

__all__ = ["walk"]


def walk(
    host: Host, court: Court, order: Order, *, label: str, environ: Mapping[str, str] | None = None, backend: Backend | None = None
) -> tuple[Conduct, dict[str, Any], str]:
    """Conduct one run with a progress bar; returns the run, its grade object and the text for people."""
    from blindcast.arena import conduct
    from blindcast.backends import isolation_line
    from blindcast.documents import Keeper
    from blindcast.lock import lock

    keeper = Keeper(lock(host, [host.find(kind, name) for kind, name in court.used]))
    seen = {"failures": 0, "reward": 0.0}

    with progress(len(court.task(order.split, order.index).targets), label) as bar:

        def watch(run: Conduct, walked: Any, reward: float | None) -> None:
            if not run.walked[:-1] and not current_door().quiet:
                click.echo(isolation_line(run.backend.report), err=True)
            seen["failures"] += len(walked.failures)
            shown: dict[str, object] = {"failures": int(seen["failures"])}
            if reward is not None:
                seen["reward"] += reward
                shown["reward_bps"] = signed(seen["reward"])
            bar.advance(1, **shown)

        run, folder = conduct(court, host, order, environ=environ or os.environ, keep=keeper, watch=watch, backend=backend)
    step_s = court.grid.window_s / court.grid.steps
    text = score_text(keeper.grade, grid=f"grid {court.grid.steps}x{step_s:g} s", isolation=isolation_line(run.backend.report))
    return run, {**keeper.grade, "folder": str(folder)}, text
