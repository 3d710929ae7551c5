"""What the backends share: an order made from a spec, and a probe that tries each control in a throw-away child."""

from __future__ import annotations

import math
import os
import platform
import select
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, Literal

from attrs import field, frozen

from blindcast.buffer import RevealBuffer
from blindcast.errors import DeniedError
from blindcast.frames import Ready, SetupFailed
from blindcast.judge import Inbox
from blindcast.printable import printable
from blindcast.records import Control, IsolationReport, Policy, SpawnSpec
from blindcast_isolation import linux, root
from blindcast_isolation.child import LockedChild
from blindcast_isolation.launcher import Launcher
from blindcast_isolation.limits import nproc, own_tasks
from blindcast_isolation.order import Order
from blindcast_isolation.slots import take_slot
from blindcast_isolation.witness import INTERPRETER

__all__ = ["Probed", "probe", "refuse_unavailable", "report", "spawn"]

Kill = Literal["pidns", "uid", "orphans"]

_UNBUILT: Final = ("seccomp", "landlock", "landlock-net", "landlock-scope", "cgroup-memory", "cgroup-pids", "cgroup-kill")
_KILL_TEXT: Final[Mapping[str, str]] = {"pidns": "pidns", "uid": "uid helper", "orphans": "pgrp (not guaranteed)"}
_PROBE_S: Final = 10.0
ENTRY: Final = "predictor.py"


@frozen
class Probed:
    """What was measured: `found` by control id, the controls `in_force`, and what stands against it, if anything."""

    found: Mapping[str, Control]
    in_force: tuple[str, ...]
    against: str = ""
    interpreter: Mapping[str, str] = field(factory=dict)


def spawn(launcher: Launcher, spec: SpawnSpec, controls: tuple[str, ...], task: Literal["shim", "probe"] = "shim") -> LockedChild:
    """A child with `controls` in force. Started by root it runs under a slot's uid (I-05). Raises DeniedError, FaultError."""
    slot = take_slot(spec.policy.uid_range) if os.geteuid() == 0 else None
    free = slot.release if slot is not None else _nothing
    try:
        if slot is not None:
            _open_up(spec.submission)
        order = _order(spec, controls, task, None if slot is None else slot.uid)
        return launcher.spawn(order, spec.buffer_fd, spec.policy.limits.output_bytes, free)
    except BaseException:
        free()
        raise


def _nothing() -> None:
    """Free nothing: no slot was taken."""


def _order(spec: SpawnSpec, controls: tuple[str, ...], task: str, uid: int | None) -> Order:
    submission, limits = os.path.realpath(spec.submission), spec.policy.limits
    is_rooted = "mountns" in controls
    inner = root.SUBMISSION if is_rooted else submission if os.path.isdir(submission) else os.path.dirname(submission)
    name = ENTRY if os.path.isdir(submission) else os.path.basename(submission)
    paths = root.interpreter_paths()
    return Order(
        task=task,
        submission=submission,
        entry=f"{inner}/{name}",
        buffer_bytes=spec.buffer_bytes,
        controls=controls,
        uid=uid,
        cpu=linux.current_cpu() if spec.cpu is None else spec.cpu,
        kill="pidns" if "pidns" in controls else "uid" if uid is not None else "orphans",
        memory_mb=limits.memory_mb,
        threads=nproc() if uid is not None else nproc(own_tasks()),
        open_files=limits.open_files,
        cpu_s=math.ceil(limits.run_wall_s) + 2,
        binds=(*root.system_paths(), *paths) if is_rooted else paths,
        closed=() if is_rooted or uid is None else root.closed_parents((*paths, submission)),
    )


def _open_up(submission: Path) -> None:
    """Let a slot's uid read the host's private copy; what keeps others out is the folder it lies in (I-24)."""
    for path in (submission, *submission.rglob("*")) if submission.is_dir() else (submission,):
        mode = path.stat(follow_symlinks=False).st_mode
        wanted = mode | (0o555 if path.is_dir() else 0o444)
        if not path.is_symlink() and mode != wanted:
            path.chmod(wanted & 0o7777)


