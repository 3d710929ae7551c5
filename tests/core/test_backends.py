"""Which isolation backend runs a predictor (isolation.md I-03, I-06, IV-09 to IV-11)."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any, Literal

import pytest

from blindcast import Offer, hookimpl
from blindcast.backends import (
    KERNEL,
    ORDER,
    RECORD,
    appoint,
    choose,
    isolation_line,
    isolation_record,
    members,
    recorded_line,
    runner_line,
)
from blindcast.errors import DataError, DeniedError, FaultError, UsageError
from blindcast.host import Host
from blindcast.records import Control, IsolationReport, Policy

VARIABLE = "BLINDCAST_REQUIRE_ISOLATION"


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("any", ("privdrop", "userns", "bwrap", "landlock", "hook")),
        ("kernel", ("privdrop", "userns", "bwrap", "landlock")),
        *[(name, (name,)) for name in ORDER],
        ("jail", None),
        ("", None),
        ("Any", None),
    ],
)
def test_a_word_names_a_set_of_backends(word: str, expected: tuple[str, ...] | None) -> None:
    """I-03."""
    assert members(word) == expected


def test_an_installed_backend_is_used_by_name_alone() -> None:
    """I-03, DESIGN 3: `any` means the shipped five; installing a package weakens no sandbox."""
    known = (*ORDER, "jail")
    assert members("jail", known) == ("jail",)
    assert members("any", known) == ORDER


@pytest.mark.parametrize(
    ("spec", "variable", "root", "available", "expected"),
    [
        ("any", "", False, ORDER, "userns"),  # IV-11
        ("any", "", True, ORDER, "privdrop"),
        ("any", "", True, ("hook", "bwrap"), "bwrap"),
        ("any", "", False, ("privdrop", "hook"), "hook"),
        ("any", "kernel", True, ORDER, "privdrop"),
        ("any", "hook", True, ORDER, "hook"),
        ("hook", "any", True, ORDER, "hook"),
        ("kernel", "any", False, ("landlock", "hook"), "landlock"),
        ("landlock", "kernel", False, ORDER, "landlock"),
        ("any", "any", False, ORDER, "userns"),
    ],
)
def test_the_first_available_of_both_sets_is_used(spec: str, variable: str, root: bool, available: tuple[str, ...], expected: str) -> None:
    """I-03, IV-11: root starts at `privdrop`, others at `userns`."""
    assert choose(spec, variable, root=root, available=available) == expected


@pytest.mark.parametrize(
    ("spec", "variable", "root", "available", "code"),
    [
        ("any", "kernel", True, ("hook",), "isolation_unavailable"),  # IV-09
        ("privdrop", "userns", True, ORDER, "isolation_conflict"),  # IV-10
        ("kernel", "hook", True, ORDER, "isolation_conflict"),
        ("privdrop", "", False, ORDER, "isolation_unavailable"),
        ("any", "", True, (), "isolation_unavailable"),
        ("privdrop", "", True, ("userns", "hook"), "isolation_unavailable"),  # a name is itself: no downgrade
        ("hook", "kernel", True, (), "isolation_conflict"),
    ],
)
def test_there_is_no_silent_downgrade(spec: str, variable: str, root: bool, available: tuple[str, ...], code: str) -> None:
    """I-03, IV-09, IV-10: exit 5."""
    with pytest.raises(DeniedError) as caught:
        choose(spec, variable, root=root, available=available)
    assert (caught.value.code, caught.value.exit_code) == (code, 5)


def test_an_unknown_word_is_told_by_whoever_said_it() -> None:
    """I-03: in the variable a usage error, exit 2; in the spec a fault of the spec, exit 3."""
    with pytest.raises(UsageError) as usage:
        choose("any", "kernal", root=True, available=ORDER)
    assert (usage.value.code, usage.value.exit_code) == ("isolation_word", 2)
    assert VARIABLE in usage.value.what
    assert "'kernel'" in usage.value.do
    with pytest.raises(DataError) as spec:
        choose("priv-drop", "", root=True, available=ORDER)
    assert (spec.value.code, spec.value.exit_code) == ("isolation_word", 3)
    assert "'privdrop'" in spec.value.do


class Fake:
    """A backend that says what it is told to say."""

    name = ""
    classed: Literal["kernel", "tripwire"] = "kernel"
    available = True
    log: list[str]

    def probe(self, policy: Policy) -> IsolationReport:
        self.log.append(f"probe {self.name}")
        return IsolationReport(self.name, self.classed, self.available, (), reason="" if self.available else "no luck")

    def spawn(self, spec: object) -> object:
        raise AssertionError("nothing is spawned here")

    def close(self) -> None:
        self.log.append(f"close {self.name}")


class Stand:
    """A host with fake backends, plugged under their distributions."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.log: list[str] = []

    def backend(self, name: str, classed: str = "kernel", available: bool = True, says: str = "") -> Offer:
        kind = type("Backend", (Fake,), {"name": says or name, "classed": classed, "available": available, "log": self.log})
        return Offer(name, kind, "a backend of a test")

    def plug(self, *offers: Offer, distribution: str = "blindcast") -> Any:
        module = ModuleType(f"plugged_{distribution}")

        def isolations() -> Iterator[Offer]:
            yield from offers

        module.isolations = hookimpl(isolations)  # type: ignore[attr-defined]  # a module made on the spot
        return self.host.plug(module, distribution)

    def appoint(self, require: str = "any", *, variable: str = "", root: bool = True) -> str:
        chosen = appoint(self.host, require, Policy(), {VARIABLE: variable}, root=root)
        assert chosen.report.backend == chosen.isolation.name  # type: ignore[attr-defined]  # a Fake
        return chosen.report.backend


