"""IS-01 to IS-10 but IS-04: what a backend must do that runs hostile code (conformance.md, isolation.md).

Some of these run code that misbehaves on purpose, so all of them run in a throw-away namespace (`throwaway`), never on the host.
"""

from __future__ import annotations

import json
import os
import pwd
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from attrs import evolve

from blindcast.backends import close
from blindcast.buffer import RevealBuffer
from blindcast.contracts import Isolation
from blindcast.errors import DeniedError
from blindcast.records import IsolationReport, Limits, Policy, SpawnSpec
from blindcast.testing import sources
from blindcast.testing.kit import Check, Skip, Subject
from blindcast.testing.scene import Ran, alive, head_here, run
from blindcast.testing.throwaway import elsewhere

__all__ = ["ACTS", "CHECKS"]

PROBE_S: Final = 1.0
GONE_S: Final = 0.5  # from the kill, or the deadline, to the whole tree gone (I-71)
STEP_S: Final = 0.5
GROWTH_BYTES: Final = 16 << 20
ENVIRONMENT: Final = {  # I-12
    "HOME": "/",
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "JOBLIB_MULTIPROCESSING": "0",
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "ARROW_IO_THREADS"), "1"),
}
DESCRIPTORS: Final = [0, 1, 2, 3, 4]  # I-11
STATES: Final = ("active", "unavailable", "failed")
VISIBLE: Final = ("mountns", "pidns")  # controls whose absence their witness shows too, whatever namespace this process is in

Act = Callable[[Isolation, Path], None]


def _report(isolation: Isolation) -> IsolationReport:
    """The backend's report. Raises Skip where it is not available here."""
    report = isolation.probe(Policy())
    if not report.available:
        raise Skip(f"{report.backend} is not available here: {report.reason}")
    return report


def _surroundings() -> dict[str, Any]:
    mounts = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace")
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return {
        "processes": alive(),
        "mounts": mounts,
        "cgroups": Path("/proc/self/cgroup").read_text(encoding="utf-8"),
        "files": sorted(os.listdir(tempfile.gettempdir())),
        "uids": [line for line in status.splitlines() if line.startswith(("Uid", "Gid", "Groups", "Cap"))],
        "descriptors": len(os.listdir("/proc/self/fd")),
    }


def probe_is_clean(isolation: Isolation, _folder: Path) -> None:
    """IS-01: the second probe is measured, so that the backend's own processes have started."""
    _report(isolation)
    before = _surroundings()
    times = []
    for _ in range(3):
        started = time.monotonic()
        isolation.probe(Policy())
        times.append(time.monotonic() - started)
    assert min(times) < PROBE_S, f"expected a probe in less than {PROBE_S:g} s, got {min(times):.2f} s, the best of {len(times)}"
    left = _left(before.pop("processes"))
    assert not left, f"expected no process that was not there before the probe, got {sorted(left)}"
    after = _surroundings()
    changed = [name for name in before if before[name] != after[name]]
    assert not changed, f"expected {', '.join(changed)} as before the probe, got {[(before[name], after[name]) for name in changed][:1]}"


def never_downgrades(isolation: Isolation, folder: Path) -> None:
    """IS-02: the slots' range holds no uid that may be used, so no child can have one of its own."""
    _report(isolation)
    if os.geteuid() != 0:
        raise Skip("this uid can make no control fail: run as root")
    taken = next(user.pw_uid for user in pwd.getpwall() if user.pw_uid != 0)
    buffer = RevealBuffer(("p",), 1, 1, 1)
    (folder / "predictor.py").write_text(sources.HONEST, encoding="utf-8")
    fd = buffer.reopened()
    try:
        child = isolation.spawn(SpawnSpec(folder, fd, buffer.size, Policy(uid_range=(taken, taken))))
        child.kill("cancelled")
    except DeniedError:
        return
    finally:
        os.close(fd)
        buffer.close()
    raise AssertionError(f"uid_range {taken}-{taken}, which a user has: expected DeniedError, got a child")


def says_what_is(isolation: Isolation, folder: Path) -> None:
    """IS-03, in part: what a child sees agrees with what is reported; that each control holds alone needs its stand-ins off (I-93)."""
    report = _report(isolation)
    odd = [(control.id, control.state) for control in report.controls if control.state not in STATES]
    assert not odd, f"expected one of {STATES} for each control, got {odd}"
    ids = [control.id for control in report.controls]
    assert len(set(ids)) == len(ids), f"expected one state a control, got {sorted(one for one in set(ids) if ids.count(one) > 1)} twice"
    active = {control.id for control in report.controls if control.state == "active"}
    holds = _seen(isolation, folder)["holds"]
    wishes = sorted(one for one, held in holds.items() if one in active and not held)
    assert not wishes, f"reported active: expected their witnesses refused, got {', '.join(wishes)} wide open"
    hidden = sorted(one for one in VISIBLE if one in ids and one not in active and holds[one])
    assert not hidden, f"reported not active: expected their witnesses to succeed, got {', '.join(hidden)} in force"


