"""A seat in a locked-down child: the parent's side of the frames, with its clock (isolation.md sections 6 to 9)."""

from __future__ import annotations

import os
import select
import struct
import sys
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final, Literal, TypeVar

from attrs import frozen

from blindcast.buffer import RevealBuffer
from blindcast.contracts import Child, Isolation
from blindcast.frames import (
    NONCE_BYTES,
    PROTOCOL,
    Ack,
    Answer,
    Bye,
    Curve,
    Failed,
    Fit,
    Fitted,
    Hello,
    Load,
    Loaded,
    Ready,
    Request,
    SetupFailed,
    Step,
    Warm,
    encode,
)
from blindcast.judge import Inbox, Violation, curve_of, expected
from blindcast.printable import printable
from blindcast.protocol import bound
from blindcast.records import F64, Policy, SpawnSpec
from blindcast.reveal import Reveal
from blindcast.view import Context
from blindcast.walk import RunBroken, SeatLost

__all__ = ["ChildSeat", "RunClock"]

LEAVE_S: Final = 0.2  # what a child has for `bye` (I-38)
READ_BYTES: Final = 65_536
_NONCES: Final = 256  # drawn at once

Kind = TypeVar("Kind", bound=Answer)


class RunClock:
    """The parent's clock of one run: `run_wall_s` from the first `load`; queueing and starting are not counted (I-62)."""

    __slots__ = ("_run_wall_s", "deadline")

    def __init__(self, run_wall_s: float) -> None:
        self._run_wall_s = run_wall_s
        self.deadline = float("inf")  # monotonic seconds

    def start(self) -> None:
        """Begin to count; a second call changes nothing."""
        if self.deadline == float("inf"):
            self.deadline = time.monotonic() + self._run_wall_s


def _nonces() -> Iterator[bytes]:
    """16 bytes of the system's randomness for every request, never one twice (I-52)."""
    while True:
        drawn = os.urandom(NONCE_BYTES * _NONCES)
        for start in range(0, len(drawn), NONCE_BYTES):
            yield drawn[start : start + NONCE_BYTES]


@cache
def _doubles(count: int) -> Callable[[bytes, int], tuple[float, ...]]:
    return struct.Struct(f"<{count}d").unpack_from


@frozen
class _Ask:
    """What the parent may wait for: until `deadline` (monotonic), and what its passing is called."""

    deadline: float
    reason: str


