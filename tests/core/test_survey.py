"""Every backend at once, and which one a run would get (isolation.md I-03, I-23, I-80, I-90)."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import pytest

from blindcast import Offer, hookimpl
from blindcast.backends import appoint
from blindcast.errors import DataError, DeniedError, UsageError
from blindcast.host import Host
from blindcast.records import Control, IsolationReport, Policy
from blindcast.survey import Survey, own_roots, survey

VARIABLE = "BLINDCAST_REQUIRE_ISOLATION"


class Fake:
    """A backend that says what it is told to say."""

    name = ""
    classed: Literal["kernel", "tripwire"] = "kernel"
    available = True
    detail: Mapping[str, Any] = {}
    log: list[str]
    meeting: threading.Barrier | None = None

    def probe(self, policy: Policy) -> IsolationReport:
        if self.meeting is not None:
            self.meeting.wait(10)
        reason = "" if self.available else "no luck"
        return IsolationReport(self.name, self.classed, self.available, (Control("x", "active"),), reason=reason, detail=self.detail)

    def spawn(self, spec: object) -> object:
        raise AssertionError("nothing is spawned here")

    def close(self) -> None:
        self.log.append(self.name)


class Stand:
    """A host with fake backends."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.closed: list[str] = []

    def backend(self, name: str, **says: Any) -> Offer:
        return Offer(name, type("Backend", (Fake,), {"name": name, "log": self.closed, **says}), "a backend of a test")

    def plug(self, *offers: Offer, distribution: str = "blindcast") -> Any:
        module = ModuleType(f"plugged_{distribution}")

        def isolations() -> Iterator[Offer]:
            yield from offers

        module.isolations = hookimpl(isolations)  # type: ignore[attr-defined]  # a module made on the spot
        return self.host.plug(module, distribution)

    def survey(self, require: str = "any", *, root: bool = True, **environ: str) -> Survey:
        return survey(self.host, require, Policy(), environ, root=root)


@pytest.fixture
def stand(blindcast_host: Host) -> Stand:
    return Stand(blindcast_host)


def test_backends_are_probed_at_the_same_time_and_all_closed(stand: Stand) -> None:
    """I-90: five zygotes one after the other would take too long."""
    meeting = threading.Barrier(3)
    names = ("hook", "privdrop", "userns")
    with stand.plug(*(stand.backend(name, meeting=meeting) for name in names)):
        found = stand.survey()
    assert [one.name for one in found.backends] == ["privdrop", "userns", "hook"]
    assert sorted(stand.closed) == sorted(names)


@pytest.mark.parametrize("require", ["any", "kernel", "userns", "hook", "privdrop", "jail"])
@pytest.mark.parametrize("variable", ["", "kernel", "any", "hook"])
@pytest.mark.parametrize("root", [True, False])
def test_a_survey_decides_as_a_run_does(stand: Stand, require: str, variable: str, root: bool) -> None:
    """I-03: one rule, whoever asks."""
    offers = (stand.backend("privdrop", classed="tripwire"), stand.backend("userns"), stand.backend("bwrap", available=False))
    with stand.plug(*offers, stand.backend("hook", classed="tripwire")), stand.plug(stand.backend("jail"), distribution="acme"):
        found = survey(stand.host, require, Policy(), {VARIABLE: variable}, root=root)
        try:
            run = appoint(stand.host, require, Policy(), {VARIABLE: variable}, root=root).name
        except DeniedError as refusal:
            run = refusal.code
    told = found.refusal.code if found.refusal is not None else found.chosen and found.chosen.name
    assert told == run


def test_a_strangers_backend_is_shown_once_and_under_a_name_that_means_it(stand: Stand) -> None:
    """P-24: the bare name where it is free, else the qualified one."""
    with stand.plug(stand.backend("userns")), stand.plug(stand.backend("jail"), stand.backend("userns"), distribution="acme"):
        found = stand.survey()
        assert [one.name for one in found.backends] == ["userns", "jail", "acme/userns"]
        chosen = stand.survey("acme/jail").chosen
    assert chosen is not None
    assert chosen.name == "acme/jail"


def test_warnings_are_told_once(stand: Stand) -> None:
    """I-90."""
    spoilt = [{"uid": 61000, "reason": "a process"}]
    says: dict[str, Any] = {"warnings": ("one", "two"), "quarantined": spoilt}
    with stand.plug(
        stand.backend("userns", detail=says), stand.backend("bwrap", detail=says), stand.backend("hook", detail={"warnings": 5})
    ):
        found = stand.survey(BLINDCAST_MAX_CONCURRENT_RUNS="10000")
    assert found.warnings[:2] == ("one", "two")
    assert "BLINDCAST_MAX_CONCURRENT_RUNS is 10000" in found.warnings[2]
    assert len(found.warnings) == 3
    assert found.quarantined == spoilt


def test_an_unknown_word_is_told_by_whoever_said_it(stand: Stand) -> None:
    """I-03: exit 3 in the spec, exit 2 in the variable and on the command line."""
    with stand.plug(stand.backend("userns")):
        with pytest.raises(DataError):
            stand.survey("jail")
        with pytest.raises(UsageError):
            stand.survey(BLINDCAST_REQUIRE_ISOLATION="jail")
        with pytest.raises(UsageError, match="--require is 'jail'"):
            survey(stand.host, "jail", Policy(), {}, root=True, where="--require")
        with pytest.raises(UsageError):
            stand.survey(BLINDCAST_MAX_CONCURRENT_RUNS="0")


def test_no_kernel_backend_is_a_warning(stand: Stand) -> None:
    """I-02."""
    with stand.plug(stand.backend("userns", available=False), stand.backend("hook", classed="tripwire")):
        assert any("tripwire" in line for line in stand.survey().warnings)
    with stand.plug(stand.backend("userns", available=False)):
        assert any("no predictor can run" in line for line in stand.survey().warnings)


def test_the_ledger_is_guarded_where_it_lies_elsewhere() -> None:
    """I-23."""
    home = Path("/somewhere/home")
    assert own_roots(home, {}) == (home,)
    assert own_roots(home, {"BLINDCAST_LEDGER_URL": "sqlite:////else/where.sqlite"}) == (home, Path("/else/where.sqlite"))
    assert own_roots(home, {"BLINDCAST_LEDGER_URL": "postgresql://host/db"}) == (home,)
