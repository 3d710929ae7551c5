"""One column of the table: a backend and the rows it is tried with, in one server process."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import evolve, frozen

from blindcast.backends import close
from blindcast.contracts import Isolation
from blindcast.host import Host
from blindcast.records import Policy
from blindcast_isolation.corpus import asserts
from blindcast_isolation.corpus.rows import Row
from blindcast_isolation.corpus.stage import Stage
from blindcast_isolation.corpus.trial import Trial, tried
from blindcast_isolation.corpus.verdicts import Judged, judge, worst

__all__ = ["letter", "run"]

_LETTERS: Final = {"privdrop": "P", "userns": "N", "bwrap": "N", "landlock": "L", "hook": "H"}
_UNFILTERED: Final = "PN"  # the columns that are tried without seccomp too (K-08)
_WHY: Final = 500  # characters of a reason


def letter(backend: str, classed: str) -> str:
    """The column whose cells a backend must show (K-01); a stranger's is that of the class it claims.

    >>> letter("bwrap", "kernel"), letter("their-vm", "kernel"), letter("their-hook", "tripwire")
    ('N', 'N', 'H')
    """
    return _LETTERS.get(backend, "N" if classed == "kernel" else "H")


@frozen(eq=False)
class _Bench:
    """Where rows are tried: a backend, the stage, the honest control, and how many variants of an `each` row are tried."""

    isolation: Isolation
    stage: Stage
    column: str
    control: Row
    variants: int | None
    is_talking: bool

    def tables(self, rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
        """Each row's plain table; an honest run before the first and after each attack must give the same (K-05)."""
        self._tried(self.control)  # starts what is started once
        honest = self._tried(self.control).walk.curves
        for row in rows:
            began = time.monotonic()
            trials = list(self._trials(row))
            judged = [one for trial in trials for one in self._judged(row, trial)]
            judged += [] if row.is_control else _unlike(self._tried(self.control), honest)
            if self.is_talking:
                _talk(row, trials)
            yield _told(row, self.column, judged, trials, time.monotonic() - began)

    def _trials(self, row: Row) -> Iterator[Trial]:
        for state in ("carry", "fresh") if row.fresh else ("carry",):
            for variant in row.variants[: self.variants] if row.each else ("",):
                yield tried(row, variant, self.isolation, self.stage, _own(), state, self.control)

    def _tried(self, row: Row) -> Trial:
        return tried(row, "", self.isolation, self.stage, _own())

    def _judged(self, row: Row, trial: Trial) -> list[Judged]:
        if row.is_control:
            return self._checked(row, trial, [_honest(trial)])
        variants, cell = (trial.variant,) if trial.variant else row.variants, row.cell(self.column)
        is_tripwire = self.column == "H" and cell not in ("B", "b")  # a cell B says that the kernel stands behind the hook
        judged = judge(trial.facts, variants, is_harmless=cell == "H", proof=row.proof, reasons=row.reasons, is_tripwire=is_tripwire)
        judged = self._checked(row, trial, judged)
        suffix = "@fresh" if trial.state == "fresh" else ""
        return [Judged(one.variant + suffix, one.verdict, one.why) for one in judged]

    def _checked(self, row: Row, trial: Trial, judged: list[Judged]) -> list[Judged]:
        return asserts.applied(row.asserts, judged, trial, self.stage) if row.asserts else judged


def run(name: str, rows: Sequence[Row], control: Row, stage: Stage, *, variants: int | None, is_talking: bool) -> dict[str, Any]:
    """The column as a plain table: whether the backend is available, each row's verdicts, and those without seccomp."""
    host = Host(os.environ)
    host.discover()
    offered = next((offer for offer in host.offers("isolations") if name in (offer.name, offer.qualified)), None)
    if offered is None:
        return {"available": False, "reason": "nothing offers it", "rows": [], "unfiltered": []}
    isolation: Isolation = host.make(offered, {})
    try:
        report = isolation.probe(Policy(uid_range=stage.uid_range))
        if not report.available:
            return {"available": False, "reason": report.reason, "rows": [], "unfiltered": []}
        bench = _Bench(isolation, stage, letter(name, report.classed), control, variants, is_talking)
        done = {"available": True, "reason": "", "column": bench.column, "class": report.classed, "rows": list(bench.tables(rows))}
    finally:
        close(isolation)
    return done | {"unfiltered": _unfiltered(bench, [row for row in rows if row.unfiltered])}


def _unfiltered(bench: _Bench, rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The rows that try the layer behind seccomp, with seccomp off (K-08)."""
    make: Any = type(bench.isolation)
    if not rows or bench.column not in _UNFILTERED or not make.__module__.startswith("blindcast_isolation."):
        return []
    open_backend: Isolation = make(without=("seccomp",))
    try:
        open_backend.probe(Policy(uid_range=bench.stage.uid_range))
        behind = evolve(bench, isolation=open_backend)
        return list(behind.tables([evolve(row, cells=f"{row.unfiltered}BB") for row in rows]))
    finally:
        close(open_backend)


def _honest(trial: Trial) -> Judged:
    """An honest run: no ending but its own, no refused commitment, no warning (attacks.md section 8)."""
    warned = [line for line in trial.walk.output.splitlines() if "warn" in line.lower()]
    wrong = [*trial.walk.codes, *filter(None, [trial.walk.ended, *trial.facts.outside.values()]), *warned]
    return Judged("(run)", "?" if wrong else "H", "; ".join([*wrong, *trial.walk.texts]) or "walked to its end")


def _unlike(after: Trial, honest: bytes) -> list[Judged]:
    """An honest run must give after an attack what it gave before (K-05)."""
    if after.walk.curves == honest and not after.walk.codes and not after.walk.ended:
        return []
    return [Judged("(next run)", "M", f"C-01 gave other curves: {after.walk.ended} {after.walk.codes}")]


def _told(row: Row, column: str, judged: Sequence[Judged], trials: Sequence[Trial], took_s: float) -> dict[str, Any]:
    verdict, expected = worst(one.verdict for one in judged), row.cell(column)
    return {
        "id": row.id,
        "name": row.name,
        "verdict": verdict,
        "expected": expected,
        "ok": row.agrees(column, verdict),
        "variants": [{"name": one.variant, "verdict": one.verdict, "why": one.why[:_WHY]} for one in judged],
        "curves": trials[0].walk.curves.hex() if row.is_control else "",
        "took_s": round(took_s, 3),
    }


def _talk(row: Row, trials: Sequence[Trial]) -> None:
    for trial in trials:
        head = f"--- {row.id} {row.name} {trial.variant} {trial.state}: ended {trial.walk.ended or 'well'}, codes {trial.walk.codes}"
        sys.stderr.write("\n".join([head, trial.walk.output.rstrip(), *trial.walk.texts, ""]))
    sys.stderr.flush()


def _own() -> dict[str, int]:
    """Our long-lived processes by role: this server, and its zygote, the first child that lives."""
    me = os.getpid()
    own = {"server": me}
    for task in os.listdir(f"/proc/{me}/task"):
        children = Path(f"/proc/{me}/task/{task}/children")
        for pid in children.read_text().split() if children.exists() else ():
            own.setdefault("zygote", int(pid))
    return own
