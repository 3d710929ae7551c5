"""The conformance kit and its first checks, each with the mutant it must fail (plugins.md section 8, conformance.md)."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

import click
import numpy as np
import pytest

from blindcast.hookspecs import Offer
from blindcast.kinds import KINDS
from blindcast.testing import Check, Result, Skip, Subject, checks, conforms, judge, subject_of


class Honest:
    """A grader that does everything right."""

    version: ClassVar[int] = 1
    unit: ClassVar[str] = "bps"
    total: ClassVar[Literal["sum", "mean"]] = "sum"
    properties: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha

    def grade(self, outcome: Any, curves: Any) -> float:
        return float(self.alpha * curves.sum())

    def diagnostics(self, parts: Mapping[str, float]) -> Mapping[str, float | None]:
        return {}


class Renamed(Honest):
    def grade(self, truth: Any, curves: Any) -> float:  # pyright: ignore[reportIncompatibleMethodOverride]  # the fault under test
        return 0.0


class Short(Honest):
    def grade(self, outcome: Any) -> float:  # type: ignore[override]  # the fault under test
        return 0.0


class Takes(Honest):
    def __init__(self, **options: object) -> None:
        self.alpha = 1.0


class Seeds(Honest):
    def __init__(self) -> None:
        random.seed(0)


class SeedsNumpy(Honest):
    def __init__(self) -> None:
        np.random.seed(0)


class Prints(Honest):
    def __init__(self) -> None:
        print("built")


class Sets(Honest):
    def __init__(self) -> None:
        os.environ["ACME_BUILT"] = os.environ.get("ACME_BUILT", "") + "x"


class Warns(Honest):
    def __init__(self) -> None:
        warnings.filters.insert(0, ("ignore", re.compile("x"), Warning, None, len(warnings.filters)))  # type: ignore[attr-defined]  # a list at run time


class Threads(Honest):
    def __init__(self) -> None:
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.stop.wait, args=(5,), daemon=True)
        self.thread.start()


class Opens(Honest):
    def __init__(self) -> None:
        self.kept = os.dup(0) if os.name != "posix" else os.open(os.devnull, os.O_RDONLY)


def failing(subject: Subject, ids: str = "CO-") -> list[str]:
    results = [judge(check, subject) for check in checks(subject.kind, subject.protocol) if check.id.startswith(ids)]
    return [result.id for result in results if result.result == "fail"]


def test_an_honest_object_passes_the_building_checks() -> None:
    """Q-01."""
    assert failing(subject_of("graders", Honest)) == []
    assert failing(subject_of("graders", Honest, {"alpha": 2})) == []


@pytest.mark.parametrize(
    ("mutant", "ids"),
    [
        (Takes, ["CO-02"]),
        (Seeds, ["CO-03"]),
        (SeedsNumpy, ["CO-03"]),
        (Prints, ["CO-03"]),
        (Sets, ["CO-03"]),
        (Warns, ["CO-03"]),
        (Threads, ["CO-03"]),
        (Opens, ["CO-03"]),
        (Renamed, ["CO-04"]),
        (Short, ["CO-04"]),
    ],
)
def test_each_mutant_fails_its_check_and_no_other(mutant: type, ids: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """P-53, CO-02 to CO-04."""
    monkeypatch.setenv("ACME_BUILT", "")
    monkeypatch.setattr(warnings, "filters", list(warnings.filters))
    states = random.getstate(), np.random.get_state()
    random.seed(7)
    np.random.seed(7)
    np.random.rand()
    random.random()
    made: list[Any] = []
    subject = subject_of("graders", mutant)

    def make() -> Any:
        made.append(subject.make())
        random.random()  # so that seeding again can be seen
        np.random.rand()
        return made[-1]

    def quietly() -> Any:
        made.append(subject.make())
        return made[-1]

    watched = Subject(subject.kind, subject.name, make if mutant in (Seeds, SeedsNumpy) else quietly, {}, subject.offer, "", subject.build)
    try:
        assert failing(watched) == ids
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
        for one in made:
            if isinstance(one, Threads):
                one.stop.set()
            if isinstance(one, Opens):
                os.close(one.kept)


def test_a_misspelt_target_fails_to_build() -> None:
    """CO-01."""
    from blindcast.discovery import Entry
    from blindcast.host import Host, Offered
    from blindcast.testing.kit import subject_in

    offered = Offered("graders", Offer("gone", "json:dumpz", "x"), Entry("acme", "acme", "json"))
    (result, *_) = [judge(check, subject_in(Host({}, discovers=False), offered)) for check in checks("graders")]
    assert (result.id, result.result) == ("CO-01", "fail")
    assert "dumpz" in result.detail


def test_a_missing_option_is_named() -> None:
    """Q-05."""

    class Needs(Honest):
        def __init__(self, depth: int) -> None:
            self.depth = depth

    result = judge(checks("graders")[0], subject_of("graders", Needs))
    assert result.result == "fail"
    assert "depth" in result.detail


def test_a_plain_function_conforms_too() -> None:
    """P-32."""

    def flat(outcome: Any, curves: Any, *, weight: float = 1.0) -> float:
        return weight * float(curves.sum())

    assert failing(subject_of("graders", flat)) == []


def boom(_subject: Subject) -> None:
    raise KeyError("boom")


def test_a_check_that_does_not_apply_is_skipped_and_a_crash_is_a_failure() -> None:
    """Q-02, Q-04."""
    subject = subject_of("graders", Honest)
    claimed = judge(Check("XX-01", "linear", boom, claim="linear"), subject)
    needed = judge(Check("XX-02", "effects", boom, needs="effects"), subject)
    crashed = judge(Check("XX-03", "crash", boom), subject)
    assert [one.result for one in (claimed, needed, crashed)] == ["skip", "skip", "fail"]
    assert "does not claim linear" in claimed.detail
    assert "needs effects" in needed.detail
    assert crashed.detail.startswith("XX-03 crash: Honest raised KeyError")
    assert isinstance(crashed, Result)


def test_a_claim_is_checked_where_it_is_made() -> None:
    """Q-02."""

    class Claims(Honest):
        properties: ClassVar[frozenset[str]] = frozenset({"linear"})

    assert judge(Check("XX-01", "linear", boom, claim="linear"), subject_of("graders", Claims)).result == "fail"


def test_only_claims_and_needs_can_be_skipped_and_only_with_a_reason() -> None:
    """P-51."""
    with pytest.raises(ValueError, match="CO-01 cannot be skipped"):
        conforms("graders", Honest, skip={"CO-01": "why not"})
    optional = [check.id for check in checks("graders") if check.claim or check.needs]
    if optional:
        with pytest.raises(ValueError, match="with a reason"):
            conforms("graders", Honest, skip={optional[0]: " "})


@pytest.mark.parametrize("kind", KINDS)
def test_check_ids_are_unique_and_well_formed(kind: str) -> None:
    """P-50."""
    for protocol in KINDS[kind].checks:
        ids = [check.id for check in checks(kind, protocol)]
        assert len(set(ids)) == len(ids)
        assert all(re.fullmatch(r"[A-Z]{2}-\d\d", one) for one in ids)
        assert ids[:4] == ["CO-01", "CO-02", "CO-03", "CO-04"] or kind in ("predictors", "commands")


def test_importing_the_kit_loads_neither_pytest_nor_numpy() -> None:
    """P-50."""
    probe = "import sys; from blindcast.testing import checks; print([m for m in ('pytest', 'numpy') if m in sys.modules])"
    told = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True).stdout
    assert told.strip() == "[]"


@conforms("graders", "earliness_x_horizon")
def test_the_official_grader(check: Callable[[], None]) -> None:
    """P-53: every shipped offer passes all its checks."""
    check()


@conforms("anonymizers", "bps")
def test_the_bps_anonymizer(check: Callable[[], None]) -> None:
    """P-53."""
    check()


@click.command()
def told() -> None:
    """Tell a thing."""


@click.group()
def banner() -> None:
    """Tell a thing."""
    click.echo("welcome")


banner.add_command(told)


def command_subject(command: click.Command, name: str = "tell", summary: str = "tell a thing") -> Subject:
    return Subject("commands", name, lambda: command, {}, Offer(name, "x:y", summary))


@pytest.mark.parametrize(
    ("subject", "ids"),
    [
        (command_subject(told), []),
        (command_subject(banner), ["CM-02"]),
        (command_subject(told, summary="does a thing"), ["CM-03"]),
        (command_subject(told, name="run"), ["CM-04"]),
    ],
)
def test_the_checks_of_commands_find_their_mutants(subject: Subject, ids: list[str]) -> None:
    """CM-02 to CM-04."""
    assert failing(subject, "CM-") == ids


def test_what_is_no_command_fails() -> None:
    """CM-01."""
    assert "CM-01" in failing(Subject("commands", "x", lambda: print, {}, Offer("x", "x:y", "x")), "CM-")


def test_a_skip_may_be_raised_by_a_check() -> None:
    """Q-02."""

    def no(_subject: Subject) -> None:
        raise Skip("no mirror here")

    assert judge(Check("XX-01", "mirror", no), subject_of("graders", Honest)).detail == "no mirror here"
