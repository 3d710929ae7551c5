"""The door of every command: options that all have, one answer on stdout, errors in three parts, exit codes (DESIGN 8)."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
from attrs import define, field, frozen

from blindcast.cli.envelope import answered, failed, put, strict
from blindcast.cli.progress import Advance, progress
from blindcast.errors import BlindcastError, FaultError
from blindcast.names import did_you_mean

if TYPE_CHECKING:
    from blindcast.host import Host

__all__ = ["Advance", "Answer", "Door", "DoorCommand", "command", "current_door", "current_host", "flags", "progress", "run", "strict"]

BUG = 6  # exit code of a fault of ours
INTERRUPTED = 130


@frozen
class Answer:
    """What a command says: `data` under `--json`, else `text`; `next` and `warnings` go to stderr.

    `exit_code` 1 is a negative verdict that has data: `ok` stays true.
    """

    data: Mapping[str, Any]
    text: str
    exit_code: int = 0
    next: str = ""
    warnings: tuple[str, ...] = ()


def _open_host() -> Host:
    from blindcast.host import Host

    return Host(os.environ)


@define
class Door:
    """One invocation: how it was asked to speak, and the host that it opens on first need."""

    json: bool = False
    quiet: bool = False
    verbose: bool = False
    schema: str = "blindcast.error/1"  # until the command is known
    open_host: Callable[[], Host] = _open_host
    _host: Host | None = field(default=None, init=False)

    @property
    def host(self) -> Host:
        """The host, discovered once; what is broken or unmatched is said on stderr (P-23)."""
        if self._host is None:
            self._host = self.open_host()
            self._host.discover()
            for line in (*self._host.warnings, *(broken.line for broken in self._host.broken)):
                click.echo(f"warning: {line}", err=True)
        return self._host

    def answer(self, said: Answer) -> None:
        """Print an answer: one document or the text to stdout, the rest to stderr."""
        for warning in said.warnings:
            click.echo(f"warning: {warning}", err=True)
        if self.json:
            put(answered(self.schema, said.data))
        elif said.text:
            put(said.text if said.text.endswith("\n") else f"{said.text}\n")
        if said.next and not self.quiet:
            click.echo(f"next: {said.next}", err=True)

    def error(self, fault: BlindcastError) -> None:
        """Print a fault: three lines on stderr, or the error envelope on stdout (F-05, F-06)."""
        if self.json:
            with contextlib.suppress(FaultError, BrokenPipeError):  # then stderr is what is left
                put(failed(self.schema, fault.code, fault.what, expected=fault.expected, hint=fault.do, detail=_plain_detail(fault)))
                return
        for label, words in ((f"error[{fault.code}]", fault.what), ("expected", fault.expected), ("do", fault.do)):
            if words:
                click.echo(f"{label}: {words}", err=True)


def _plain_detail(fault: BlindcastError) -> Mapping[str, Any]:
    try:
        return {name: strict(value) for name, value in fault.detail.items()}
    except TypeError:  # an error must never fail to be told
        return {name: repr(value) for name, value in fault.detail.items()}


def current_door() -> Door:
    """The door of the running command; a fresh one outside of any."""
    context = click.get_current_context(silent=True)
    return context.find_root().ensure_object(Door) if context else Door()


def current_host() -> Host:
    """The host of the running command, discovered on first use."""
    return current_door().host


def _flag(*names: str, attribute: str, help: str) -> click.Option:
    def note(context: click.Context, _option: click.Parameter, value: bool) -> None:
        if value:
            setattr(context.find_root().ensure_object(Door), attribute, True)

    return click.Option(list(names), is_flag=True, expose_value=False, is_eager=True, callback=note, help=help)


def flags() -> list[click.Parameter]:
    """The options that every command takes."""
    return [
        _flag("--json", attribute="json", help="Print one JSON document."),
        _flag("-q", "--quiet", attribute="quiet", help="No progress and no next line."),
        _flag("-v", "--verbose", attribute="verbose", help="Tracebacks of errors too."),
    ]


class DoorCommand(click.Command):
    """A command whose function returns an Answer."""

    schema: str

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Note whose document it will be, so that usage errors carry the schema too."""
        ctx.find_root().ensure_object(Door).schema = self.schema
        return super().parse_args(ctx, args)

    def get_short_help_str(self, limit: int = 72) -> str:
        """The first sentence of the help, as the command table words it (P-63)."""
        words = self.short_help or (self.help or "").strip().split("\n\n")[0]
        sentence = " ".join(words.split()).split(". ")[0].rstrip(".")
        return sentence if self.short_help else sentence[:1].lower() + sentence[1:]

    def invoke(self, ctx: click.Context) -> int:
        """Run the function, print its answer, return the exit code."""
        door = ctx.find_root().ensure_object(Door)
        with contextlib.redirect_stdout(sys.stderr) if door.json else contextlib.nullcontext():
            said = super().invoke(ctx)
        if not isinstance(said, Answer):
            raise TypeError(f"command {self.name} returned {type(said).__qualname__}, not an Answer")
        door.answer(said)
        if said.exit_code:
            ctx.exit(said.exit_code)
        return 0


