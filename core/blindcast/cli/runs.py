"""`blindcast runs list|show`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from blindcast.cli.door import Answer, command
from blindcast.cli.opening import home_of
from blindcast.cli.score import score_text, signed

if TYPE_CHECKING:
    from blindcast.runs import Run

__all__ = ["runs"]


@click.group(short_help="list runs, show one")
def runs() -> None:
    """List runs, show one."""


@command("runs.list", name="list", epilog="Example: blindcast runs list --json")
def list_() -> Answer:
    """List every run of this home, oldest first."""
    from blindcast.runs import list_runs

    found = list_runs(home_of())
    rows = [_row(run) for run in found]
    if not rows:
        return Answer({"runs": []}, "no runs yet", next="blindcast demo")
    header = f"{'run':<24} {'split':<6} {'index':>5} {'status':<12} {'reward bps':>12}  grader"
    lines = [header]
    for row in rows:
        reward = signed(row["reward_bps"], 1) if row["reward_bps"] is not None else "-"
        where = "-" if row["index"] is None else row["index"]
        lines.append(f"{row['run_id']:<24} {row['split'] or '-':<6} {where:>5} {row['status']:<12} {reward:>12}  {row['grader'] or '-'}")
    return Answer({"runs": rows}, "\n".join(lines), next="blindcast runs show last")


@command("runs.show", epilog="Example: blindcast runs show last")
@click.argument("name", metavar="RUN")
def show(name: str) -> Answer:
    """Show one run: a run id, its 6 hex, `last` or a path."""
    from blindcast.runs import open_run

    run = open_run(home_of(), name)
    if not run.is_whole:
        windows, links = run.sealed()
        data = {**_row(run), "sealed": {"windows": windows, "links": links}, "folder": str(run.folder), "grade": None}
        text = (
            f"run {run.run_id}  {run.status}\nsealed until then: {links} commitments in {windows} windows\nwhat was charged stays charged"
        )
        return Answer(data, text, next="blindcast runs list")
    grade = run.facts["grade"]
    isolation = run.facts["isolation"]
    active = ", ".join(control["id"] for control in isolation["controls"] if control["state"] == "active")
    grid = run.facts["spec"]["grid"]
    text = score_text(
        grade, grid=f"grid {grid['steps']}x{grid['window_s'] / grid['steps']:g} s", isolation=f"isolation {isolation['backend']} ({active})"
    )
    return Answer(
        {**_row(run), "sealed": None, "folder": str(run.folder), "grade": grade},
        f"{text}\nfolder {run.folder}",
        next=f"blindcast regrade {run.run_id[-6:]}",
        warnings=tuple(grade["warnings"]),
    )


runs.add_command(list_)
runs.add_command(show)


def _row(run: Run) -> dict[str, Any]:
    grade = run.facts.get("grade") or {}
    return {
        "run_id": run.run_id,
        "status": run.status,
        "reason": run.reason,
        "split": run.facts.get("split"),
        "index": run.facts.get("index"),
        "task_digest": run.facts.get("task_digest"),
        "predictor_sha256": run.facts.get("predictor_sha256"),
        "grader": run.facts.get("grader"),
        "reward_bps": grade.get("reward_bps"),
        "complete": grade.get("complete"),
        "capped": run.facts.get("capped"),
    }
