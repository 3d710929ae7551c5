"""The kinds of plugins: their Protocols, the word for one, and what a plain function of the kind is (plugins.md 1, P-32)."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

__all__ = ["KINDS", "OBSERVERS", "Kind"]


@frozen
class Kind:
    """One registration hook. `protocols` in order: the first is what an offer with `protocol=""` means.

    `method` is the one method that a plain function may stand for, with `constants` beside it; "" where none may.
    `checks` is the module of `blindcast.testing` that holds the kind's conformance checks, by protocol.
    """

    name: str
    word: str
    protocols: tuple[str, ...]
    method: str = ""
    constants: Mapping[str, object] = field(factory=dict)
    checks: Mapping[str, str] = field(factory=dict)


_GRADER: Mapping[str, object] = {"version": 1, "unit": "bps", "total": "sum", "properties": frozenset()}
_PROBE: Mapping[str, object] = {"hard": False, "catches": frozenset()}

KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("datasources", "source", ("DataSource", "Importer"), checks={"": "datasources", "Importer": "importers"}),
        Kind("anonymizers", "anonymizer", ("Anonymizer",), "blind", {"strength": "basic"}, {"": "anonymizers"}),
        Kind("graders", "grader", ("Grader",), "grade", _GRADER, {"": "graders"}),
        Kind("isolations", "isolation", ("Isolation",), checks={"": "isolation"}),
        Kind("executors", "executor", ("Executor",), checks={"": "executors"}),
        Kind("evidence_stores", "evidence_store", ("EvidenceStore",), checks={"": "evidence"}),
        Kind("catalogues", "catalogue", ("Catalogue",), checks={"": "catalogues"}),
        Kind("authorities", "authority", ("Authority",), checks={"": "authorities"}),
        Kind("probes", "probe", ("Probe",), "examine", _PROBE, {"": "probes"}),
        Kind("predictors", "predictor", ("Predictor",), checks={"": "predictors"}),
        Kind("frontends", "frontend", ("Frontend",), checks={"": "frontends"}),
        Kind("reports", "report", ("Report",), "render", {"suffix": ".txt"}, {"": "reports"}),
        Kind("commands", "command", ("Command",), checks={"": "commands"}),
    )
}
OBSERVERS = frozenset({"run_started", "window_scored", "run_finished"})