def _seen(isolation: Isolation, folder: Path) -> dict[str, Any]:
    ran = run(isolation, folder, sources.REPORTS)
    assert not ran.reasons, f"a child that looks around: expected answers, got {ran.reasons}"
    told: dict[str, Any] = json.loads(ran.output.splitlines()[0])
    return told


def changes_nothing(isolation: Isolation, folder: Path) -> None:
    """IS-05: against the same walk in this process; for LightGBM any number of threads against one."""
    _report(isolation)
    ran = run(isolation, folder, sources.HONEST, targets=3)
    assert not ran.reasons, f"the reference predictor: expected answers, got {ran.reasons}"
    expected = head_here(sources.HONEST, 3)
    assert ran.head == expected, f"the reference predictor: expected the commitment digest {expected}, got {ran.head}"
    heads = {}
    for threads in ("1", "-1", "64"):
        ran = run(isolation, folder, sources.CROWD.replace("THREADS", threads))
        assert not ran.reasons, f"LightGBM with n_jobs={threads}: expected answers, got {ran.reasons}"
        heads[threads] = ran.head
    assert len(set(heads.values())) == 1, f"LightGBM by n_jobs: expected one commitment digest, got {heads}"


def leaves_nothing_alive(isolation: Isolation, folder: Path) -> None:
    """IS-06: a process of the run is one that was not there before it. A backend that guarantees no kill is tried by plain Python only."""
    report = _report(isolation)
    doors = ("by_call",) if "not guaranteed" in report.kill else ("by_call", "by_library")
    before = alive()
    run(isolation, folder, sources.OUTLIVES.replace("DOORS", repr(doors)))
    left = _left(before)
    assert not left, f"after the kill of a child that forked twice: expected no process of the run within {GONE_S:g} s, got {sorted(left)}"


def _left(before: frozenset[int], limit_s: float = GONE_S) -> frozenset[int]:
    """Processes that are still there, beyond those of before, once `limit_s` has passed."""
    deadline = time.monotonic() + limit_s
    while (left := alive() - before) and time.monotonic() < deadline:
        time.sleep(0.01)
    return left


def deadlines_hold(isolation: Isolation, folder: Path) -> None:
    """IS-07."""
    _report(isolation)
    before = alive()
    ran = run(isolation, folder, sources.STUBBORN, limits=Limits(step_wall_s=STEP_S))
    assert ran.reasons == ["step_deadline"], f"a child that ignores signals: expected step_deadline, got {ran.reasons}"
    left = _left(before, STEP_S + GONE_S - ran.took_s)
    assert not left, f"a child that ignores signals: expected it gone {STEP_S + GONE_S:g} s after the question, got {sorted(left)}"


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


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def output_is_capped(isolation: Isolation, folder: Path) -> None:
    """IS-09."""
    _report(isolation)
    run(isolation, folder, sources.HONEST)  # so that what this process keeps of a run is there already
    before = _resident_bytes()
    ran = run(isolation, folder, sources.SHOUTS)
    grown = _resident_bytes() - before
    assert ran.reasons == ["output"], f"1 GiB of output: expected the reason output, got {ran.reasons}"
    assert grown < GROWTH_BYTES, f"1 GiB of output: expected this process to grow by less than {GROWTH_BYTES >> 20} MiB, got {grown >> 20}"
    assert len(ran.output) < 1 << 20, f"1 GiB of output: expected its first and last part, got {len(ran.output)} characters"


def forgets(isolation: Isolation, folder: Path) -> None:
    """IS-10."""
    report = _report(isolation)
    doors = ("file", "module", "shared_memory") + (("sysv", "keys") if report.classed == "kernel" else ())
    source = sources.LEAVES_MARKS.replace("DOORS", repr(doors))
    for ordinal in (1, 2):
        ran: Ran = run(isolation, folder, source)
        assert not ran.reasons, f"run {ordinal} of a child that leaves marks: expected answers, got {ran.reasons}"
        found = ran.output.partition("found: ")[2].split("\n")[0]
        assert not found, f"run {ordinal}: expected no mark of an earlier run, got one by {found}"


ACTS: Final[dict[str, tuple[str, Act]]] = {
    "IS-01": ("probe is clean", probe_is_clean),
    "IS-02": ("no downgrade", never_downgrades),
    "IS-03": ("says what is", says_what_is),
    "IS-05": ("honest unchanged", changes_nothing),
    "IS-06": ("nothing survives", leaves_nothing_alive),
    "IS-07": ("deadlines hold", deadlines_hold),
    "IS-08": ("closed world", world_is_closed),
    "IS-09": ("output capped", output_is_capped),
    "IS-10": ("amnesia", forgets),
}


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


CHECKS: tuple[Check, ...] = tuple(Check(id_, title, _aside(id_)) for id_, (title, _) in ACTS.items())


def here(subject: Subject, id_: str) -> Check:
    """The check that acts in this process."""
    return evolve(next(check for check in CHECKS if check.id == id_), run=lambda _subject: act_on(id_, subject))
