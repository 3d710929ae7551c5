"""The conformance kit: what a check is, which checks a kind has, and how one is run (P-50, P-51)."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from attrs import evolve, field, frozen

from blindcast.hookspecs import Offer
from blindcast.kinds import KINDS

if TYPE_CHECKING:
    from blindcast.host import Host
    from blindcast.registration import Offered

__all__ = ["Check", "Result", "Skip", "Subject", "checks", "conforms", "examine", "judge", "subject_in", "subject_of"]

F = TypeVar("F", bound=Callable[..., None])


class Skip(Exception):
    """A check that does not apply here; the text is the reason."""


@frozen
class Subject:
    """What is checked. `make()` builds a fresh object with `options`; for a predictor it gives the submission's path.

    `build(options)` builds with other options; None where the subject is not built from options.
    """

    kind: str
    name: str
    make: Callable[[], Any]
    options: Mapping[str, object] = field(factory=dict)
    offer: Offer | None = None
    protocol: str = ""
    build: Callable[[Mapping[str, object]], Any] | None = None


@frozen
class Check:
    """One numbered check (`conformance.md`). `run(subject)` raises AssertionError, or Skip.

    `needs` names an attribute without which the check is skipped; `claim` a property that the object must claim:
    a word of a grader's `properties`, an anonymizer's `strength`, or `hard` of a probe.
    """

    id: str
    title: str
    run: Callable[[Subject], None]
    needs: str = ""
    claim: str = ""

    @property
    def case(self) -> str:
        """`GR-01 flat earns nothing`."""
        return f"{self.id} {self.title}"


@frozen
class Result:
    """How one check went."""

    id: str
    title: str
    result: Literal["pass", "fail", "skip"]
    detail: str
    ms: float


def checks(kind: str, protocol: str = "") -> tuple[Check, ...]:
    """The checks of a kind, by id: `CO-..` first, then the kind's own. A kind that is not built yet has only the first."""
    from blindcast.testing.building import CHECKS

    if protocol == KINDS[kind].protocols[0]:
        protocol = ""
    name = f"blindcast.testing.{KINDS[kind].checks[protocol]}"
    own: tuple[Check, ...] = importlib.import_module(name).CHECKS if importlib.util.find_spec(name) else ()
    return own if kind in ("predictors", "commands") else (*CHECKS, *own)  # those two are not built from options (P-25)


def examine(check: Check, subject: Subject) -> None:
    """Run one check. Raises AssertionError with the id, or Skip; what the object raises is a failure too (Q-04)."""
    try:
        reason = _absent(check, subject)
        if reason:
            raise Skip(reason)
        check.run(subject)
    except Skip:
        raise
    except AssertionError as error:
        raise AssertionError(f"{check.case}: {error}") from error
    except (Exception, SystemExit) as error:
        raise AssertionError(f"{check.case}: {subject.name} raised {type(error).__name__}: {error}") from error


def judge(check: Check, subject: Subject, skip: Mapping[str, str] | None = None) -> Result:
    """Run one check and say how it went."""
    started = time.perf_counter()
    result: Literal["pass", "fail", "skip"] = "pass"
    detail = ""
    try:
        if skip and check.id in skip:
            raise Skip(skip[check.id])
        examine(check, subject)
    except Skip as reason:
        result, detail = "skip", str(reason)
    except AssertionError as error:
        result, detail = "fail", str(error)
    return Result(check.id, check.title, result, detail, round(1e3 * (time.perf_counter() - started), 3))


def _absent(check: Check, subject: Subject) -> str:
    """Why a check does not apply to this object, or ""."""
    if not check.needs and not check.claim:
        return ""
    made = subject.make()
    if check.needs and not hasattr(made, check.needs):
        return f"needs {check.needs}, which {subject.name} has not"
    claims = {*getattr(made, "properties", ()), getattr(made, "strength", ""), "hard" if getattr(made, "hard", False) else ""}
    return f"{subject.name} does not claim {check.claim}" if check.claim and check.claim not in claims else ""


def subject_in(host: Host, offered: Offered, options: Mapping[str, object] | None = None) -> Subject:
    """The subject that an offer of a host is; a predictor's `make` gives its path."""
    given = dict(options or {})
    subject = Subject(offered.kind, offered.name, lambda: host.make(offered, given), given, offered.offer, offered.protocol)
    if offered.kind == "predictors":
        return evolve(subject, make=lambda: host.locate(offered.qualified))
    if offered.kind == "commands":
        return evolve(subject, make=lambda: host.command(offered.qualified))
    return evolve(subject, build=lambda others: host.make(offered, others))


def subject_of(kind: str, what: str | Callable[..., Any], options: Mapping[str, object] | None = None, protocol: str = "") -> Subject:
    """The subject that an installed name, a class, a plain function of the kind, or a factory means.

    A function is of the kind when it takes positional parameters; without them it is a factory, called with `options`.
    """
    from blindcast.discovery import Entry
    from blindcast.host import Host
    from blindcast.registration import Offered

    host = Host()
    if isinstance(what, str):
        return subject_in(host, host.find(kind, what, protocol), options)
    name = getattr(what, "__name__", type(what).__name__)
    if not inspect.isclass(what) and not (KINDS[kind].method and _takes_positions(what)):
        return Subject(kind, name, lambda: what(**(options or {})), dict(options or {}), None, protocol)
    local = Offered(kind, Offer("local", what, name[:72], protocol=protocol), Entry("local", "local", "local"))
    return evolve(subject_in(host, local, options), name=name)


def _takes_positions(function: Callable[..., Any]) -> bool:
    return any(p.default is p.empty and p.kind is not p.KEYWORD_ONLY for p in inspect.signature(function).parameters.values())


def conforms(
    kind: str,
    what: str | Callable[..., Any],
    *,
    options: Mapping[str, object] | None = None,
    skip: Mapping[str, str] | None = None,
    protocol: str = "",
) -> Callable[[F], F]:
    """Turn `def test_it(check): check()` into one pytest case per check of the kind (P-51).

    `what` is an installed name, a class, a plain function of the kind, or a factory; `skip` gives a reason per id, and
    only for checks with a claim or a need. Raises ValueError for any other skip.
    """
    import pytest

    chosen = checks(kind, protocol)
    optional = {check.id for check in chosen if check.claim or check.needs}
    for unfit, reason in (skip or {}).items():
        if unfit not in optional or not reason.strip():
            raise ValueError(f"{unfit} cannot be skipped: only {', '.join(sorted(optional)) or 'no check'} may, each with a reason")

    def case(check: Check) -> Callable[[], None]:
        def run() -> None:
            if skip and check.id in skip:
                pytest.skip(skip[check.id])
            try:
                examine(check, subject_of(kind, what, options, protocol))
            except Skip as reason:
                pytest.skip(str(reason))

        return run

    mark = pytest.mark.parametrize("check", [pytest.param(case(check), id=check.case) for check in chosen])

    def decorate(test: F) -> F:
        marked: F = mark(test)
        return marked

    return decorate
