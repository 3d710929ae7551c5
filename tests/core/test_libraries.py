"""The one list, and what is made from it (isolation.md I-25)."""

from __future__ import annotations

import importlib
import subprocess
import sys
from importlib.metadata import requires
from importlib.util import find_spec
from pathlib import Path

import pytest
from attrs import evolve

import blindcast_isolation
from blindcast.libraries import (
    Library,
    Listed,
    exception_names,
    import_names,
    libraries,
    libraries_text,
    listed,
    page,
    prompt_text,
    read,
    requirements,
    withheld_names,
    workspace_libraries,
)

ROOT = Path(__file__).parents[2]
XGBOOST, JSON, ABSENT = (Library(name, (name,)) for name in ("xgboost", "json", "no_such_library"))


def test_the_requirements_are_those_of_the_list() -> None:
    """I-25: fails when one is stale."""
    needed = {requirement.partition(";")[0].strip() for requirement in requires("blindcast") or ()}
    assert set(requirements().splitlines()) <= needed


@pytest.mark.skipif(not (ROOT / "scripts" / "libraries").is_file(), reason="not in a checkout: nothing to look at")
def test_the_page_and_the_rows_of_setup_cfg_are_fresh() -> None:
    """I-25, style.md rule 22."""
    said = subprocess.run([sys.executable, ROOT / "scripts" / "libraries", "--check"], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr


@pytest.mark.parametrize("library", libraries(), ids=lambda library: library.distribution)
def test_every_library_is_preloaded_under_one_of_its_names(library: Library) -> None:
    """I-31."""
    assert library.preload
    assert {name.partition(".")[0] for name in (*library.preload, *library.withheld)} <= set(library.imports)


@pytest.mark.parametrize("name", sorted(exception_names()))
def test_an_error_is_listed_as_a_traceback_names_it(name: str) -> None:
    """FE-29: `module.name`, of a listed library; a private module may be absent in another version."""
    module, _, own = name.rpartition(".")
    assert name.partition(".")[0] in import_names()
    if "._" in module and find_spec(module.partition("._")[0]) is None:
        pytest.skip("not in this version")
    kind = getattr(importlib.import_module(module), own)
    assert issubclass(kind, Exception)
    assert f"{kind.__module__}.{kind.__qualname__}" == name


def test_the_plugin_hands_the_list_on() -> None:
    assert blindcast_isolation.exception_names is exception_names
    assert blindcast_isolation.libraries_text is libraries_text


def test_the_lists_are_read_as_they_stand() -> None:
    """I-25."""
    text = '[[library]]\ndistribution = "a-b"\nimports = ["ab"]\nminimum = "1"\n[[workspace]]\ndistribution = "c"\nimports = ["c"]\n'
    assert read(text) == Listed((Library("a-b", ("ab",), "1"),), (Library("c", ("c",)),))
    with pytest.raises(TypeError):
        read('[[library]]\ndistribution = "a"\nimports = ["a"]\nminimun = "1"\n')


def test_only_what_is_installed_of_the_second_list_can_be_imported() -> None:
    """I-85."""
    assert workspace_libraries(Listed((), (ABSENT, JSON))) == (JSON,)
    assert {library.distribution for library in listed().workspace} == {"xgboost", "torch"}
    assert set(workspace_libraries()) <= set(listed().workspace)
    assert import_names("code") == import_names() + tuple(name for library in workspace_libraries() for name in library.imports)


def test_agents_are_told_the_second_list_apart() -> None:
    """I-85, FE-40: only what is installed."""
    first = f"Python's standard library and: {libraries_text()}. Nothing else can be imported.\n"
    assert prompt_text(Listed(libraries(), (ABSENT,))) == first
    told = prompt_text(Listed(libraries(), (ABSENT, JSON)))
    assert told == f"{first}In run_code also: json (a predictor may not import these).\n"


def test_one_library_more_changes_every_text_in_its_own_place_alone() -> None:
    """FE-40."""
    before, after = Listed(libraries()), Listed((*libraries(), Library("x-y", ("xy",), "3")))
    assert requirements(after) == f"{requirements(before)}x-y>=3\n"
    assert prompt_text(after) == prompt_text(before).replace("lightgbm", "lightgbm, xy")
    assert set(page(after).splitlines()) - set(page(before).splitlines()) == {"| x-y | `xy` | 3 |  |"}


def test_another_minimum_changes_the_requirements_and_not_the_prompt() -> None:
    """FE-40."""
    first, *rest = libraries()
    changed = Listed((evolve(first, minimum="9"), *rest))
    assert requirements(changed).splitlines()[0] == f"{first.distribution}>=9"
    assert requirements(changed).splitlines()[1:] == requirements().splitlines()[1:]
    assert prompt_text(changed) == prompt_text(Listed(libraries()))


def test_the_page_names_what_is_withheld_and_what_run_code_adds() -> None:
    """I-25, I-85."""
    assert withheld_names() == ("numpy.f2py",)
    assert "needs a process: `numpy.f2py`." in page()
    assert "where they are installed: `xgboost`." in page(Listed((), (XGBOOST,)))
