"""The one list, and what is made from it."""

from __future__ import annotations

from importlib.metadata import requires

from blindcast_isolation.guard import refusal
from blindcast_isolation.libraries import exception_names, libraries, libraries_text


def test_the_requirements_are_those_of_the_list() -> None:
    """I-25: fails when one is stale."""
    needed = {requirement.partition(";")[0].strip() for requirement in requires("blindcast") or ()}
    assert {f"{library.distribution}>={library.minimum}" for library in libraries()} <= needed


def test_every_library_is_preloaded_under_one_of_its_names() -> None:
    """I-31."""
    for library in libraries():
        assert library.preload
        assert {name.partition(".")[0] for name in library.preload} <= set(library.imports)


def test_the_exceptions_are_of_the_listed_libraries() -> None:
    """FE-29."""
    tops = {name for library in libraries() for name in library.imports}
    assert exception_names()
    assert {name.partition(".")[0] for name in exception_names()} <= tops


def test_the_guards_answer_names_the_list() -> None:
    """I-25."""
    assert refusal("torch", libraries_text().split(", ")).startswith("'torch' is not among the libraries of this court: numpy, pandas, ")
