"""`blindcast submit FILE --task T`."""

from __future__ import annotations

from pathlib import Path

import click

from blindcast.cli.completion import predictors
from blindcast.cli.door import Answer, command, current_host
from blindcast.cli.opening import open_court, submission_path
from blindcast.cli.walking import appointed, walk

__all__ = ["submit"]


@command("submit", short_help="walk a predictor once, counted", epilog="Example: blindcast submit imbalance --task task.toml")
@click.argument("file", shell_complete=predictors)
@click.option("--task", "task_file", required=True, type=click.Path(path_type=Path), help="The task file.")
@click.option("--split", default="test", show_default=True, type=click.Choice(["train", "test"]), help="On test it spends a holdout query.")
@click.option("--index", default=0, show_default=True, type=int, help="Which task of the split.")
def submit(file: str, task_file: Path, split: str, index: int) -> Answer:
    """Walk a predictor once over every target; what fails is a counted zero and texts are redacted."""
    from blindcast.conduct import Order

    host = current_host()
    court = open_court(host, task_file)
    order = Order(submission_path(host, file), "test" if split == "test" else "train", index, "submit")
    with appointed(host, court) as backend:
        conducted, grade, text = walk(host, court, order, backend, label=file)
    return Answer(grade, text, conducted.exit_code, next=f"blindcast runs show {conducted.run_id[-6:]}", warnings=tuple(grade["warnings"]))
