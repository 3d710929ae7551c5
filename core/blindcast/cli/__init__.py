"""The command line: a table of commands whose modules are imported on use, and one envelope (`door`)."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

import blindcast
from blindcast.cli import door  # the module: names of commands, such as run, would be overwritten by their modules
from blindcast.errors import FaultError
from blindcast.names import name_key

if TYPE_CHECKING:
    from blindcast.host import Host

__all__ = ["COMMANDS", "main"]

COMMANDS: dict[str, tuple[str, str]] = {  # name -> (target, summary); help is written from the summaries alone (P-26)
    "demo": ("blindcast.cli.demo:demo", "walk three predictors over the embedded market"),
    "doctor": ("blindcast.cli.doctor:doctor", "say what this machine can promise"),
    "plugins": ("blindcast.cli.plugins:plugins", "list plugins and check them"),
    "task": ("blindcast.cli.task:task", "build a task from a pool, show what it holds"),
    "new": ("blindcast.cli.new:new", "write a predictor to start from"),
    "check": ("blindcast.cli.check:check", "check a predictor on the synthetic market"),
    "run": ("blindcast.cli.run:run", "walk a predictor over a train task"),
    "submit": ("blindcast.cli.submit:submit", "walk a predictor once, counted"),
    "regrade": ("blindcast.cli.regrade:regrade", "grade a run again from its commitments"),
    "runs": ("blindcast.cli.runs:runs", "list runs, show one"),
}


class Table(click.Group):
    """The core commands, then those that plugins offer; a core name always wins."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Core names in the table's order, then plugin names in theirs."""
        return [*COMMANDS, *self._offered(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command of that name. Raises FaultError when a plugin's does not import (PV-19)."""
        if cmd_name in COMMANDS:
            module, _, attribute = COMMANDS[cmd_name][0].partition(":")
            found: click.Command = getattr(importlib.import_module(module), attribute)
            return found
        host = _host(ctx)
        if name_key(cmd_name.rpartition("/")[2]) not in {name_key(offered.name) for offered in host.offers("commands")} and not host.broken:
            return None  # click says so, with the nearest name
        return host.command(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write name and summary of each; nothing is imported for it."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])
        offered = self._offered(ctx)
        if offered:
            with formatter.section("Commands of plugins"):
                formatter.write_dl(list(offered.items()))

    def _offered(self, ctx: click.Context) -> dict[str, str]:
        core = {name_key(name) for name in COMMANDS}
        host = _host(ctx)
        return {offered.name: offered.summary for offered in host.offers("commands") if name_key(offered.name) not in core}


def _host(ctx: click.Context) -> Host:
    return ctx.find_root().ensure_object(door.Door).host


def _version(ctx: click.Context, _option: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        click.echo(f"blindcast {blindcast.__version__}")
        ctx.exit()


@click.command(cls=Table, context_settings={"help_option_names": ["-h", "--help"]}, epilog="Example: blindcast demo")
@click.option("--version", is_flag=True, expose_value=False, is_eager=True, callback=_version, help="Print the version.")
@click.option("--strict-plugins", is_flag=True, help="Refuse to start while any plugin is broken.")
@click.pass_context
def entry(ctx: click.Context, strict_plugins: bool) -> None:
    """A court for forecasts: blind windows, sealed commitments, a grade and how far to believe it."""
    if strict_plugins:
        _refuse_broken(_host(ctx))


entry.params += door.flags()


def _refuse_broken(host: Host) -> None:
    if host.broken:
        raise FaultError(
            "plugin_broken",
            f"{len(host.broken)} broken: " + "; ".join(broken.line for broken in host.broken),
            expected="every plugin sound (--strict-plugins)",
            do="blindcast plugins list -v shows where each failed; BLINDCAST_DISABLE_PLUGINS leaves one out",
            broken=[broken.plugin for broken in host.broken],
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code (DESIGN 8)."""
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # gives memory back: the walker's peak does not grow (B-M1)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")  # a locale that is not UTF-8 gets `?`, not a crash (F-01)
    return door.run(entry, sys.argv[1:] if argv is None else argv)
