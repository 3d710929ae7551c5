"""`blindcast new predictor FILE`."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import click

from blindcast.cli.door import Answer, command
from blindcast.cli.group import group

__all__ = ["new"]


@group(short_help="write a predictor to start from", epilog="Example: blindcast new predictor my_signal.py")
def new() -> None:
    """Write a predictor to start from."""


@command("new.predictor", epilog="Example: blindcast new predictor my_signal.py")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
def predictor(file: Path, force: bool) -> Answer:
    """Write a commented predictor that passes `check` as it is."""
    from blindcast.errors import DataError, UsageError

    if file.suffix != ".py":
        raise UsageError(
            "bad_file_name", f"{file} does not end in .py", expected="a .py file", do=f"blindcast new predictor {file.stem}.py"
        )
    if file.exists() and not force:
        raise UsageError(
            "file_exists", f"{file} exists already", expected="a new file", do="choose another name, or --force to overwrite it"
        )
    text = files("blindcast").joinpath("template_predictor.txt").read_text(encoding="utf-8")
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise DataError(
            "file_not_written", f"{file}: {error.strerror}", expected="a folder you may write to", do="choose another place"
        ) from error
    return Answer({"file": str(file)}, f"wrote {file}", next=f"blindcast check {file}")


new.add_command(predictor)
