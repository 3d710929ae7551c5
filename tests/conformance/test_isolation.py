"""Every shipped backend that is available here passes all its checks, in a throw-away namespace (plugins.md P-53)."""

from __future__ import annotations

from functools import cache

import pytest

from blindcast.host import Host
from blindcast.testing import Result, Skip, checks, judge, subject_of
from blindcast.testing.isolation import ACTS
from blindcast.testing.throwaway import elsewhere

BACKENDS = [offer.name for offer in Host({}).offers("isolations")]


@cache
def results(name: str) -> dict[str, Result] | str:
    """All checks of a backend, run in one namespace; the reason where there is none."""
    try:
        return {one.id: one for one in elsewhere(subject_of("isolations", name), list(ACTS))}
    except Skip as reason:
        return str(reason)


@pytest.mark.parametrize("id_", ACTS)
@pytest.mark.parametrize("name", BACKENDS)
def test_a_shipped_backend(name: str, id_: str) -> None:
    """IS-01 to IS-03, IS-05 to IS-10."""
    found = results(name)
    if isinstance(found, str):
        pytest.skip(found)
    if found[id_].result == "skip":
        pytest.skip(found[id_].detail)
    assert found[id_].result == "pass", found[id_].detail


@pytest.mark.parametrize("name", BACKENDS)
def test_a_shipped_backend_builds_as_every_plugin_does(name: str) -> None:
    """CO-01 to CO-04."""
    subject = subject_of("isolations", name)
    building = [judge(check, subject) for check in checks("isolations") if check.id.startswith("CO-")]
    assert [one.detail for one in building if one.result != "pass"] == []


def test_no_isolation_check_ever_runs_in_this_process() -> None:
    """I-92: a backend that a second process cannot find is not judged at all."""

    class Local:
        def probe(self, policy: object) -> None:
            raise AssertionError("asked on the host")

        def spawn(self, spec: object) -> None:
            raise AssertionError("asked on the host")

    subject = subject_of("isolations", Local)
    judged = [judge(check, subject) for check in checks("isolations") if check.id.startswith("IS-")]
    assert {one.result for one in judged} == {"skip"}
    assert "throw-away namespace" in judged[0].detail
