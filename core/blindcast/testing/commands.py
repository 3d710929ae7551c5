"""CM-01 to CM-04: what a command that a plugin offers must do (conformance.md)."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout

import click

from blindcast.names import name_key
from blindcast.testing.kit import Check, Skip, Subject

__all__ = ["CHECKS"]


def _said(command: click.Command, argv: Sequence[str]) -> tuple[int, str]:
    """Exit code and stdout of a command run through the door."""
    from blindcast.cli.door import run

    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(io.StringIO()):
        code = run(command, argv, prog=command.name or "command")
    return code, out.getvalue()


def _made(subject: Subject) -> click.Command:
    made = subject.make()
    assert isinstance(made, click.Command), f"{subject.name} is a {type(made).__name__}, not a click.Command"
    return made


def _leaves(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words that reach the command and each command below it."""
    yield words
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None:
                yield from _leaves(below, (*words, name))


def is_a_command(subject: Subject) -> None:
    """CM-01."""
    command = _made(subject)
    for words in _leaves(command):
        code, out = _said(command, [*words, "--help"])
        assert code == 0, f"{' '.join((*words, '--help'))} exits {code}"
        assert "Usage:" in out, f"{' '.join((*words, '--help'))} prints no usage"


def has_one_envelope(subject: Subject) -> None:
    """CM-02."""
    command = _made(subject)
    for words in _leaves(command):
        code, out = _said(command, [*words, "--zz-none", "--json"])
        assert code == 2, f"an unknown option exits {code}, not 2"
        try:
            document = json.loads(out)
        except ValueError as error:
            raise AssertionError(f"{' '.join(words)} --zz-none --json: stdout is not one JSON document: {out[:200]!r}") from error
        assert document["ok"] is False, f"an unknown option says ok: {document}"
        assert document["error"]["code"] == "usage", f"an unknown option is {document['error']['code']}, not usage"


def is_told_as_listed(subject: Subject) -> None:
    """CM-03: the summary equals the short help, a capital and a full stop aside."""
    if subject.offer is None:
        raise Skip("not made from an offer")
    short = _made(subject).get_short_help_str(limit=200).rstrip(".")
    summary = subject.offer.summary.rstrip(".")
    assert short.lower() == summary.lower(), f"listed as {summary!r}, its help says {short!r}"


def does_not_trespass(subject: Subject) -> None:
    """CM-04."""
    from blindcast.cli import COMMANDS

    core = {name_key(name) for name in COMMANDS}
    assert name_key(subject.name.rpartition("/")[2]) not in core, f"{subject.name} is a core command"


CHECKS: tuple[Check, ...] = (
    Check("CM-01", "a command", is_a_command),
    Check("CM-02", "one envelope", has_one_envelope),
    Check("CM-03", "told as listed", is_told_as_listed),
    Check("CM-04", "no trespass", does_not_trespass),
)