def probe(launcher: Launcher, policy: Policy, wanted: Iterable[str], optional: Iterable[str]) -> Probed:
    """Try `wanted` in throw-away children; what is `optional` and fails here is left out and says why."""
    controls, found = list(wanted), {}
    may_miss = frozenset(optional)
    buffer = RevealBuffer(("p",), 1, 1, 1)
    try:
        found["seals"] = _control("seals", _try_seals(buffer))
        with tempfile.TemporaryDirectory(prefix="blindcast-probe-") as folder:
            Path(folder, ENTRY).touch()
            while True:
                failed, words, ready = _question(launcher, policy, Path(folder), buffer, tuple(controls))
                if failed is None or failed.control not in may_miss:
                    break
                found[failed.control] = Control(failed.control, "unavailable", printable(failed.text))
                controls.remove(failed.control)
    finally:
        buffer.close()
    if failed is not None or ready is None:
        against = f"{failed.control}: {failed.text}" if failed is not None else "the probe's child said nothing"
        return Probed(found | {name: Control(name, "failed", against) for name in controls}, (), printable(against))
    found |= {name: _control(name, words.get(name, "its witness said nothing")) for name in controls}
    return Probed(found, tuple(controls), _unequal(ready, words), {"version": ready.python, "libpython": ready.libpython})


def _control(name: str, missed: str) -> Control:
    return Control(name, "failed" if missed else "active", printable(missed))


def _question(
    launcher: Launcher, policy: Policy, folder: Path, buffer: RevealBuffer, controls: tuple[str, ...]
) -> tuple[SetupFailed | None, dict[str, str], Ready | None]:
    """(what could not be set up, each witness's word, the child's `ready`) of one throw-away child."""
    fd = buffer.reopened()
    try:
        child = spawn(launcher, SpawnSpec(folder, fd, buffer.size, policy), controls, "probe")
    finally:
        os.close(fd)
    inbox, ready, failed = Inbox(), None, None
    poll, deadline = select.poll(), time.monotonic() + _PROBE_S
    poll.register(child.answer, select.POLLIN)
    try:
        while poll.poll(max(0.0, deadline - time.monotonic()) * 1e3) and (data := os.read(child.answer, 1 << 16)):
            inbox.feed(data)
            while (frame := inbox.take()) is not None:
                ready = frame if isinstance(frame, Ready) else ready
                failed = frame if isinstance(frame, SetupFailed) else failed
    finally:
        child.kill("")
    return failed, {log.level: log.text for log in inbox.logs}, ready


def _unequal(ready: Ready, words: Mapping[str, str]) -> str:
    """What the dropped child's interpreter lacks against ours (I-22)."""
    if ready.python != sys.version:
        return f"interpreter_unreadable: the child runs {ready.python}"
    if word := words.get(INTERPRETER, "the witness said nothing"):
        return f"interpreter_unreadable: {printable(word)}; allow mount namespaces, or move the environment"
    return ""


def _try_seals(buffer: RevealBuffer) -> str:
    """Empty where the seals alone refuse to write, shrink and grow the buffer."""
    import mmap

    try:
        fd = buffer.reopened(is_writable=True)
    except PermissionError:
        return ""  # its mode refuses already; the seals stand behind it
    acts: tuple[Callable[[], object], ...] = (
        lambda: os.pwrite(fd, b"x", 0),
        lambda: os.ftruncate(fd, 0),
        lambda: os.ftruncate(fd, buffer.size + 1),
        lambda: mmap.mmap(fd, buffer.size),
    )
    try:
        for act in acts:
            try:
                act()
            except OSError:
                continue
            return "a sealed buffer could be changed"
    finally:
        os.close(fd)
    return ""


def report(name: str, probed: Probed, order: Iterable[str], required: Iterable[str], kill: Kill) -> IsolationReport:
    """The report of a backend: every control of I-01 with its state; available when each required one is active."""
    controls = {c: probed.found.get(c, Control(c, "unavailable", "this backend adds none")) for c in order}
    controls |= {c: Control(c, "unavailable", "not built yet") for c in _UNBUILT}
    missing = [c for c in required if controls[c].state != "active"]
    reason = probed.against or (f"{missing[0]}: {controls[missing[0]].detail}" if missing else "")
    return IsolationReport(
        backend=name,
        classed="tripwire",  # until seccomp is built, no backend is of class kernel
        available=not reason,
        controls=tuple(controls.values()),
        reason=reason,
        kill=_KILL_TEXT[kill],
        detail={
            "interpreter": dict(probed.interpreter) or None,
            "kernel": platform.release(),
            "arch": platform.machine(),
            "filter_sha256": None,
        },
    )


def refuse_unavailable(name: str, reason: str) -> DeniedError:
    """The error of a backend that is asked for a child it cannot lock down."""
    return DeniedError(
        "isolation_unavailable",
        f"isolation {name} is not available here: {reason}",
        expected="every control that the backend requires",
        do="`blindcast doctor` says what each backend lacks here",
    )
