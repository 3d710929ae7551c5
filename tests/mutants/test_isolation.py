"""Each mutant of an isolation backend fails its own check, and no other of those that act in one namespace (conformance.md Q-01).

The mutants are a distribution of somebody else's: what is not installed is not found in a throw-away namespace.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from blindcast.testing import Result, Skip, subject_of
from blindcast.testing.corpus import differing
from blindcast.testing.fabric import fabricate
from blindcast.testing.isolation import ACTS
from blindcast.testing.surroundings import own_group
from blindcast.testing.throwaway import elsewhere

OWN: Final = {
    "leftover": "IS-01",
    "lingering": "IS-01",
    "group": "IS-01",
    "downgrade": "IS-02",
    "wishful": "IS-03",
    "crowded": "IS-05",
    "groupkill": "IS-06",
    "polite": "IS-07",
    "inheriting": "IS-08",
    "reader": "IS-09",
    "onefolder": "IS-10",
}
ALSO: Final = {
    "groupkill": {"IS-10"},  # where a process can be forked the keyrings of its uid can be written
    "polite": {"IS-09"},  # a flood that is only asked to end may have ended by itself
}
SLOW: Final = "IS-05"  # tried under its own mutants only; the shipped backends are tried in tests/conformance
QUICK: Final = ("--attack", "A-01", "--attack", "A-22", "--attack", "A-28", "--attack", "C-01")


@pytest.fixture(scope="module", autouse=True)
def _installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The mutants, for this process and for those it starts."""
    source = Path(__file__).with_name("cells") / "acme_cells.py"
    folder = fabricate(tmp_path_factory.mktemp("cells"), "acme-cells", {"acme_cells": source.read_text(encoding="utf-8")})
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        yield


def failing(name: str) -> dict[str, str]:
    """Check id -> why it failed, of a backend; a skip where nothing can be tried."""
    ids = [id_ for id_ in ACTS if id_ != SLOW or OWN.get(name) == SLOW]
    try:
        results: list[Result] = elsewhere(subject_of("isolations", name), ids)
    except Skip as reason:
        pytest.skip(str(reason))
    if {one.result for one in results} == {"skip"}:
        pytest.skip(results[0].detail)
    return {one.id: one.detail for one in results if one.result == "fail"}


def test_the_honest_twin_fails_nothing() -> None:
    """P-53: what a mutant fails is the mutant's own doing."""
    assert failing("cell") == {}


@pytest.mark.parametrize("name", OWN)
def test_a_mutant_fails_its_check_and_no_other(name: str) -> None:
    """Q-01, IS-01 to IS-03, IS-05 to IS-10."""
    if name == "group" and not os.access(own_group(), os.W_OK):
        pytest.skip("no cgroup of version 2 can be made here")
    if name == "crowded" and len(os.sched_getaffinity(0)) == 1:
        pytest.skip("there is one processor here: no host has more threads")
    found = failing(name)
    assert {*found} - ALSO.get(name, set()) == {OWN[name]}, found


def verdicts_of(name: str) -> list[str]:
    try:
        return differing(name, *QUICK)
    except Skip as reason:
        pytest.skip(str(reason))


def test_a_strangers_backend_gets_the_column_of_the_class_it_claims() -> None:
    """I-07, IS-04: some attacks and an honest run; `isolation test --backend cell` tries them all."""
    assert verdicts_of("cell") == []


def test_a_strangers_backend_without_seccomp_gives_another_verdict() -> None:
    """IS-04: it is of class kernel by its own word, and makes calls that no wall of its own refuses."""
    assert any("A-28" in line for line in verdicts_of("open"))
