"""`blindcast task build|show`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from blindcast.cli.door import Answer, command, current_host
from blindcast.cli.group import group
from blindcast.cli.opening import home_of, open_court

if TYPE_CHECKING:
    from blindcast.court import Court

__all__ = ["task"]


@group(short_help="build a task from a pool, show what it holds", epilog="Example: blindcast task show task.toml")
def task() -> None:
    """Build a task from a pool, show what it holds."""


@command("task.build", epilog="Example: blindcast task build --pool synthetic -o task.toml --set split.targets=24")
@click.option("--pool", required=True, help="A pool folder, or `synthetic` for the embedded market.")
@click.option("-o", "--output", "output", required=True, type=click.Path(path_type=Path), help="The task file to write.")
@click.option("--set", "settings", multiple=True, metavar="TABLE.KEY=VALUE", help="A key of the spec, as often as needed.")
@click.option("--force", is_flag=True, help="Overwrite an existing task file.")
def build(pool: str, output: Path, settings: tuple[str, ...], force: bool) -> Answer:
    """Build a task file from a pool and check that it makes tasks."""
    from blindcast.court import convene
    from blindcast.errors import DataError, UsageError
    from blindcast.spec import DEFAULTS, SCHEMA, apply_settings, parse_spec, spec_text

    if output.exists() and not force:
        raise UsageError(
            "task_exists", f"{output} exists already", expected="a new file", do="choose another name, or --force to overwrite it"
        )
    source = {"use": "synthetic"} if pool == "synthetic" else {"use": "orderbook", "pool": _relative(Path(pool), output)}
    table = apply_settings({"schema": SCHEMA, "name": output.stem, "source": source, **DEFAULTS}, settings)
    spec = parse_spec(table, output.name)
    court = convene(current_host(), spec, beside=output.absolute().parent, home=home_of(), environ=os.environ)
    data = _facts(court)  # refuses a pool that makes no task before anything is written
    aside = output.with_name(f".{output.name}.aside")
    try:
        aside.write_text(spec_text(spec), encoding="utf-8")
        aside.replace(output)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise DataError(
            "task_not_written",
            f"{output} could not be written: {error.strerror}",
            expected="a folder you may write to",
            do="choose another -o",
        ) from error
    return Answer({"file": str(output), **data}, _text(court, data), next=_next(output, data), warnings=tuple(data["warnings"]))


@command("task.show", epilog="Example: blindcast task show task.toml")
@click.argument("file", type=click.Path(path_type=Path))
def show(file: Path) -> Answer:
    """Show a task's windows, splits, overlap and identity."""
    court = open_court(current_host(), file)
    data = _facts(court)
    return Answer({"file": str(file), **data}, _text(court, data), next=_next(file, data), warnings=tuple(data["warnings"]))


task.add_command(build)
task.add_command(show)


def _next(file: Path, data: dict[str, Any]) -> str:
    """A walk that this task has: without a train task only `submit` finds one."""
    return f"blindcast {'run' if data['tasks']['train'] else 'submit'} imbalance --task {file}"


def _relative(pool: Path, output: Path) -> str:
    """The pool as the task file should name it: relative to the file where it lies below or beside it."""
    absolute, folder = pool.absolute(), output.absolute().parent
    return os.path.relpath(absolute, folder) if not pool.is_absolute() and not os.environ.get("BLINDCAST_DATA_DIR") else str(pool)


def _facts(court: Court) -> dict[str, Any]:
    from blindcast.ledger import Ledger

    counts, dropped = court.counts(), court.dropped()
    reasons: dict[str, int] = {}
    for slot in dropped:
        for reason in slot.reasons:
            reasons[reason] = reasons.get(reason, 0) + 1
    cap = court.spec.budget.holdout_queries
    spent = Ledger.of(court.home, os.environ).queries(court.pool_digest)
    truth = getattr(court.source, "truth", None)
    warnings = [*court.warnings, *(["no_train_tasks: the test task fits, but no train task does"] if counts.train == 0 else [])]
    return {
        "name": court.spec.name,
        "digest": court.identity(),
        "pool_digest": court.pool_digest,
        "grader": court.grader_id,
        "grid": {"window_s": court.grid.window_s, "steps": court.grid.steps},
        "windows": {"valid": len(court.refs), "dropped": len(dropped), "reasons": dict(sorted(reasons.items()))},
        "tasks": {"train": counts.train, "test": counts.test},
        "purged": 0,
        "overlap": court.overlap(),
        "holdout": {"queries": cap, "spent": spent, "left": max(0, cap - spent)},
        "source": {"use": court.spec.source.use, "truth": truth() if callable(truth) else None},
        "warnings": warnings,
    }


def _text(court: Court, data: dict[str, Any]) -> str:
    from blindcast.tasks import overlap_line

    windows, tasks, split = data["windows"], data["tasks"], court.spec.split
    reasons = ", ".join(f"{reason} {n}" for reason, n in windows["reasons"].items())
    lines = [
        f"task {data['name']}  {data['digest'][:12]}  grid {court.grid.steps}x{court.grid.window_s / court.grid.steps:g} s",
        f"windows           {windows['valid']} valid, {windows['dropped']} dropped" + (f" ({reasons})" if reasons else ""),
        f"tasks             train {tasks['train']}, test {tasks['test']}   (targets {split.targets}, warm-ups {split.warmups}, "
        f"test windows {split.test_windows}, embargo {split.embargo_windows})",
        f"overlap           {overlap_line(data['overlap'])}",
        f"grader            {data['grader']}",
        f"holdout queries   {data['holdout']['spent']} spent, {data['holdout']['left']} left",
    ]
    if data["source"]["truth"] is not None:
        lines.append(
            "truth             "
            + ", ".join(f"{key} {value}" for key, value in data["source"]["truth"].items() if not isinstance(value, dict | list))
        )
    return "\n".join(lines)