@pytest.fixture
def stand(blindcast_host: Host) -> Stand:
    return Stand(blindcast_host)


def test_backends_are_probed_in_order_until_one_will_do(stand: Stand) -> None:
    """I-03: the ones that were tried in vain are closed, the rest are never built."""
    with stand.plug(stand.backend("hook"), stand.backend("userns"), stand.backend("privdrop", available=False), stand.backend("bwrap")):
        assert stand.appoint() == "userns"
    assert stand.log == ["probe privdrop", "probe userns", "close privdrop"]


def test_an_ordinary_user_does_not_probe_privdrop(stand: Stand) -> None:
    """I-03, IV-11."""
    with stand.plug(stand.backend("privdrop"), stand.backend("hook", "tripwire")):
        assert stand.appoint(root=False) == "hook"
    assert stand.log == ["probe hook"]


@pytest.mark.parametrize(("require", "variable"), [("kernel", ""), ("any", "kernel")])
def test_a_tripwire_never_counts_as_kernel(stand: Stand, require: str, variable: str) -> None:
    """I-03: whatever its name; every backend that was built is closed, and each one's reason is told."""
    with stand.plug(stand.backend("privdrop", "tripwire"), stand.backend("userns", available=False), stand.backend("hook", "tripwire")):
        with pytest.raises(DeniedError) as caught:
            stand.appoint(require, variable=variable)
        assert stand.appoint("any") == "privdrop"
    assert caught.value.code == "isolation_unavailable"
    assert caught.value.detail["reasons"] == {"privdrop": "its class is tripwire", "userns": "no luck"}
    assert stand.log[:4] == ["probe privdrop", "probe userns", "close privdrop", "close userns"]


def test_the_variable_narrows_what_the_spec_allows(stand: Stand) -> None:
    """I-03."""
    with stand.plug(stand.backend("privdrop"), stand.backend("userns")):
        assert stand.appoint(variable="userns") == "userns"
        with pytest.raises(DeniedError) as caught:
            stand.appoint("privdrop", variable="userns")
        assert caught.value.code == "isolation_conflict"
        with pytest.raises(UsageError):
            stand.appoint(variable="jail")
        with pytest.raises(DataError):
            stand.appoint("jail")


def test_an_installed_backend_is_never_chosen_unasked(stand: Stand) -> None:
    """DESIGN 3: installing a package must never weaken a sandbox."""
    with stand.plug(stand.backend("jail"), distribution="acme"):
        assert stand.appoint("jail") == "jail"
        assert stand.appoint("acme/jail") == "jail"
        assert stand.appoint("jail", variable="jail") == "jail"
        with pytest.raises(DeniedError) as caught:
            stand.appoint("any")
    assert caught.value.code == "isolation_unavailable"


