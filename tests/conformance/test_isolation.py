"""Every shipped backend that is available here passes all its checks, in a throw-away namespace (plugins.md P-53).

Started by root they are tried twice: the second time as an ordinary user, for whom the backends are others.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from typing import Final

import pytest

from blindcast.host import Host
from blindcast.testing import Result, Skip, checks, judge, subject_of
from blindcast.testing.corpus import differing
from blindcast.testing.isolation import ACTS
from blindcast.testing.throwaway import elsewhere, order_of

BACKENDS: Final = [offer.name for offer in Host({}).offers("isolations")]
ORDINARY: Final = 61_999  # of no account, and of no run
SERVERS: Final = [(name, None) for name in BACKENDS] + (
    [(name, ORDINARY) for name in BACKENDS if name != "privdrop"] if os.geteuid() == 0 else []
)
ATTACKS: Final = ("--attack", "A-01", "--attack", "C-01")  # `isolation test` tries them all, tests/isolation/corpus ten under each
DROPPED: Final = """\
import os, sys
from blindcast_isolation import root
from blindcast_isolation.corpus import namespace
from blindcast_isolation.corpus.inside import outermost

def second():
    kept = outermost([*root.interpreter_paths(), *filter(os.path.isdir, sys.path)])
    namespace.cover(kept)
    os.chdir("/")
    root.open_parents(root.closed_parents(kept), kept)
    os.chdir("/")
    namespace.give_up(int(sys.argv[1]))
    environ = {**os.environ, "TMPDIR": "/tmp", "HOME": "/", "PYTHONDONTWRITEBYTECODE": "1"}
    os.execve(sys.executable, [sys.executable, "-m", "blindcast.testing.throwaway", sys.argv[2]], environ)

sys.exit(namespace.enter(second))
"""


@cache
def results(name: str, uid: int | None) -> dict[str, Result] | str:
    """All checks of a backend, run in one namespace; the reason where there is none."""
    subject = subject_of("isolations", name)
    try:
        found = elsewhere(subject, list(ACTS)) if uid is None else dropped(uid, order_of(subject, list(ACTS)))
    except Skip as reason:
        return str(reason)
    return {one.id: one for one in found}


def dropped(uid: int, order: str) -> list[Result]:
    """The same by a server of an ordinary user. Raises AssertionError where it ends early."""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OPENBLAS_NUM_THREADS": "1"}
    argv = [sys.executable, "-c", DROPPED, str(uid), order]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(argv, capture_output=True, text=True, env=environ, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
    return [Result(*row) for row in json.loads(done.stdout.splitlines()[-1])]


@pytest.mark.parametrize("id_", ACTS)
@pytest.mark.parametrize(("name", "uid"), SERVERS)
def test_a_shipped_backend(name: str, uid: int | None, id_: str) -> None:
    """IS-01 to IS-03, IS-05 to IS-10."""
    found = results(name, uid)
    if isinstance(found, str):
        pytest.skip(found)
    if found[id_].result == "skip":
        pytest.skip(found[id_].detail)
    assert found[id_].result == "pass", found[id_].detail


@pytest.mark.parametrize("name", BACKENDS)
def test_a_shipped_backend_gives_the_verdicts_of_its_class(name: str) -> None:
    """IS-04, I-07."""
    try:
        assert differing(name, *ATTACKS) == []
    except Skip as reason:
        pytest.skip(str(reason))


def test_every_row_of_the_page_is_a_check() -> None:
    """conformance.md: none is left out."""
    assert [check.id for check in checks("isolations") if check.id.startswith("IS-")] == [f"IS-{i:02}" for i in range(1, 11)]


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
