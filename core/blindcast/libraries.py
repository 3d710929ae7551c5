"""The one list of what a predictor may import, and every text that is made from it (I-25).

The import guard, the rows of `setup.cfg`, the words for agents and `docs/libraries.md` come from `libraries.toml`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from typing import Literal

from attrs import frozen

__all__ = [
    "Library",
    "Listed",
    "exception_names",
    "import_names",
    "libraries",
    "libraries_text",
    "listed",
    "page",
    "prompt_text",
    "read",
    "requirements",
    "withheld_names",
    "workspace_libraries",
]


@frozen
class Library:
    """One distribution of the list. Of the second list, `workspace`, the two names alone are given."""

    distribution: str
    imports: tuple[str, ...]
    minimum: str = ""
    preload: tuple[str, ...] = ()
    exceptions: tuple[str, ...] = ()
    withheld: tuple[str, ...] = ()
    is_first: bool = False


@frozen
class Listed:
    """Both lists: what any child may import, and what `run_code` may import beside it (I-85)."""

    libraries: tuple[Library, ...]
    workspace: tuple[Library, ...] = ()


def read(text: str) -> Listed:
    """The lists of a `libraries.toml`."""
    table = tomllib.loads(text)
    return Listed(*(tuple(_library(row) for row in table.get(name, ())) for name in ("library", "workspace")))


def _library(row: dict[str, object]) -> Library:
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
    return Library(**values)  # type: ignore[arg-type]  # our own file; a test reads it


@cache
def listed() -> Listed:
    """The lists this court ships."""
    return read(files("blindcast").joinpath("libraries.toml").read_text(encoding="utf-8"))


def libraries() -> tuple[Library, ...]:
    """What a predictor may import beside the standard library."""
    return listed().libraries


def workspace_libraries(of: Listed | None = None) -> tuple[Library, ...]:
    """The libraries of the second list that are installed here: `run_code` alone may import them (I-85)."""
    return tuple(library for library in (of or listed()).workspace if all(find_spec(name) is not None for name in library.imports))


def _imports(libraries: Iterable[Library]) -> tuple[str, ...]:
    return tuple(name for library in libraries for name in library.imports)


def import_names(task: Literal["predictor", "code"] = "predictor") -> tuple[str, ...]:
    """The top-level names that the guard lets through: of the one list, in `code` (`run_code`) of the second too.

    >>> import_names()
    ('numpy', 'pandas', 'pyarrow', 'scipy', 'sklearn', 'lightgbm')
    """
    return _imports(libraries()) + (_imports(workspace_libraries()) if task == "code" else ())


def withheld_names() -> tuple[str, ...]:
    """Modules of the listed libraries that a submission may not import all the same."""
    return tuple(name for library in libraries() for name in library.withheld)


def exception_names() -> frozenset[str]:
    """Names of the libraries' errors that a submit's failure may show, as `module.name` (FE-29)."""
    return frozenset(name for library in libraries() for name in library.exceptions)


def libraries_text() -> str:
    """The import names, as people and agents are told them.

    >>> libraries_text()
    'numpy, pandas, pyarrow, scipy, sklearn, lightgbm'
    """
    return ", ".join(import_names())


def requirements(of: Listed | None = None) -> str:
    """The rows `distribution>=minimum` of a requirements file, one a line.

    >>> requirements().splitlines()[0]
    'numpy>=1.26'
    """
    return "".join(f"{library.distribution}>={library.minimum}\n" for library in (of or listed()).libraries)


def prompt_text(of: Listed | None = None) -> str:
    """What agents are told: the libraries of a predictor and, apart, those of `run_code` that are installed (FE-40, I-85)."""
    of = of or listed()
    told = f"Python's standard library and: {', '.join(_imports(of.libraries))}. Nothing else can be imported.\n"
    if further := _imports(workspace_libraries(of)):
        told += f"In run_code also: {', '.join(further)} (a predictor may not import these).\n"
    return told


_HEAD = """# Libraries

What a predictor may import: its own modules, the standard library, and the libraries below. Everything else is answered
`ImportError: '..' is not among the libraries of this court: ..`. That is policy and help; what holds hostile code is the isolation.
This page is made from `core/blindcast/libraries.toml` by `scripts/libraries`.

| distribution | import | at least | errors a submit may name |
|---|---|---|---|
"""


def page(of: Listed | None = None) -> str:
    """The documents' page, in markdown."""
    of = of or listed()
    rows = [
        f"| {library.distribution} | {_code(library.imports)} | {library.minimum} | {_code(sorted(library.exceptions))} |"
        for library in of.libraries
    ]
    told = _HEAD + "\n".join(rows) + "\n"
    if withheld := [name for library in of.libraries for name in library.withheld]:
        told += f"\nNot to be imported all the same, since what they do needs a process: {_code(withheld)}.\n"
    if of.workspace:
        told += f"\nIn `run_code` also, where they are installed: {_code(_imports(of.workspace))}. A predictor may not import these.\n"
    return told


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
