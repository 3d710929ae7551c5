"""Groups of commands: they take the options that every command takes (DESIGN 8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from blindcast.cli.door import flags

__all__ = ["group"]


def group(*, short_help: str, epilog: str) -> Callable[[Callable[[], None]], click.Group]:
    """Make a group of a function that does nothing; `epilog` is an example that works as typed (F-08)."""

    def decorate(function: Callable[..., Any]) -> click.Group:
        made: click.Group = click.group(short_help=short_help, epilog=epilog)(function)
        made.params += flags()
        return made

    return decorate
