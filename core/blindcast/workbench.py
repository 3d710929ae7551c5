"""`run_code`: a session's own code in its workspace, behind the same walls as a predictor and without a score (isolation.md section 11)."""

from __future__ import annotations

import os
import select
import tempfile
import time
from pathlib import Path
from typing import Final

from attrs import evolve, frozen

from blindcast.contracts import Child, Isolation
from blindcast.errors import DataError, DeniedError, FaultError
from blindcast.frames import Ready, SetupFailed
from blindcast.judge import Inbox, Violation
from blindcast.output import Output
from blindcast.printable import printable
from blindcast.records import Policy, SpawnSpec
from blindcast.workspace import MAX_DEPTH, Holding, Room, holding, is_over

__all__ = ["MAX_CODE_BYTES", "CodeRun", "run_code"]

MAX_CODE_BYTES: Final = 1 << 20
SCRIPT: Final = "main.py"
_COUNT_S: Final = 0.25  # between two counts of the workspace


@frozen
class CodeRun:
    """How a script ended and what it left: `reason` is of I-73, or `workspace` past its size; `changed` (path, bytes), at most 200."""

    reason: str
    wall_s: float
    cpu_s: float | None
    stdout: str
    stderr: str
    changed: tuple[tuple[str, int], ...]
    holding: Holding


def run_code(
    isolation: Isolation,
    code: str,
    workspace: Path,
    policy: Policy,
    *,
    data: Path | None = None,
    timeout_s: float | None = None,
    cpu: int | None = None,
) -> CodeRun:
    """Run `code` as `__main__` with `workspace` as its folder and `data` to read, for at most `timeout_s` (`train_wall_s`).

    Time counts from the code's start. `workspace` and `data` are folders of the host, side by side, so that `../data` holds
    under every backend. Raises DataError `submission_refused` or `bad_input`, DeniedError `setup:<control>`, FaultError.
    """
    limits = policy.limits
    encoded = _encoded(code)
    allowed_s = _allowed_s(timeout_s, limits.train_wall_s)
    before = holding(workspace)
    if is_over(before, limits.workspace_mb):
        beside = "" if before.is_whole else ", and more that cannot be counted"
        raise DataError(
            "workspace_full",
            f"the workspace holds {before.disk_bytes >> 20} MiB and {before.names} names{beside}",
            expected=f"at most {limits.workspace_mb} MiB and 10,000 names, in readable folders of at most {MAX_DEPTH} levels",
            do="start a session anew, or raise [isolation] workspace_mb",
        )
    with tempfile.TemporaryDirectory(prefix="blindcast-code-") as folder:
        script = Path(folder, SCRIPT)
        script.write_bytes(encoded)
        os.chmod(folder, 0o711)
        errors, errors_in = os.pipe2(os.O_CLOEXEC)
        spec = SpawnSpec(script, errors_in, 0, policy, cpu, "code", workspace, data)
        try:
            child = isolation.spawn(spec)
        except BaseException:
            os.close(errors)
            raise
        finally:
            os.close(errors_in)
        stderr = Output(errors, limits.output_bytes, lambda: None)
        try:
            started = _await_start(child, limits.spawn_wall_s)
            reason = _watch(child, started + allowed_s, workspace, limits.workspace_mb, Room.of(workspace, before), stderr)
        except BaseException:
            child.kill("cancelled")
            raise
        child.kill(reason)
        wall_s = time.monotonic() - started
        stderr.join(1.0)
    usage, after = child.usage(), holding(workspace)
    ended = "ok" if usage.reason == "exit:0" else usage.reason
    return CodeRun(ended, wall_s, usage.cpu_s, usage.output, stderr.text(), after.changed(before), evolve(after, files={}))


def _encoded(code: str) -> bytes:
    try:
        encoded = code.encode()
    except UnicodeEncodeError as error:
        raise DataError("submission_refused", "the code is not text", expected="UTF-8", do="send it as text") from error
    if len(encoded) > MAX_CODE_BYTES:
        raise DataError(
            "submission_refused", f"the code has {len(encoded)} bytes", expected="at most 1 MiB", do="keep data in files of the workspace"
        )
    return encoded


def _allowed_s(timeout_s: float | None, most_s: float) -> float:
    if timeout_s is not None and not 1 <= timeout_s <= most_s:
        raise DataError(
            "bad_input", f"timeout_s is {timeout_s}", expected=f"1 to {most_s:g} seconds", do="leave it out, or raise [budget] train_wall_s"
        )
    return most_s if timeout_s is None else timeout_s


def _await_start(child: Child, spawn_wall_s: float) -> float:
    """The moment at which the locked child closed its answers, behind `ready`."""
    inbox, is_ready, deadline = Inbox(), False, time.monotonic() + spawn_wall_s
    poll = select.poll()
    poll.register(child.answer, select.POLLIN)
    while poll.poll(max(0.0, deadline - time.monotonic()) * 1e3):
        data = os.read(child.answer, 1 << 16)
        if not data:
            if is_ready:
                return time.monotonic()
            break
        try:
            inbox.feed(data)
            while (frame := inbox.take()) is not None:
                if isinstance(frame, SetupFailed):
                    child.kill(f"setup:{frame.control}")
                    raise _denied(frame)
                is_ready = isinstance(frame, Ready)
        except Violation:
            break
    child.kill("spawn_deadline")
    raise FaultError(
        "spawn_deadline",
        f"the child of run_code did not start: {child.usage().reason}",
        expected=f"`ready` within {spawn_wall_s:g} s",
        do="try again; `blindcast isolation show` says what works here",
    )


def _denied(frame: SetupFailed) -> DeniedError:
    return DeniedError(
        f"setup:{printable(frame.control)}",
        f"a control could not be put in force: {printable(frame.text)}",
        expected="the controls that the probe found",
        do="`blindcast isolation show` says what this host offers now",
    )


def _watch(child: Child, deadline: float, workspace: Path, limit_mb: int, room: Room, stderr: Output) -> str:
    """Wait for the end; the reason to kill for, empty where it ended by itself."""
    poll = select.poll()
    poll.register(child.pidfd, select.POLLIN)
    while True:
        left_s = deadline - time.monotonic()
        if poll.poll(max(0.0, min(left_s, _COUNT_S)) * 1e3):
            return ""
        if left_s <= 0:
            return "train_deadline"
        if stderr.is_over:
            return "output"
        found = holding(workspace)
        if is_over(found, limit_mb) or room.is_spent(workspace, found, limit_mb):
            return "workspace"