class ChildSeat:
    """A predictor in a child of `isolation`, locked down, loaded, warmed and fitted by the constructor.

    `warmups` yields the warm-ups, each shown whole, one at a time (I-46). Raises RunBroken.
    """

    __slots__ = ("_buffer", "_child", "_clock", "_cpus", "_inbox", "_is_busy", "_nonces", "_ordinal", "_poll", "_reveal", "_seq",
                 "_step_s", "_steps", "_templates", "trace")  # fmt: skip

    def __init__(
        self,
        isolation: Isolation,
        submission: Path,
        policy: Policy,
        context: Context,
        state: Literal["carry", "fresh"],
        buffer: RevealBuffer,
        warmups: Callable[[], Iterable[Reveal]],
        clock: RunClock,
    ) -> None:
        self.trace = ""
        self._buffer = buffer
        self._clock = clock
        self._steps = context.grid.steps
        self._step_s = policy.limits.step_wall_s
        self._inbox = Inbox()
        self._nonces = _nonces()
        self._seq = self._ordinal = 0
        self._reveal: Reveal | None = None
        self._cpus: set[int] | None = None
        self._is_busy = False
        fd = buffer.reopened()
        try:
            self._child: Child | None = isolation.spawn(SpawnSpec(submission, fd, buffer.size, policy))
        finally:
            os.close(fd)
        self._poll = self._polled(self._child)
        try:
            self._await_ready(_Ask(time.monotonic() + policy.limits.spawn_wall_s, "spawn_deadline"))
            self._prepare(context, state, warmups)
        except BaseException:
            self._drop("cancelled")
            raise

    @staticmethod
    def _polled(child: Child) -> select.poll:
        os.set_blocking(child.request, False)
        os.set_blocking(child.answer, False)
        poll = select.poll()
        poll.register(child.answer, select.POLLIN)
        if child.pidfd >= 0:
            poll.register(child.pidfd, select.POLLIN)
        return poll

    def _await_ready(self, ask: _Ask) -> None:
        try:
            frame = self._receive(ask)
        except SeatLost as lost:
            raise RunBroken(lost.reason, self.trace) from None
        if isinstance(frame, SetupFailed):
            self._drop(f"setup:{frame.control}")
            raise RunBroken(f"setup:{frame.control}", f"{frame.control}: {frame.text}")
        if not isinstance(frame, Ready) or frame.protocol != PROTOCOL:
            raise self._violated("unexpected")

    def _prepare(self, context: Context, state: str, warmups: Callable[[], Iterable[Reveal]]) -> None:
        """Hello, load, warm-ups one at a time, fit."""
        grid, buffer = context.grid, self._buffer
        hello = Hello(PROTOCOL, grid.steps, grid.window_s, context.alpha, context.seed, state, buffer.sections, buffer.size)
        assert self._child is not None
        self._clock.start()
        self._send(encode(hello), self._whole_run)
        loaded = self._request(lambda seq, nonce: Load(seq, nonce, self._entry), (Loaded, Failed), "load_failed")
        if isinstance(loaded, Failed):
            self._end("load_failed", printable(loaded.text) or self.trace)
        elif "predict" not in loaded.methods:
            self._end("load_failed", "class Predictor has no method `predict`")
        if "fit" not in loaded.methods:
            return
        shown = list(warmups())
        for index, warmup in enumerate(shown):
            buffer.show(warmup, warmup.rows[-1])
            rows = warmup.rows[-1]
            self._request(lambda seq, nonce, i=index, r=rows: Warm(seq, nonce, i, len(shown), r), (Ack,), "fit_failed")  # type: ignore[misc]  # bound early
            buffer.clear()
        fitted = self._request(lambda seq, nonce: Fit(seq, nonce, False), (Fitted,), "fit_failed")
        if fitted.code != "ok":
            self._end("fit_failed", self.trace)

    @property
    def _entry(self) -> str:
        assert self._child is not None
        return self._child.entry

    @property
    def _whole_run(self) -> _Ask:
        return _Ask(self._clock.deadline, "run_deadline")

    def _request(self, make: Callable[[int, bytes], Request], kinds: tuple[type[Kind], ...], failing: str) -> Kind:
        """One request and its answer, within the run's wall. A death here is the run's end, `failing`."""
        seq, nonce = self._next()
        try:
            self._send(encode(make(seq, nonce)), self._whole_run)
            frame = self._receive(self._whole_run)
            kind = next((kind for kind in kinds if isinstance(frame, kind)), kinds[0])
            return expected(frame, kind, seq, nonce)
        except Violation as violation:
            raise self._violated(violation.why) from None
        except RunBroken:
            raise
        except SeatLost as lost:
            raise RunBroken(failing, f"the child ended: {lost.reason}") from None

    def _next(self) -> tuple[int, bytes]:
        self._seq += 1
        return self._seq, next(self._nonces)

    def open(self, ordinal: int, reveal: Reveal) -> None:
        """Begin a window: the walker joins the child on its core, since they alternate (PF-25)."""
        self._ordinal = ordinal
        self._reveal = reveal
        self._join_core()

    def _join_core(self) -> None:
        cpu = getattr(self._child, "cpu", None)
        if cpu is None:
            return
        self._cpus = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {cpu})

    def _leave_core(self) -> None:
        if self._cpus is not None:
            os.sched_setaffinity(0, self._cpus)
            self._cpus = None

    def ask(self, anchor: int) -> Sequence[float] | F64 | None:
        """Reveal the prefix of `anchor`, ask, and return the bounded answer. Raises Refused, SeatLost, RunBroken."""
        child, reveal = self._child, self._reveal
        assert child is not None and reveal is not None, "open a window first"
        if self._poll.poll(0):
            self._check_early()
        rows = reveal.rows[anchor]
        self._buffer.show(reveal, rows)
        self._seq = seq = self._seq + 1
        nonce = next(self._nonces)
        request = encode(Step(seq, nonce, self._ordinal, anchor, rows))
        started = time.monotonic()
        try:
            is_sent = os.write(child.request, request) == len(request)
        except OSError:
            is_sent = False
        remaining = self._steps - anchor
        deadline = started + self._step_s
        wait = _Ask(deadline, "step_deadline") if deadline < self._clock.deadline else self._whole_run
        if is_sent and self._poll.poll(max(0.0, wait.deadline - started) * 1e3):
            values = self._plain(seq, nonce, remaining)
            if values is not None:
                return values
        return self._slow(wait, seq, nonce, remaining)

    def _plain(self, seq: int, nonce: bytes, remaining: int) -> Sequence[float] | F64 | None:
        """The bounded curve where the answer is exactly the bytes of a good one; else None, and the inbox has them."""
        assert self._child is not None
        try:
            data = os.read(self._child.answer, READ_BYTES)
        except OSError:
            return None
        size = 8 * remaining
        head = encode(Curve(seq, nonce, "ok", bytes(size)))[:-size]
        if len(data) == len(head) + size and data.startswith(head):
            return bound(_doubles(remaining)(data, len(head)))
        self._inbox.ask()
        self._inbox.feed(data)
        return None
