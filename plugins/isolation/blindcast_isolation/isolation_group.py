"""The `isolation` group: what isolation this host really gives, shown and tried (I-90 to I-93)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from blindcast.cli.door import Answer, command, current_door, current_host
from blindcast.cli.group import group
from blindcast_isolation.showing import show

if TYPE_CHECKING:
    from blindcast_isolation.corpus.launch import Arm

__all__ = ["isolation"]


@group(short_help="show and try the isolation of this host", epilog="Example: blindcast isolation test --quick")
def isolation() -> None:
    """Show what isolation this host gives, and try it with the attack corpus."""


@command("isolation.test", name="test", epilog="Example: blindcast isolation test --backend privdrop --attack A-01")
@click.option("--backend", "backends", multiple=True, metavar="NAME", help="This backend alone; repeat for several.")
@click.option("--attack", "attacks", multiple=True, metavar="ID|FILE", help="This attack alone, or anyone's predictor; repeat for several.")
@click.option("--quick", "is_quick", is_flag=True, help="Ten attacks instead of all.")
@click.option("--mutate", "is_mutating", is_flag=True, help="Switch each control off in turn, instead: its witness must get through.")
def test(backends: tuple[str, ...], attacks: tuple[str, ...], is_quick: bool, is_mutating: bool) -> Answer:
    """Run the attack corpus under each backend and compare the verdicts with those expected, in throw-away namespaces."""
    if is_mutating:
        if attacks or is_quick:
            raise click.UsageError("--mutate tries the controls' own witnesses: it takes neither --attack nor --quick")
        return _mutated(backends)
    from blindcast_isolation.corpus import table
    from blindcast_isolation.corpus.launch import arms, launch
    from blindcast_isolation.corpus.rows import QUICK, QUICK_VARIANTS, find, rows

    for name in backends:
        current_host().find("isolations", name)  # an unknown name is refused before anything is run
    chosen = find(attacks or QUICK) if attacks or is_quick else rows()
    is_quiet = current_door().quiet

    def tell(arm: Arm, column: Mapping[str, Any]) -> None:
        if not is_quiet:
            cells = f"{len(column['rows'])} attacks" if column["available"] else f"not available: {column['reason']}"
            click.echo(f"isolation test: {arm.title}: {cells}", err=True)

    columns = {
        arm.title: column
        for arm, column in launch(arms(backends), chosen, variants=QUICK_VARIANTS if is_quick else None, told=tell).items()
    }
    is_long = any(not row.cells for row in chosen)  # a stranger's predictor: all that is known of it is its variants
    found = table.data(columns)
    return Answer(found, table.text(columns, is_long=is_long), exit_code=0 if found["ok"] else 1)


def _mutated(backends: tuple[str, ...]) -> Answer:
    from blindcast_isolation import mutation
    from blindcast_isolation.corpus.launch import arms, mutate

    wanted = [arm for arm in arms(backends) if not arm.is_again and arm.backend != "hook"]
    columns = {arm.title: column for arm, column in mutate(wanted).items()}
    is_proved = all(row["ok"] for column in columns.values() for row in column["mutations"])
    return Answer({"ok": is_proved, "columns": columns}, mutation.text(columns), exit_code=0 if is_proved else 1)


isolation.add_command(show)
isolation.add_command(test)
