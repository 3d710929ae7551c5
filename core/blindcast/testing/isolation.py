"""IS-01 to IS-10: what a backend must do that runs hostile code (conformance.md, isolation.md).

Some of these run code that misbehaves on purpose, so all of them run in a throw-away namespace (`throwaway`), never on the host.
"""

from __future__ import annotations

import json
import os
import pwd
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from attrs import evolve

from blindcast.backends import close
from blindcast.contracts import Child, Isolation
from blindcast.errors import DeniedError
from blindcast.records import IsolationReport, Policy
from blindcast.testing import endings, sources
from blindcast.testing.corpus import differing
from blindcast.testing.kit import Check, Skip, Subject
from blindcast.testing.scene import POLICY, Ran, head_here, run
from blindcast.testing.surroundings import alive, changed, left, strain, surroundings
from blindcast.testing.throwaway import elsewhere
from blindcast.testing.witnesses import facts_of

__all__ = ["ACTS", "CHECKS"]

PROBE_S: Final = 1.0
PROBES: Final = 5  # the best of them is measured: others work on this machine too
NO_CPU: Final = 1_000_000
ENVIRONMENT: Final = {  # I-12
    "HOME": "/",
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "JOBLIB_MULTIPROCESSING": "0",
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "ARROW_IO_THREADS"), "1"),
}
DESCRIPTORS: Final = [0, 1, 2, 3, 4]  # I-11
STATES: Final = ("active", "unavailable", "failed")

Act = Callable[[Isolation, Path], None]


def _report(isolation: Isolation) -> IsolationReport:
    """The backend's report. Raises Skip where it is not available here."""
    report = isolation.probe(POLICY)
    if not report.available:
        raise Skip(f"{report.backend} is not available here: {report.reason}")
    return report


def probe_is_clean(isolation: Isolation, _folder: Path) -> None:
    """IS-01: the second probe is measured, so that the backend's own processes have started."""
    _report(isolation)
    before, processes = surroundings(), alive()
    limit_s, best_s = PROBE_S * strain(), float("inf")
    for _ in range(PROBES):
        started = time.monotonic()
        isolation.probe(POLICY)
        best_s = min(best_s, time.monotonic() - started)
        if best_s < limit_s:
            break
    assert best_s < limit_s, f"expected a probe in less than {limit_s:.2g} s, got {best_s:.2f} s, the best of {PROBES}"
    more = left(processes, endings.GONE_S)
    assert not more, f"expected no process that was not there before the probe, got {sorted(more)}"
    differs = changed(before, surroundings())
    assert not differs, f"expected {', '.join(differs)} as before the probe, got {[*differs.values()][:1]}"


def never_downgrades(isolation: Isolation, folder: Path) -> None:
    """IS-02: a slot on a processor that is not there, and as root a range of uids without one that may be used."""
    _report(isolation)
    given: dict[str, tuple[Policy, int | None]] = {f"processor {NO_CPU}": (POLICY, NO_CPU)}
    if os.geteuid() == 0:
        taken = next(user.pw_uid for user in pwd.getpwall() if user.pw_uid != 0)
        given[f"uid_range {taken}-{taken}, which a user has"] = (Policy(uid_range=(taken, taken)), None)
    for what, (policy, cpu) in given.items():
        try:
            ran = run(isolation, folder, sources.HONEST, policy=policy, cpu=cpu)
        except DeniedError:
            continue
        refused = len(ran.reasons) == 1 and ran.reasons[0].startswith("setup:") and not ran.walked
        assert refused, f"{what}: expected no child, but DeniedError or setup:<control>, got {ran.reasons or 'a run to its end'}"


def says_what_is(isolation: Isolation, folder: Path) -> None:
    """IS-03: the kernel's own word on a living child, and what only the child can try, against what is reported.

    Each of these facts is of one control alone. What only shows with other controls off is `isolation test --mutate`'s (I-93).
    """
    report = _report(isolation)
    odd = [(control.id, control.state) for control in report.controls if control.state not in STATES]
    assert not odd, f"expected one of {STATES} for each control, got {odd}"
    mute = [control.id for control in report.controls if control.state != "active" and not control.detail]
    assert not mute, f"expected a reason of each control that is not active, got none of {mute}"
    ids = [control.id for control in report.controls]
    assert len(set(ids)) == len(ids), f"expected one state a control, got {sorted({one for one in ids if ids.count(one) > 1})} twice"
    facts: dict[str, bool | None] = {}
    told = _seen(isolation, folder, lambda child: facts.update(facts_of(child)))
    facts |= told["holds"]
    active = {control.id for control in report.controls if control.state == "active"}
    wishes = sorted(one for one in active if facts.get(one) is False)
    assert not wishes, f"reported active: expected {', '.join(wishes)} in force in a child, got none of it"
    hidden = sorted(one for one in ids if one not in active and facts.get(one))
    assert not hidden, f"reported not active: expected no {', '.join(hidden)} in a child, got it in force"