@pytest.mark.parametrize("distribution", ["aaa", "zzz"])
def test_a_backend_of_ours_is_not_hidden_by_a_strangers_of_its_name(stand: Stand, distribution: str) -> None:
    """DESIGN 3."""
    with (
        stand.plug(stand.backend("privdrop", says="ours")),
        stand.plug(stand.backend("privdrop", says="theirs"), distribution=distribution),
    ):
        assert stand.appoint() == "ours"
        assert stand.appoint("privdrop") == "ours"
        assert stand.appoint(f"{distribution}/privdrop") == "theirs"


def test_a_backend_that_cannot_be_built_is_no_downgrade(stand: Stand) -> None:
    """I-03, P-25: it is told, and nothing weaker runs instead."""
    broken = Offer("privdrop", "no_such_module_at_all:X", "broken")
    with stand.plug(broken, stand.backend("hook")), pytest.raises(FaultError) as caught:
        stand.appoint()
    assert caught.value.code == "plugin_broken"


def report_of(classed: Literal["kernel", "tripwire"], *controls: Control) -> IsolationReport:
    return IsolationReport("privdrop", classed, True, controls, kill="uid", uid=61000, detail={"kernel": "6.1", "arch": "x86_64"})


def test_a_run_begins_with_one_line_on_its_isolation() -> None:
    """I-06: what is active, nothing else; a tripwire says that it is one."""
    controls = (Control("uid-drop", "active"), Control("netns", "unavailable", "no right"), Control("seccomp", "active"))
    assert isolation_line(report_of("kernel", *controls)) == "isolation privdrop (uid-drop, seccomp)"
    assert "tripwire" in isolation_line(report_of("tripwire"))


def test_a_line_shows_the_measured_version_of_landlock() -> None:
    """I-01, I-06: beside a state that was measured, never in its place."""
    controls = [Control(id_, "active") for id_ in ("uid-drop", "netns", "mountns", "pidns")]
    controls += [Control("landlock", "active", "7"), *(Control(id_, "active") for id_ in ("seccomp", "cgroup-kill", "rlimits"))]
    words = "(uid-drop, netns, mountns, pidns, landlock 7, seccomp, cgroup-kill, rlimits)"
    assert isolation_line(report_of("kernel", *controls)) == f"isolation privdrop {words}"
    assert runner_line(report_of("kernel", *controls)) == f"[runner] predictor isolation: privdrop {words}"
    assert "7" not in isolation_line(report_of("kernel", Control("landlock", "failed", "7")))


@pytest.mark.parametrize("classed", ["kernel", "tripwire"])
def test_a_kept_run_is_shown_with_the_line_it_began_with(classed: Literal["kernel", "tripwire"]) -> None:
    """I-02, I-06: a tripwire says so there too."""
    report = report_of(classed, Control("landlock", "active", "7"), Control("netns", "failed", "EPERM"))
    assert recorded_line(isolation_record(report, "any", Policy())) == isolation_line(report)
    assert ("tripwire" in runner_line(report)) == (classed == "tripwire")


def test_the_record_names_the_user_of_the_first_child() -> None:
    """I-06."""
    assert isolation_record(report_of("kernel"), "any", Policy(), uid=61007)["uid"] == 61007


def test_the_record_of_a_run_has_every_key() -> None:
    """I-06: what this version does not measure is null."""
    record = isolation_record(report_of("kernel", Control("netns", "failed", "EPERM")), "any", Policy())
    assert tuple(record) == RECORD
    assert record["controls"] == [{"id": "netns", "state": "failed", "detail": "EPERM"}]
    assert (record["class"], record["required"], record["kernel"], record["uid"], record["card"]) == ("kernel", "any", "6.1", 61000, None)
    assert (record["fresh"], record["trips"]) == (None, 0)


def test_the_record_says_how_fresh_windows_started_and_what_the_hook_refused() -> None:
    """I-35, K-02."""
    record = isolation_record(report_of("kernel"), "any", Policy(), fresh="refit", trips=3)
    assert (record["fresh"], record["trips"]) == ({"mode": "refit"}, 3)


def test_the_first_four_are_of_the_kernel() -> None:
    """I-03."""
    assert tuple(ORDER[:4]) == KERNEL
