"""`blindcast regrade RUN`."""

from __future__ import annotations

import os

import click

from blindcast.cli.completion import offers, runs
from blindcast.cli.door import Answer, command, current_host
from blindcast.cli.opening import home_of
from blindcast.cli.score import flags_text

__all__ = ["regrade"]


@command("regrade", short_help="grade a run again from its commitments", epilog="Example: blindcast regrade last")
@click.argument("name", metavar="RUN", shell_complete=runs)
@click.option("--grader", shell_complete=offers("graders"), help="A grader by name; the run's own by default.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="An option of the grader.")
def regrade(name: str, grader: str | None, settings: tuple[str, ...]) -> Answer:
    """Grade a run again from its sealed commitments; no predictor runs."""
    from blindcast.regrading import regrade_run
    from blindcast.runs import open_run
    from blindcast.spec import apply_settings

    options = apply_settings({}, settings)
    data = regrade_run(current_host(), open_run(home_of(), name), grader, options, home=home_of(), environ=os.environ)
    flags = flags_text(data)
    lines = [
        f"run {data['run_id']}",
        f"from    {data['from']['grader']}  {data['from']['reward_bps']!r} bps{flags}",
        f"to      {data['grader']}  {data['reward_bps']!r} bps{flags}",
        f"chain   {data['chain']}",
        f"largest difference of a window   {data['max_abs_diff_bps']!r} bps",
    ]
    return Answer(data, "\n".join(lines), next=f"blindcast runs show {data['run_id'][-6:]}")
