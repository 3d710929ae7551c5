"""`blindcast runs list|show`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from blindcast.cli import completion
from blindcast.cli.door import Answer, command
from blindcast.cli.group import group
from blindcast.cli.opening import home_of
from blindcast.cli.score import score_text, signed

if TYPE_CHECKING:
    from blindcast.runs import Run

__all__ = ["runs"]


@group(short_help="list runs, show one", epilog="Example: blindcast runs list")
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
        lines.append(
            f"{row['run_id']:<24} {row['split'] or '-':<6} {where:>5} {row['status']:<12} {reward:>12}  {row['grader'] or '-'}{_flags(row)}"
        )
    return Answer({"runs": rows}, "\n".join(lines), next="blindcast runs show last")


@command("runs.show", epilog="Example: blindcast runs show last")
@click.argument("name", metavar="RUN", shell_complete=completion.runs)
def show(name: str) -> Answer:
    """Show one run: a run id, its 6 hex, `last` or a path."""
    from blindcast.runs import open_run, reading

    run = open_run(home_of(), name)
    if not run.is_whole:
        windows, links = run.sealed()
        data = {**_row(run), "sealed": {"windows": windows, "links": links}, "folder": str(run.folder), "grade": None}
        text = (
            f"run {run.run_id}  {run.status}\nsealed until then: {links} commitments in {windows} windows\nwhat was charged stays charged"
        )
        return Answer(data, text, next="blindcast runs list")
    with reading(run):
        grade = run.facts["grade"]
        return Answer(
            {**_row(run), "sealed": None, "folder": str(run.folder), "grade": grade},
            f"{_score(run.facts)}\nfolder {run.folder}",
            next=f"blindcast regrade {run.run_id[-6:]}",
            warnings=tuple(grade["warnings"]),
        )


runs.add_command(list_)
runs.add_command(show)


def _flags(row: Mapping[str, Any]) -> str:
    """What stands beside a number wherever it is printed (G-94)."""
    capped = f"  capped at {row['capped']}" if row["capped"] is not None else ""
    return capped + ("  INCOMPLETE" if row["complete"] is False else "")


def _score(facts: Mapping[str, Any]) -> str:
    """The score of a whole run, as it was printed when it ended."""
    from blindcast.backends import recorded_line

    grid = facts["spec"]["grid"]
    return score_text(
        facts["grade"],
        grid=f"grid {grid['steps']}x{grid['window_s'] / grid['steps']:g} s",
        isolation=recorded_line(facts["isolation"]),
    )


def _row(run: Run) -> dict[str, Any]:
    """What the list shows; of a damaged run, what is left of it."""

    def told(facts: Mapping[str, Any], key: str, kind: type) -> Any:
        return facts.get(key) if type(facts.get(key)) is kind else None

    grade = told(run.facts, "grade", dict) or {}
    return {
        "run_id": run.run_id,
        "status": run.status,
        "reason": run.reason,
        "split": told(run.facts, "split", str),
        "index": told(run.facts, "index", int),
        "task_digest": told(run.facts, "task_digest", str),
        "predictor_sha256": told(run.facts, "predictor_sha256", str),
        "grader": told(run.facts, "grader", str),
        "reward_bps": told(grade, "reward_bps", float),
        "complete": told(grade, "complete", bool),
        "capped": told(run.facts, "capped", int),
    }
