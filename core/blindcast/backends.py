"""Which isolation backend runs a predictor: named by the spec and the environment, never a silent downgrade (I-03)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

from attrs import frozen

from blindcast.contracts import Isolation
from blindcast.errors import DataError, DeniedError, UsageError
from blindcast.host import Host, Offered
from blindcast.names import did_you_mean
from blindcast.records import IsolationReport, Policy

__all__ = [
    "ORDER",
    "RECORD",
    "TRIPWIRE",
    "VARIABLE",
    "Backend",
    "appoint",
    "by_name",
    "check_word",
    "choose",
    "close",
    "decide",
    "isolation_line",
    "isolation_record",
    "known_names",
    "members",
    "recorded_line",
    "runner_line",
]

ORDER: Final = ("privdrop", "userns", "bwrap", "landlock", "hook")  # strongest first (isolation.md section 2)
KERNEL: Final = ORDER[:4]
VARIABLE: Final = "BLINDCAST_REQUIRE_ISOLATION"
SPEC: Final = "[isolation] require"
TRIPWIRE: Final = "a tripwire: it does not stop a determined submission"
RECORD: Final = (
    *("backend", "class", "required", "controls", "interpreter", "kernel", "arch", "filter_sha256"),
    *("limits", "kill", "uid", "fresh", "trips", "card"),
)  # the keys of `isolation` in run.json (I-06)


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

    def report_of(name: str) -> IsolationReport | None:
        return IsolationReport(name, "kernel" if name in KERNEL else "tripwire", True, ()) if name in available else None

    return decide(spec, variable, ORDER, report_of, root=root)


def check_word(host: Host, require: str) -> None:
    """Refuse a spec whose `[isolation] require` names nothing here, before anything is started. Raises DataError `isolation_word`."""
    if require not in ("any", "kernel", *ORDER):
        known = known_names(by_name(host))
        if members(require, known) is None:
            raise _unknown(SPEC, require, known)


def _unknown(where: str, word: str, known: tuple[str, ...]) -> DataError | UsageError:
    return (DataError if where == SPEC else UsageError)(
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
    reasons: Mapping[str, str],
) -> str:
    both = [name for name in allowed if name in narrowed]
    if not both:
        raise DeniedError(
            "isolation_conflict",
            f"{spec} is required, and by {VARIABLE} {variable}: no backend is both",
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
        expected="one of: " + ", ".join(both) + "".join(f"; {name}: {why}" for name, why in reasons.items()),
        do="`blindcast isolation show` says what each backend lacks here",
        candidates=both,
        reasons=dict(reasons),
    )


def decide(
    require: str,
    variable: str,
    known: tuple[str, ...],
    report_of: Callable[[str], IsolationReport | None],
    *,
    root: bool,
    where: str = SPEC,
) -> str:
    """The name of the first backend that satisfies both requirements, by what each says of itself (I-03).

    `report_of` is asked in order and gives None for a name that nobody offers; `where` says who requires `require`. A
    tripwire never counts as `kernel`, whatever its name. Raises as `choose` does.
    """
    allowed = members(require, known)
    narrowed = members(variable, known) if variable else known
    for place, word, found in ((where, require, allowed), (VARIABLE, variable, narrowed)):
        if found is None:
            raise _unknown(place, word, known)
    reasons: dict[str, str] = {}

    def is_available(name: str) -> bool:
        report = report_of(name)
        if report is None:
            return False
        if not report.available:
            reasons[name] = report.reason
        elif report.classed != "kernel" and "kernel" in (require, variable):
            reasons[name] = f"its class is {report.classed}"
        return name not in reasons

    return _first(require, variable, allowed or (), narrowed or (), root, is_available, reasons)


def appoint(host: Host, require: str, policy: Policy, environ: Mapping[str, str], *, root: bool) -> Backend:
    """Probe the offered backends in order until one satisfies the spec and the environment. Raises DeniedError, UsageError."""
    offered = by_name(host)
    tried: dict[str, Backend] = {}

    def report_of(name: str) -> IsolationReport | None:
        if name not in offered:
            return None
        isolation: Isolation = host.make(offered[name], {})
        tried[name] = Backend(name, isolation, isolation.probe(policy))
        return tried[name].report

    chosen = ""
    try:
        chosen = decide(require, environ.get(VARIABLE, ""), known_names(offered), report_of, root=root)
    finally:
        for name, backend in tried.items():
            if name != chosen:
                close(backend.isolation)
    return tried[chosen]


def known_names(offered: Iterable[str]) -> tuple[str, ...]:
    """Every name that a requirement may say: ours in order, then the installed ones."""
    return (*ORDER, *(name for name in offered if name not in ORDER))


def by_name(host: Host) -> dict[str, Offered]:
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
    return _line(report.backend, report.classed, [(control.id, control.state, control.detail) for control in report.controls])


def runner_line(report: IsolationReport) -> str:
    """The one line at the start of each server (I-06)."""
    return f"[runner] predictor {isolation_line(report).replace(' ', ': ', 1)}"


def recorded_line(record: Mapping[str, Any]) -> str:
    """The line of a run that was kept: what it said when it began."""
    return _line(
        record["backend"], record["class"], [(control["id"], control["state"], control.get("detail", "")) for control in record["controls"]]
    )


def _line(name: str, classed: str, controls: Iterable[tuple[str, str, str]]) -> str:
    """What is active, with the version that was measured beside it where there is one, never in its place (I-01)."""
    active = ", ".join(f"{id_} {detail}" if detail.isdecimal() else id_ for id_, state, detail in controls if state == "active")
    return f"isolation {name} ({active or 'no control'})" + ("" if classed == "kernel" else f"; {TRIPWIRE}")


def isolation_record(
    report: IsolationReport, required: str, policy: Policy, *, uid: int | None = None, fresh: str | None = None, trips: int = 0
) -> dict[str, object]:
    """The record of `run.json` (I-06); what this version does not measure is null.

    `uid` is that of the run's first child; `fresh` the mode of I-35, None in `carry`; `trips` counts what the hook
    refused, by the child's own word (K-02).
    """
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
        "uid": report.uid if uid is None else uid,
        "fresh": None if fresh is None else {"mode": fresh},
        "trips": trips,
        "card": None,
    }
