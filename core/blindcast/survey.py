"""What isolation this host gives: every offered backend probed at once, and which one a run would get (isolation.md I-90)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from attrs import frozen

from blindcast.affinity import cpu_mask
from blindcast.backends import ORDER, SPEC, VARIABLE, by_name, close, decide, known_names
from blindcast.cgroups import cpu_quota
from blindcast.contracts import Isolation
from blindcast.errors import BlindcastError, DeniedError
from blindcast.host import Host, Offered
from blindcast.jobs import VARIABLE as RUNS_VARIABLE
from blindcast.jobs import slots
from blindcast.printable import printable
from blindcast.records import IsolationReport, Policy

__all__ = ["Survey", "Surveyed", "own_roots", "survey"]


@frozen
class Surveyed:
    """One backend, by the name that a requirement gives it, and what it said of itself."""

    name: str
    report: IsolationReport


@frozen
class Survey:
    """Every backend, strongest first; the one a run would get, or why it would get none."""

    backends: tuple[Surveyed, ...]
    chosen: Surveyed | None
    refusal: DeniedError | None
    slots: int  # runs at once (I-80)
    warnings: tuple[str, ...]

    @property
    def available(self) -> list[str]:
        """The names of those that can be had."""
        return [one.name for one in self.backends if one.report.available]

    @property
    def quarantined(self) -> list[Mapping[str, Any]]:
        """Uids that no run gets any more, each with `uid` and `reason`, as the backends tell them (I-16)."""
        found = [uid for one in self.backends for uid in _listed(one.report, "quarantined") if isinstance(uid, Mapping)]
        return list({str(uid): uid for uid in found}.values())


def survey(host: Host, require: str, policy: Policy, environ: Mapping[str, str], *, root: bool, where: str = SPEC) -> Survey:
    """Probe what is offered, in threads, and decide as a run would; nothing is left behind.

    Raises `isolation_word` for an unknown word of `require` (which stands in `where`) or of the variable, and UsageError
    `max_concurrent_runs_invalid`.
    """
    offered = by_name(host)
    count, warning = slots(cpu_mask(), *cpu_quota(), environ.get(RUNS_VARIABLE))
    backends = tuple(_probed(host, _once(offered), policy))
    reports = {name: one.report for one in backends for name in offered if offered[name] is offered[one.name]}
    told = [str(line) for one in backends for line in _listed(one.report, "warnings")]
    told += [*([warning] if warning else []), *_weakness(backends)]
    warnings = tuple(dict.fromkeys(told))
    try:
        name = decide(require, environ.get(VARIABLE, ""), known_names(offered), reports.get, root=root, where=where)
    except DeniedError as refusal:
        return Survey(backends, None, refusal, count, warnings)
    return Survey(backends, Surveyed(name, reports[name]), None, count, warnings)


def own_roots(home: Path, environ: Mapping[str, str]) -> tuple[Path, ...]:
    """What no child may reach, whatever the task: the home, and the ledger's file where it lies elsewhere (I-23)."""
    if not environ.get("BLINDCAST_LEDGER_URL"):
        return (home,)
    from blindcast.ledger import ledger_file  # only here: it needs SQLAlchemy

    file = ledger_file(environ)
    return (home,) if file is None else (home, file)


def _once(offered: Mapping[str, Offered]) -> dict[str, Offered]:
    """Each offer under its shortest name, ours first in order of strength."""
    names = sorted(offered, key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), len(name), name))
    found: dict[str, Offered] = {}
    for name in names:
        if all(offered[name] is not offered[other] for other in found):
            found[name] = offered[name]
    return found


def _probed(host: Host, offered: Mapping[str, Offered], policy: Policy) -> Iterator[Surveyed]:
    """What each says of itself; one that fails is not available, and stops nobody else's probe."""
    made: dict[str, Isolation] = {}
    broken: dict[str, str] = {}
    for name, offer in offered.items():
        try:
            made[name] = host.make(offer, {})
        except BlindcastError as error:
            broken[name] = f"{error.code}: {error.what}"
    with ThreadPoolExecutor(max_workers=len(made) or 1) as pool:
        waited = {name: pool.submit(_probe, name, isolation, policy) for name, isolation in made.items()}
        for name in offered:
            yield Surveyed(name, waited[name].result() if name in waited else _unavailable(name, broken[name]))


def _probe(name: str, isolation: Isolation, policy: Policy) -> IsolationReport:
    try:
        return isolation.probe(policy)
    except BlindcastError as error:
        return _unavailable(name, f"{error.code}: {error.what}")
    except Exception as error:  # a stranger's: it is told, and the others are still tried
        return _unavailable(name, f"its probe failed: {type(error).__name__}: {error}")
    finally:
        close(isolation)


def _unavailable(name: str, reason: str) -> IsolationReport:
    return IsolationReport(name, "tripwire", False, (), reason=printable(reason))


def _listed(report: IsolationReport, key: str) -> Iterable[object]:
    found = report.detail.get(key)
    return found if isinstance(found, list | tuple) else ()


def _weakness(backends: Iterable[Surveyed]) -> list[str]:
    classes = {one.report.classed for one in backends if one.report.available}
    if not classes:
        return ["isolation: no backend is available here; no predictor can run"]
    if "kernel" not in classes:
        return ["isolation: no backend of class kernel; what runs here is a tripwire and does not stop a determined submission"]
    return []