def _seen(isolation: Isolation, folder: Path, look: Callable[[Child], object] = lambda _child: None) -> dict[str, Any]:
    ran = run(isolation, folder, sources.REPORTS, look=look)
    assert not ran.reasons, f"a child that looks around: expected answers, got {ran.reasons}"
    told: dict[str, Any] = json.loads(ran.output.splitlines()[0])
    return told


def changes_nothing(isolation: Isolation, folder: Path) -> None:
    """IS-05: against the same walk in this process; by any number of threads, and on one core whatever it asks for."""
    _report(isolation)
    ran = run(isolation, folder, sources.HONEST, targets=3)
    assert not ran.reasons, f"the reference predictor: expected answers, got {ran.reasons}"
    expected = head_here(sources.HONEST, 3)
    assert ran.head == expected, f"the reference predictor: expected the commitment digest {expected}, got {ran.head}"
    for word, source, values in (("THREADS", sources.CROWD, ("1", "-1", "64")), ("CORES", sources.CORES, ("1", "0"))):
        heads = {}
        for value in values:
            ran = run(isolation, folder, source.replace(word, value))
            assert not ran.reasons, f"{word.lower()} {value}: expected answers, got {ran.reasons}"
            heads[value] = ran.head
        assert len(set(heads.values())) == 1, f"by {word.lower()}: expected one commitment digest, got {heads}"


def world_is_closed(isolation: Isolation, folder: Path) -> None:
    """IS-08: with a secret in this process's environment and a descriptor that could be inherited."""
    _report(isolation)
    os.environ["BLINDCAST_CANARY"] = "secret"
    leak = os.open(os.devnull, os.O_RDONLY)
    os.set_inheritable(leak, True)
    try:
        told = _seen(isolation, folder)
    finally:
        os.close(leak)
        del os.environ["BLINDCAST_CANARY"]
    assert told["fds"] == DESCRIPTORS, f"expected the descriptors {DESCRIPTORS} (I-11), got {told['fds']}"
    differs = sorted({*told["env"].items()} ^ {*ENVIRONMENT.items()})
    assert not differs, f"expected the environment of I-12, got a difference in {differs}"


def forgets(isolation: Isolation, folder: Path) -> None:
    """IS-10."""
    report = _report(isolation)
    doors = ("file", "module", "shared_memory") + (("sysv", "keys") if report.classed == "kernel" else ())
    source = sources.LEAVES_MARKS.replace("DOORS", repr(doors))
    try:
        for ordinal in (1, 2):
            ran: Ran = run(isolation, folder, source)
            assert not ran.reasons, f"run {ordinal} of a child that leaves marks: expected answers, got {ran.reasons}"
            found = ran.output.partition("found: ")[2].split("\n")[0]
            assert not found, f"run {ordinal}: expected no mark of an earlier run, got one by {found}"
    finally:
        for place in ("/tmp", "/var/tmp", "/dev/shm", "/"):
            with suppress(OSError):  # mostly it is not there, and cannot be
                Path(place, sources.MARK).unlink()


ACTS: Final[dict[str, tuple[str, Act]]] = {
    "IS-01": ("probe is clean", probe_is_clean),
    "IS-02": ("no downgrade", never_downgrades),
    "IS-03": ("says what is", says_what_is),
    "IS-05": ("honest unchanged", changes_nothing),
    "IS-06": ("nothing survives", endings.leaves_nothing_alive),
    "IS-07": ("deadlines hold", endings.deadlines_hold),
    "IS-08": ("closed world", world_is_closed),
    "IS-09": ("output capped", endings.output_is_capped),
    "IS-10": ("amnesia", forgets),
}  # those that act in the namespace they are run in; the corpus makes its own


def act_on(id_: str, subject: Subject) -> None:
    """Run one check here and now: in a throw-away namespace only."""
    isolation: Isolation = subject.make()
    try:
        with tempfile.TemporaryDirectory(prefix="blindcast-") as folder:
            ACTS[id_][1](isolation, Path(folder))
    finally:
        close(isolation)


def _aside(id_: str) -> Callable[[Subject], None]:
    def run_aside(subject: Subject) -> None:
        result = elsewhere(subject, [id_])[0]
        if result.result == "skip":
            raise Skip(result.detail)
        assert result.result == "pass", result.detail.removeprefix(f"{id_} {ACTS[id_][0]}: ")

    return run_aside


def holds_the_corpus(subject: Subject) -> None:
    """IS-04: built without options, as the corpus builds every backend."""
    if subject.offer is None or not isinstance(subject.offer.target, str):
        raise Skip("the corpus finds an installed backend only: install it and name it")
    wrong = differing(subject.name)
    assert not wrong, f"expected the verdicts of the class claimed, got {'; '.join(wrong)}"


CHECKS: tuple[Check, ...] = tuple(
    sorted(
        (*(Check(id_, title, _aside(id_)) for id_, (title, _) in ACTS.items()), Check("IS-04", "corpus", holds_the_corpus)),
        key=lambda check: check.id,
    )
)


def here(subject: Subject, id_: str) -> Check:
    """The check that acts in this process."""
    return evolve(next(check for check in CHECKS if check.id == id_), run=lambda _subject: act_on(id_, subject))
