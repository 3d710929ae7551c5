"""A probe: each control tried in a throw-away child by doing the forbidden thing, and the report made of it (I-90)."""

from __future__ import annotations

import os
import platform
import select
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Final, Literal

from attrs import evolve, field, frozen

from blindcast.buffer import RevealBuffer
from blindcast.frames import Ready, SetupFailed
from blindcast.judge import Inbox
from blindcast.printable import printable
from blindcast.records import Control, IsolationReport, Policy, SpawnSpec
from blindcast_isolation import linux, ruleset, seccomp
from blindcast_isolation.cgroup import CONTROLS as GROUP_CONTROLS
from blindcast_isolation.cgroup import make_group
from blindcast_isolation.spawning import ENTRY, KILLS, Probing, Spawning, kill_method
from blindcast_isolation.witness import INTERPRETER

__all__ = ["Answers", "Probed", "describe", "measure", "tried", "unequal"]

_PROBE_S: Final = 10.0
PARENTS: Final = "parents"  # the step that opens closed folders above the interpreter


@frozen
class Probed:
    """What was measured: `found` by control id, the controls `in_force`, and what stands against it, if anything."""

    found: Mapping[str, Control]
    in_force: tuple[str, ...]
    against: str = ""
    interpreter: Mapping[str, str] = field(factory=dict)
    kill: str = ""

    def told(self, more: Mapping[str, Control]) -> Probed:
        """With further controls' states."""
        return evolve(self, found={**self.found, **more})


@frozen
class Answers:
    """What one probe's child said: what could not be set up, each witness's word, its `ready`."""

    failed: SetupFailed | None
    words: Mapping[str, str]
    ready: Ready | None


def measure(spawning: Spawning, policy: Policy, wanted: Iterable[str], optional: Collection[str], given: tuple[str, ...] = ()) -> Probed:
    """Try `wanted` in throw-away children; what is `optional` and fails here is left out and says why."""
    found = _group_controls([name for name in wanted if name in GROUP_CONTROLS])
    controls = [name for name in wanted if name not in found or found[name].state == "active"]
    buffer = RevealBuffer(("p",), 1, 1, 1)
    try:
        while True:
            said = tried(spawning, policy, buffer, tuple(name for name in controls if name != "seals"))
            failed = said.failed
            if failed is None or failed.control not in controls or failed.control not in optional:
                break
            found[failed.control] = Control(failed.control, "unavailable", printable(failed.text))
            controls.remove(failed.control)
        missed_seals = _try_seals(buffer)
    finally:
        buffer.close()
    if failed is not None or said.ready is None:
        against = _refusal(failed)
        return Probed(found | {name: Control(name, "failed", against) for name in controls}, (), against)
    words = {"seals": missed_seals, **dict.fromkeys(GROUP_CONTROLS, ""), **said.words}
    for name in controls:
        found.setdefault(name, _control(name, words.get(name, "its witness said nothing")))
        if found[name].state == "failed" and name in optional:
            controls = [kept for kept in controls if kept != name]
    method = kill_method(tuple(controls), given, has_slot=os.geteuid() == 0)
    interpreter = {"version": said.ready.python, "libpython": said.ready.libpython}
    return Probed(found, tuple(name for name in controls if name != "seals"), unequal(said), interpreter, KILLS[method])


def _group_controls(wanted: list[str]) -> dict[str, Control]:
    """What a cgroup of version 2 offers here, by making one."""
    if not wanted:
        return {}
    try:
        group = make_group()
        group.remove()
    except OSError as error:
        return {name: Control(name, "unavailable", printable(f"no group of one's own: {error.strerror or error}")) for name in wanted}
    missing = "the controller is not switched on in the server's group"
    return {name: Control(name, "active") if name in group.controls else Control(name, "unavailable", missing) for name in wanted}


def _control(name: str, missed: str) -> Control:
    """What its witness says of it; beside Landlock that is in force stands the version of the kernel's interface, for show (I-06)."""
    shown = str(ruleset.version()) if name == "landlock" else ""
    return Control(name, "failed", printable(missed)) if missed else Control(name, "active", shown)


def _refusal(failed: SetupFailed | None) -> str:
    """Why a child could not be locked down at all."""
    if failed is None:
        return "the probe's child said nothing"
    if failed.control == PARENTS:
        return _unreadable(f"it lies below a closed folder, which could not be opened for a child: {failed.text}")
    return printable(f"{failed.control}: {failed.text}")


def tried(spawning: Spawning, policy: Policy, buffer: RevealBuffer, controls: tuple[str, ...], act: str = "") -> Answers:
    """What one throw-away child says of `controls`; with `act`, of that one alone, tried behind all that is set up."""
    with tempfile.TemporaryDirectory(prefix="blindcast-probe-") as folder, socket.create_server(("127.0.0.1", 0)) as listener:
        Path(folder, ENTRY).touch()
        probing, fd = Probing(listener.getsockname()[1], act), buffer.reopened()
        try:
            child = spawning.spawn(SpawnSpec(Path(folder), fd, buffer.size, policy), controls, probing)
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
        return Answers(failed, {log.level: log.text for log in inbox.logs}, ready)


def unequal(said: Answers) -> str:
    """What the dropped child's interpreter lacks against this one, in words; empty where nothing (I-22)."""
    if said.ready is not None and said.ready.python != sys.version:
        return _unreadable(f"the child runs {said.ready.python}, the server {sys.version}")
    if said.ready is not None and said.ready.libpython != (own := linux.identity_of_python()):
        return _unreadable(f"the child runs on {said.ready.libpython}, the server on {own}")
    if word := said.words.get(INTERPRETER, "its witness said nothing"):
        return _unreadable(f"what a submission may import cannot be imported after the drop: {word}")
    return ""


def _unreadable(why: str) -> str:
    return printable(f"interpreter_unreadable: {why}; allow mount namespaces, or move the environment").replace("\n", " ")


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


def describe(
    name: str,
    classed: Literal["kernel", "tripwire"],
    probed: Probed,
    order: Iterable[str],
    required: Iterable[str],
    either: Collection[str],
) -> IsolationReport:
    """The report of a backend: every control with its state; available when each required one, and one of `either`, is active."""
    controls = {control: probed.found.get(control, Control(control, "unavailable", "not reached")) for control in order}
    missing = [control for control in required if controls[control].state != "active"]
    if either and all(controls[control].state != "active" for control in either):
        missing.append(next(iter(either)))
    reason = probed.against or (f"{missing[0]}: {controls[missing[0]].detail}" if missing else "")
    return IsolationReport(
        backend=name,
        classed=classed,
        available=not reason,
        controls=tuple(controls.values()),
        reason=reason,
        kill=probed.kill,
        detail={
            "interpreter": dict(probed.interpreter) or None,
            "kernel": platform.release(),
            "arch": platform.machine(),
            "filter_sha256": seccomp.digest(seccomp.program()) if "seccomp" in probed.in_force else None,
        },
    )
