"""The one list of what a predictor may import (I-25)."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files

from attrs import frozen

__all__ = ["Library", "exception_names", "libraries", "libraries_text"]


@frozen
class Library:
    """One distribution that a predictor may import."""

    distribution: str
    imports: tuple[str, ...]
    minimum: str
    preload: tuple[str, ...]
    exceptions: tuple[str, ...]
    is_first: bool


@cache
def libraries() -> tuple[Library, ...]:
    """The list, as `libraries.toml` has it."""
    table = tomllib.loads(files("blindcast_isolation").joinpath("libraries.toml").read_text(encoding="utf-8"))
    return tuple(
        Library(
            distribution=row["distribution"],
            imports=tuple(row["imports"]),
            minimum=row["minimum"],
            preload=tuple(row["preload"]),
            exceptions=tuple(row["exceptions"]),
            is_first=row["is_first"],
        )
        for row in table["library"]
    )


def libraries_text() -> str:
    """The import names, as people and agents are told them.

    >>> libraries_text()
    'numpy, pandas, pyarrow, scipy, sklearn, lightgbm'
    """
    return ", ".join(name for library in libraries() for name in library.imports)


def exception_names() -> frozenset[str]:
    """Names of the libraries' errors that a submit's failure may show (FE-29)."""
    return frozenset(name for library in libraries() for name in library.exceptions)
