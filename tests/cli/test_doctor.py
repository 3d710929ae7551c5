"""`blindcast doctor`: what this machine can promise (isolation.md I-01, I-02, I-16, I-90)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from blindcast import Offer, hookimpl
from blindcast.cli import door, entry
from blindcast.host import Host
from blindcast.records import Control, IsolationReport, Policy
from blindcast.testing.runner import Said

Cli = Callable[..., Said]
VARIABLE = "BLINDCAST_REQUIRE_ISOLATION"


def test_doctor_names_every_control_and_its_state(blindcast_cli: Cli) -> None:
    """I-01, I-90: a control that is not there is named with its reason, never assumed."""
    said = blindcast_cli("doctor", "--json")
    assert said.exit_code == 0, said.stderr
    rows = {row["backend"]: row for row in said.data["backends"]}
    assert set(rows) == {"privdrop", "userns", "bwrap", "landlock", "hook"}
    for row in rows.values():
        assert row["controls"]
        for control in row["controls"]:
            assert control["state"] in ("active", "unavailable", "failed")
            assert control["state"] == "active" or control["detail"]
    assert rows["hook"]["class"] == "tripwire"
    assert "seccomp" not in {control["id"] for control in rows["hook"]["controls"]}
    assert said.data["slots"] >= 1


@pytest.mark.parametrize(("require", "gets"), [("hook", "hook"), ("landlock", "landlock")])
def test_doctor_says_which_backend_a_run_would_get(blindcast_cli: Cli, monkeypatch: pytest.MonkeyPatch, require: str, gets: str) -> None:
    """I-03."""
    monkeypatch.setenv(VARIABLE, require)
    said = blindcast_cli("doctor", "--json")
    available = {row["backend"] for row in said.data["backends"] if row["available"]}
    assert said.data["isolation"] == (gets if gets in available else None)
    assert bool([line for line in said.data["warnings"] if line.startswith("isolation: ")]) == (gets not in available)


class Weak:
    """A backend with something to warn of."""

    def probe(self, policy: Policy) -> IsolationReport:
        assert policy.raw_roots, "the home is guarded whatever the task"
        spoilt = [{"uid": 61004, "reason": "a process is left"}]
        detail = {"warnings": ("the roof is open",), "quarantined": spoilt}
        return IsolationReport("weak", "tripwire", True, (Control("hook", "active"),), kill="pgrp (not guaranteed)", detail=detail)

    def spawn(self, spec: object) -> object:
        raise AssertionError("nothing is spawned here")


class Broken(Weak):
    """A backend whose probe fails."""

    def probe(self, policy: Policy) -> IsolationReport:
        raise ZeroDivisionError("no \x1b[31mluck")


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """Ask the doctor of a host that has these backends alone."""
    monkeypatch.setenv("BLINDCAST_HOME", str(tmp_path))
    monkeypatch.delenv(VARIABLE, raising=False)

    def ask(*offers: Offer) -> Said:
        def isolations() -> Iterator[Offer]:
            yield from offers

        module, host = ModuleType("plugged"), Host({}, discovers=False)
        module.isolations = hookimpl(isolations)  # type: ignore[attr-defined]  # a module made on the spot
        with host.plug(module, "acme"):
            code = door.run(entry, ["doctor", "--json"], open_host=lambda: _still(host))
        out, err = capsys.readouterr()
        return Said(code, out, err)

    return ask


def _still(host: Host) -> Host:
    host.discover = lambda: None  # type: ignore[method-assign]  # what is plugged is all there is
    return host


def test_what_a_backend_warns_of_and_has_quarantined_is_told(asked: Callable[..., Said]) -> None:
    """I-16, I-90: over its report, so that a stranger's backend can warn too."""
    said = asked(Offer("weak", Weak, "weak"))
    assert "the roof is open" in said.data["warnings"]
    assert said.data["quarantined"] == [{"uid": 61004, "reason": "a process is left"}]
    assert any("tripwire" in line for line in said.data["warnings"])


def test_a_backend_that_fails_is_named_and_stops_no_other(asked: Callable[..., Said]) -> None:
    """I-90, P-23."""
    gone = Offer("gone", "no_such_module_at_all:X", "gone")
    said = asked(gone, Offer("broken", Broken, "broken"), Offer("weak", Weak, "weak"))
    assert said.exit_code == 0, said.stdout
    rows = {row["backend"]: row for row in said.data["backends"]}
    assert [name for name, row in rows.items() if row["available"]] == ["weak"]
    assert rows["broken"]["reason"] == "its probe failed: ZeroDivisionError: no luck"
    assert rows["gone"]["reason"].startswith("plugin_broken: ")


def test_the_text_calls_a_tripwire_a_tripwire(blindcast_cli: Cli) -> None:
    """I-02."""
    lines = blindcast_cli("doctor").stdout.splitlines()
    (line,) = [line for line in lines if line.startswith("isolation hook:")]
    assert "a tripwire: it does not stop a determined submission" in line
