"""Which isolation backend runs a predictor: named by the spec and the environment, never a silent downgrade (I-03)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

from attrs import frozen

from blindcast.contracts import Isolation
from blindcast.errors import DataError, DeniedError, UsageError
from blindcast.host import Host, Offered
from blindcast.names import did_you_mean
from blindcast.records import IsolationReport, Policy

__all__ = ["ORDER", "Backend", "appoint", "check_word", "choose", "isolation_line", "isolation_record", "members"]

ORDER: Final = ("privdrop", "userns", "bwrap", "landlock", "hook")  # strongest first (isolation.md section 2)
KERNEL: Final = ORDER[:4]
VARIABLE: Final = "BLINDCAST_REQUIRE_ISOLATION"


@frozen
class Backend:
    """The backend chosen, and what it said of itself."""

    name: str
    isolation: Isolation
    report: IsolationReport


def members(word: str, known: tuple[str, ...] = ORDER) -> tuple[str, ...] | None:
    """The backends that a requirement names, strongest first; None for an unknown word.

    `any` and `kernel` mean the shipped five and four: one that was only installed must be named.
    """
    if word == "any":
        return ORDER
    if word == "kernel":
        return KERNEL
    return (word,) if word in ORDER or word in known else None


def choose(spec: str, variable: str, *, root: bool, available: Collection[str]) -> str:
    """The first available backend that both requirements name; root starts at `privdrop`, others at `userns` (I-03).

    Raises `isolation_word` (of the variable UsageError, of the spec DataError), DeniedError `isolation_conflict` or
    `isolation_unavailable`.
    """
    allowed = members(spec)
    narrowed = members(variable) if variable else tuple(ORDER)
    for where, word, found in (("[isolation] require", spec, allowed), (VARIABLE, variable, narrowed)):
        if found is None:
            raise _unknown(where, word, ORDER)
    return _first(spec, variable, allowed or (), narrowed or (), root, lambda name: name in available)


def check_word(host: Host, require: str) -> None:
    """Refuse a spec whose `[isolation] require` names nothing here, before anything is started. Raises DataError `isolation_word`."""
    if require not in ("any", "kernel", *ORDER):
        known = (*ORDER, *(name for name in _by_name(host) if name not in ORDER))
        if members(require, known) is None:
            raise _unknown("[isolation] require", require, known)


def _unknown(where: str, word: str, known: tuple[str, ...]) -> DataError | UsageError:
    return (UsageError if where == VARIABLE else DataError)(
        "isolation_word",
        f"{where} is {word!r}",
        expected="any, kernel, or the name of a backend: " + ", ".join(known),
        do=did_you_mean(word, ("any", "kernel", *known), "unset it for `any`"),
    )


def _first(
    spec: str,
    variable: str,
    allowed: tuple[str, ...],
    narrowed: tuple[str, ...],
    root: bool,
    is_available: Callable[[str], bool],
    reasons: Mapping[str, str] | None = None,
) -> str:
    both = [name for name in allowed if name in narrowed]
    if not both:
        raise DeniedError(
            "isolation_conflict",
            f"the spec requires {spec}, {VARIABLE} requires {variable}: no backend is both",
            expected="two requirements that share a backend",
            do=f"edit [isolation] require, or unset {VARIABLE}",
        )
    for name in both:
        if (root or name != "privdrop") and is_available(name):
            return name
    wanted = f"{spec}" + (f" and {VARIABLE} {variable}" if variable else "")
    raise DeniedError(
        "isolation_unavailable",
        f"no isolation backend here satisfies {wanted}",
        expected="one of: " + ", ".join(both) + "".join(f"; {name}: {why}" for name, why in (reasons or {}).items()),
        do="`blindcast doctor` says what each backend lacks here",
        candidates=both,
        reasons=dict(reasons or {}),
    )


def appoint(host: Host, require: str, policy: Policy, environ: Mapping[str, str], *, root: bool) -> Backend:
    """Probe the offered backends in order until one satisfies the spec and the environment. Raises DeniedError, UsageError.

    A tripwire never counts as `kernel`, whatever its name.
    """
    offered = _by_name(host)
    known = (*ORDER, *(name for name in offered if name not in ORDER))
    variable = environ.get(VARIABLE, "")
    allowed = members(require, known)
    narrowed = members(variable, known) if variable else known
    for where, word, found in (("[isolation] require", require, allowed), (VARIABLE, variable, narrowed)):
        if found is None:
            raise _unknown(where, word, known)
    tried: dict[str, Backend] = {}
    reasons: dict[str, str] = {}

    def is_available(name: str) -> bool:
        if name not in offered:
            return False
        isolation: Isolation = host.make(offered[name], {})
        report = isolation.probe(policy)
        tried[name] = Backend(name, isolation, report)
        is_strong = report.classed == "kernel" or "kernel" not in (require, variable)
        if not report.available or not is_strong:
            reasons[name] = report.reason if not report.available else f"its class is {report.classed}"
        return name not in reasons

    chosen = ""
    try:
        chosen = _first(require, variable, allowed or (), narrowed or (), root, is_available, reasons)
    finally:
        for name, backend in tried.items():
            if name != chosen:
                close(backend.isolation)
    return tried[chosen]


def _by_name(host: Host) -> dict[str, Offered]:
    """Every backend by the names that mean it. One of ours is never hidden by a stranger's of that name (DESIGN 3)."""
    offers = host.offers("isolations")
    ours = {offer.name: offer for offer in offers if offer.distribution == "blindcast"}
    bare = {offer.name: offer for offer in offers if offer.status == "ok"}
    return {offer.qualified: offer for offer in offers if offer.distribution != "blindcast"} | bare | ours


def close(isolation: Isolation) -> None:
    """End a backend's own processes, where it has any."""
    ending = getattr(isolation, "close", None)
    if ending is not None:
        ending()


def isolation_line(report: IsolationReport) -> str:
    """The one line at the start of each run (I-06)."""
    active = ", ".join(control.id for control in report.controls if control.state == "active")
    note = "" if report.classed == "kernel" else "; a tripwire: it does not stop a determined submission"
    return f"isolation {report.backend} ({active or 'no control'}){note}"


def isolation_record(report: IsolationReport, required: str, policy: Policy) -> dict[str, object]:
    """The record of `run.json` (I-06); what this version does not measure is null."""
    return {
        "backend": report.backend,
        "class": report.classed,
        "required": required,
        "controls": [{"id": c.id, "state": c.state, "detail": c.detail} for c in report.controls],
        "interpreter": report.detail.get("interpreter"),
        "kernel": report.detail.get("kernel"),
        "arch": report.detail.get("arch"),
        "filter_sha256": report.detail.get("filter_sha256"),
        "limits": {
            "run_wall_s": policy.limits.run_wall_s,
            "step_wall_s": policy.limits.step_wall_s,
            "memory_mb": policy.limits.memory_mb,
            "threads": policy.limits.threads,
            "open_files": policy.limits.open_files,
            "output_bytes": policy.limits.output_bytes,
        },
        "kill": report.kill or None,
        "uid": report.uid,
        "fresh": None,
        "card": None,
    }
