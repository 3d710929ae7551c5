"""`blindcast run FILE --task T`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from blindcast.cli.completion import predictors
from blindcast.cli.door import Answer, command, current_host
from blindcast.cli.opening import open_court, submission_path
from blindcast.cli.walking import appointed, walk

if TYPE_CHECKING:
    from blindcast.conduct import Conduct

__all__ = ["run"]


@command("run", short_help="walk a predictor over a train task", epilog="Example: blindcast run imbalance --task task.toml --index 3")
@click.argument("file", shell_complete=predictors)
@click.option("--task", "task_file", required=True, type=click.Path(path_type=Path), help="The task file.")
@click.option("--split", default="train", show_default=True, help="train; the test split is for `submit`.")
@click.option("--index", default=0, show_default=True, type=int, help="Which train task.")
@click.option("--seed", type=int, help="The seed that the predictor is told, for this run alone.")
@click.option("--keep-going", is_flag=True, help="Go on after a failure.")
@click.option("--warmups", "is_dry", is_flag=True, help="Dry run over the warm-ups alone; counts nothing.")
def run(file: str, task_file: Path, split: str, index: int, seed: int | None, keep_going: bool, is_dry: bool) -> Answer:
    """Walk a predictor over a train task; it counts as one trial."""
    from blindcast.conduct import Order
    from blindcast.errors import UsageError

    if split != "train":
        known = split == "test"
        raise UsageError(
            "use_submit" if known else "bad_split",
            "`run` does not walk the test split" if known else f"there is no split {split!r}",
            expected="--split train",
            do="`blindcast submit FILE --task T` looks at the test split, counted"
            if known
            else "name train, or use `blindcast submit` for test",
        )
    host = current_host()
    court = open_court(host, task_file)
    submission = submission_path(host, file)
    if is_dry:
        from blindcast.cli.rehearsing import rehearse_answer

        return rehearse_answer(host, court, submission, index, seed)
    with appointed(host, court) as backend:
        conducted, grade, text = walk(host, court, Order(submission, "train", index, "run", not keep_going, seed), backend, label=file)
    extra = {"traceback": _traceback(conducted), "stdout": conducted.output}
    shown = [text, *(part for part in (extra["traceback"],) if part)]
    return Answer(
        {**grade, **extra},
        "\n".join(shown),
        conducted.exit_code,
        next=f"blindcast runs show {conducted.run_id[-6:]}",
        warnings=(*grade["warnings"], *_endings(conducted)),
    )


def _endings(conducted: Conduct) -> Iterator[str]:
    """Why windows lost their predictor, a line a reason, and what the hook refused (I-73, K-02)."""
    for reason, windows in conducted.endings.items():
        where = f"{windows} window{'s' * (windows != 1)}"
        spent = reason == "restarts_spent"
        yield f"{reason}: {where} never asked" if spent else f"{reason}: the predictor's process was lost in {where}"
    if conducted.trips:
        yield f"tripwire: the predictor says that {conducted.trips} of its acts were refused"


def _traceback(conducted: Conduct) -> str | None:
    """The full text of the first failure that has one, or of what ended the run (G-51: `run` shows everything)."""
    texts = [failure.trace for walked in conducted.walked for failure in walked.failures if failure.trace]
    return (texts[0] if texts else conducted.trace).rstrip().replace("\r", "") or None