def command(schema: str, *, name: str | None = None, **settings: Any) -> Callable[[Callable[..., Answer]], DoorCommand]:
    """Make a command of a function that returns an Answer; its document is `blindcast.<schema>/1`.

    Stands on top of click's own option and argument decorators. `name` defaults to the schema's last word;
    `settings` are those of `click.Command` (`help`, `short_help`, `epilog` ..).
    """

    def decorate(function: Callable[..., Answer]) -> DoorCommand:
        made = click.command(name or schema.rpartition(".")[2].replace("_", "-"), cls=DoorCommand, **settings)(function)
        made.schema = f"blindcast.{schema}/1"
        made.params += flags()
        return made

    return decorate


def run(entry: click.Command, argv: Sequence[str], *, prog: str = "blindcast", open_host: Callable[[], Host] = _open_host) -> int:
    """Run a command or group as the command line would; returns the exit code, never raises for a fault."""
    words = list(argv)
    flags = words[: words.index("--")] if "--" in words else words
    door = Door(json="--json" in flags, open_host=open_host)
    door.verbose = bool({"-v", "--verbose"} & set(flags))
    spoken = contextlib.redirect_stdout(io.StringIO()) if door.json and {"--help", "--version"} & set(flags) else None
    try:
        with spoken or contextlib.nullcontext() as capture:
            code = entry.main(args=words, prog_name=prog, standalone_mode=False, obj=door)
        if capture is not None and capture.getvalue():
            door.schema = "blindcast.help/1" if "--help" in flags else "blindcast.version/1"
            door.answer(Answer({"text": capture.getvalue()}, ""))
        return code if isinstance(code, int) else 0
    except BaseException as error:
        return _told(door, error, prog)


def _told(door: Door, error: BaseException, prog: str) -> int:
    """Print what ended a command and return its exit code."""
    if isinstance(error, click.Abort) and error.__cause__ is not None:
        error = error.__cause__  # click's wrapping of Ctrl-C and of an end of file
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    if isinstance(error, click.ClickException):
        fault, code = _usage(error, prog), 2
    elif isinstance(error, BlindcastError):
        fault, code = error, error.exit_code
    elif isinstance(error, KeyboardInterrupt | click.Abort):
        fault, code = _interrupted(), INTERRUPTED
    else:
        fault, code = _bug(error), BUG
    if door.verbose or fault.code == "bug":
        click.echo("".join(traceback.format_exception(error)), err=True, nl=False)
    door.error(fault)
    return code


def _interrupted() -> BlindcastError:
    return BlindcastError("interrupted", "stopped by Ctrl-C", expected="a run to its end", do="blindcast runs list shows what was kept")


def _bug(error: BaseException) -> BlindcastError:
    return FaultError(
        "bug",
        f"{type(error).__name__}: {error}".rstrip(": "),
        expected="no crash: this is a bug of blindcast, not a fault of yours",
        do="report it with the traceback and the command you typed",
        type=type(error).__name__,
    )


def _usage(error: click.ClickException, prog: str) -> BlindcastError:
    """A fault of the command line in three parts, with the nearest command (F-07)."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context and type(error).__name__ == "NoArgsIsHelpError":  # its message is the whole help; click 8.1 has no such class
        click.echo(context.get_help(), err=True)
        what = "missing command"
    else:
        what = error.format_message().rstrip(".")
    path = context.command_path if context else prog
    expected = " ".join(context.get_usage().split()).removeprefix("Usage: ") if context else ""
    do = f"{path} --help"
    missed = re.match(r"No such command '([^']*)'", what)
    if context and isinstance(context.command, click.Group):
        known = context.command.list_commands(context)
        expected = "one of " + ", ".join(known)
        if missed:
            what = f"no such command {missed[1]!r}"
            do = did_you_mean(missed[1], known, do)
    return BlindcastError("usage", what[:1].lower() + what[1:], expected=expected, do=do)
