"""From a spec and a set of controls to a child: slot, cgroup, order, launcher; and all of it given back when the child is gone."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from attrs import frozen

from blindcast.errors import DeniedError
from blindcast.records import SpawnSpec
from blindcast_isolation import linux, root
from blindcast_isolation.cgroup import CONTROLS as GROUP_CONTROLS
from blindcast_isolation.cgroup import Group, make_group
from blindcast_isolation.child import LockedChild
from blindcast_isolation.exposure import refuse_exposed
from blindcast_isolation.launcher import Launcher
from blindcast_isolation.limits import nproc, own_tasks
from blindcast_isolation.order import Order
from blindcast_isolation.ownership import hand
from blindcast_isolation.slots import take_slot

__all__ = ["ENTRY", "KILLS", "Probing", "Spawning", "kill_method"]

ENTRY: Final = "predictor.py"
_AHEAD_NS: Final = 10 * 365 * 86_400 * 10**9
_TO_COME: Final = 4  # tasks of a shared uid that are ours and not there yet: supervisor, reader of the output, an allocator's threads
KILLS: Final = {
    "cgroup": "cgroup.kill",
    "pidns": "pidns",
    "given": "pidns",
    "uid": "uid helper",
    "refused": "process (fork refused)",
    "orphans": "pgrp (not guaranteed)",
}  # how each is told (I-70)


@frozen
class Probing:
    """What a probe's child is told beside: the server's loopback port, and the one control that is to act, if any."""

    port: int
    act: str = ""


def kill_method(controls: tuple[str, ...], given: tuple[str, ...], *, has_slot: bool) -> str:
    """The first kill method of I-70 that works under these controls."""
    if "pidns" in given:
        return "given"
    if "cgroup-kill" in controls:
        return "cgroup"
    if "pidns" in controls:
        return "pidns"
    if has_slot:
        return "uid"
    return "refused" if "seccomp" in controls else "orphans"


@frozen
class Spawning:
    """`launcher_for` says who starts a child; `given` are the controls that stand around it already."""

    launcher_for: Callable[[SpawnSpec, Group | None], Launcher]
    given: tuple[str, ...] = ()
    closes: bool = False  # a launcher serves one child
    binds: tuple[str, ...] = ()  # what is readable there beside the interpreter and the system's libraries

    def spawn(self, spec: SpawnSpec, controls: tuple[str, ...], probing: Probing | None = None) -> LockedChild:
        """A child with `controls` in force. Started by root it runs under a slot's uid (I-05). Raises DeniedError, FaultError."""
        with ExitStack() as held:
            slot = take_slot(spec.policy.uid_range) if os.geteuid() == 0 else None
            if slot is not None:
                held.callback(slot.release)
                for folder in (spec.submission, *(() if spec.data is None else (spec.data,))):
                    _open_up(folder)
                if spec.workspace is not None:
                    slot.keep_workspace(spec.workspace)
                    held.callback(hand, spec.workspace, os.geteuid())
                    hand(spec.workspace, slot.uid)
            if "mountns" not in controls:
                _freeze_access_times(spec.submission)
            group = self._group(spec, controls, held)
            launcher = self.launcher_for(spec, group)
            if self.closes:
                held.callback(launcher.close)
            order = self._order(spec, controls, None if slot is None else slot.uid, group, probing)
            refuse_exposed(spec.policy, (*order.binds, *root.system_paths(), *self.binds, order.submission))
            free = held.pop_all()
            try:
                child = launcher.spawn(order, spec.buffer_fd, spec.policy.limits.output_bytes, free.close)
            except BaseException:
                free.close()
                raise
            child.quarantine = None if slot is None else slot.quarantine
            child.starved = None if group is None else group.ran_out_of_memory
            return child

    @staticmethod
    def _group(spec: SpawnSpec, controls: tuple[str, ...], held: ExitStack) -> Group | None:
        wanted = [name for name in GROUP_CONTROLS if name in controls]
        if not wanted:
            return None
        try:
            group = make_group()
            held.callback(_remove, group)
            group.limit(spec.policy.limits.memory_mb, spec.policy.limits.threads)
        except OSError as error:
            raise DeniedError(
                f"setup:{wanted[0]}",
                f"the run's cgroup could not be made: {error}",
                expected="the cgroup that the probe could make",
                do="`blindcast isolation show` tells what this host offers now",
            ) from error
        return group

    def _order(self, spec: SpawnSpec, controls: tuple[str, ...], uid: int | None, group: Group | None, probing: Probing | None) -> Order:
        task = "probe" if probing is not None else "code" if spec.task == "code" else "shim"
        submission, limits = os.path.realpath(spec.submission), spec.policy.limits
        is_rooted, is_folder = "mountns" in controls, os.path.isdir(submission)
        inner = root.SUBMISSION if is_rooted else submission if is_folder else os.path.dirname(submission)
        paths = root.interpreter_paths()
        workspace, data = _folder(spec.workspace), _folder(spec.data)
        folders = tuple(folder for folder in (workspace, data) if folder)
        return Order(
            task=task,
            submission=submission,
            entry=f"{inner}/{ENTRY if is_folder else os.path.basename(submission)}",
            is_folder=is_folder,
            buffer_bytes=spec.buffer_bytes,
            controls=controls,
            given=self.given,
            uid=uid,
            cpu=linux.current_cpu() if spec.cpu is None else spec.cpu,
            kill=kill_method(controls, self.given, has_slot=uid is not None),
            server=os.getpid(),
            server_ino=linux.identity_of(os.getpid()),
            memory_mb=limits.memory_mb,
            threads=nproc() if uid is not None else nproc(own_tasks() + _TO_COME),
            open_files=limits.open_files,
            file_mb=limits.workspace_mb if task == "code" else 0,
            cpu_s=math.ceil(limits.train_wall_s if task == "code" else limits.run_wall_s) + 2,
            binds=(*root.system_paths(), *paths) if is_rooted else paths,
            closed=() if is_rooted or uid is None else root.closed_parents((*paths, submission, *folders)),
            raw=tuple(str(path) for path in spec.policy.raw_roots),
            cgroup="" if group is None else group.path,
            workspace=workspace,
            data=data,
            port=0 if probing is None else probing.port,
            act="" if probing is None else probing.act,
        )


def _remove(group: Group) -> None:
    """Take a run's group away; one that a stuck child lives in stays, its slot is in quarantine."""
    with suppress(OSError):
        group.remove()


def _folder(path: Path | None) -> str:
    return "" if path is None else os.path.realpath(path)


def _open_up(submission: Path) -> None:
    """Let a slot's uid read the host's private copy; what keeps others out is the folder it lies in (I-24)."""
    for path in (submission, *submission.rglob("*")) if submission.is_dir() else (submission,):
        mode = path.stat(follow_symlinks=False).st_mode
        wanted = mode | (0o555 if path.is_dir() else 0o444)
        if not path.is_symlink() and mode != wanted:
            path.chmod(wanted & 0o7777)


def _freeze_access_times(submission: Path) -> None:
    """Let a read leave no trace: without a read-only mount the kernel would note it, for the next window to see (I-35).

    It notes a read where the time is past or a day old (`relatime`), so they are set far ahead.
    """
    ahead = time.time_ns() + _AHEAD_NS
    for path in (submission, *submission.rglob("*")) if submission.is_dir() else (submission,):
        if path.stat(follow_symlinks=False).st_atime_ns < ahead - _AHEAD_NS // 2:
            with suppress(PermissionError):  # no copy of the host's own
                os.utime(path, ns=(ahead, path.stat(follow_symlinks=False).st_mtime_ns), follow_symlinks=False)
