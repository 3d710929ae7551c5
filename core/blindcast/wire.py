"""A seat in a locked-down child: what the parent asks of it, in which order, and how it ends (isolation.md sections 6 to 9)."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal, NoReturn, TypeVar

from blindcast.affinity import SharedCore
from blindcast.buffer import RevealBuffer
from blindcast.clock import RunClock
from blindcast.contracts import Child, Isolation
from blindcast.errors import FaultError
from blindcast.frames import (
    PROTOCOL,
    Ack,
    Answer,
    Bye,
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
    nonces,
)
from blindcast.judge import Tally, Violation, expected
from blindcast.line import Gone, Late, Line
from blindcast.printable import printable
from blindcast.records import F64, Policy, SpawnSpec
from blindcast.reveal import Reveal
from blindcast.view import Context
from blindcast.walk import RunBroken, SeatLost

__all__ = ["ChildSeat", "RunClock"]

ALONE: Final = 1_000  # targets that a seat outside of a run may walk: what it may send is sized by them
LEAVE_S: Final = 0.2  # what a child has for `bye` (I-38)

Kind = TypeVar("Kind", bound=Answer)


class ChildSeat:
    """A predictor in a child of `isolation`, locked down, loaded, warmed and fitted by the constructor.

    `warmups` yields the warm-ups, each shown whole in `buffer`, one at a time (I-46). `cpu` is that of the
    run's slot; `tally` counts what all children of the run send. Raises RunBroken, DeniedError.
    """

    __slots__ = tuple("_buffer _child _clock _core _line _nonces _ordinal _reveal _seq _step_s _steps fit_s output uid".split())

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
        *,
        cpu: int | None = None,
        tally: Tally | None = None,
    ) -> None:
        self._buffer, self._clock = buffer, clock
        self._steps = context.grid.steps
        self._step_s = policy.limits.step_wall_s
        self._nonces = nonces()
        self._seq = self._ordinal = 0
        self._reveal: Reveal | None = None
        self.fit_s: float | None = None  # warm-ups and fit together; None where there is no `fit`
        self.output = ""  # what the child printed, printable, once it has ended
        fd = buffer.reopened()
        try:
            self._child: Child | None = isolation.spawn(SpawnSpec(submission, fd, buffer.size, policy, cpu))
        except FaultError as fault:
            raise RunBroken(fault.code, fault.what) if fault.code == "zygote_lost" else fault from None
        finally:
            os.close(fd)
        self._core = SharedCore(getattr(self._child, "cpu", None))
        self.uid: int | None = getattr(self._child, "uid", None)  # the child runs as this user; None where its backend does not say
        self._line = Line(self._child, tally or Tally.of(self._steps, ALONE))
        try:
            self._await_ready(time.monotonic() + policy.limits.spawn_wall_s)
            self._prepare(self._child.entry, context, state, warmups)
        except BaseException:
            self._end("cancelled")
            self._buffer.clear()
            raise

    @property
    def trace(self) -> str:
        """The text of the child's newest traceback: hostile, made printable."""
        return self._line.trace

    def _await_ready(self, deadline: float) -> None:
        try:
            frame = self._line.receive(deadline)
        except Violation as violation:
            self._break(f"protocol.{violation.why}")
        except Late:
            self._break("spawn_deadline")
        except Gone:
            raise RunBroken(self._end("")) from None
        if isinstance(frame, SetupFailed):
            lost = self._end("") == "zygote_lost"  # a child sees that its parent is gone before we do
            raise RunBroken("zygote_lost" if lost else f"setup:{frame.control}", printable(f"{frame.control}: {frame.text}"))
        if not isinstance(frame, Ready) or frame.protocol != PROTOCOL:
            self._break("protocol.unexpected")

    def _prepare(self, entry: str, context: Context, state: str, warmups: Callable[[], Iterable[Reveal]]) -> None:
        """Hello, load, then, where there is a `fit`, the warm-ups one at a time and the fit."""
        grid, buffer = context.grid, self._buffer
        self._clock.start()
        hello = Hello(PROTOCOL, grid.steps, grid.window_s, context.alpha, context.seed, state, buffer.sections, buffer.size)
        with self._judged("load_failed"):
            self._line.send(encode(hello), self._clock.deadline)
        loaded = self._request(lambda seq, nonce: Load(seq, nonce, entry), (Loaded, Failed), "load_failed")
        if isinstance(loaded, Failed):
            self._break("load_failed", printable(f"{self.trace}\n{loaded.kind}: {loaded.text}" if loaded.text else self.trace))
        assert isinstance(loaded, Loaded), "`expected` let one of the two pass"
        if "predict" not in loaded.methods:
            self._break("load_failed", "the submission's class Predictor has no method `predict`")
        if "fit" not in loaded.methods:
            return
        started, shown = time.monotonic(), list(warmups())
        for index, warmup in enumerate(shown):
            self._warm(index, len(shown), warmup)
        fitted = self._request(lambda seq, nonce: Fit(seq, nonce, False), (Fitted,), "fit_failed")
        if fitted.code != "ok":
            self._break("fit_failed", self.trace)
        self.fit_s = time.monotonic() - started

    def _warm(self, index: int, of: int, warmup: Reveal) -> None:
        rows = warmup.rows[-1]
        self._buffer.show(warmup, rows)
        self._request(lambda seq, nonce: Warm(seq, nonce, index, of, rows), (Ack,), "fit_failed")
        self._buffer.clear()

    def _request(self, make: Callable[[int, bytes], Request], kinds: tuple[type[Kind], ...], failing: str) -> Kind:
        """One request and its answer within the run's wall. A death here ends the run as `failing`."""
        self._seq += 1
        seq, nonce = self._seq, next(self._nonces)
        with self._judged(failing):
            frame = self._line.exchange(encode(make(seq, nonce)), self._clock.deadline)
            return expected(frame, next((kind for kind in kinds if isinstance(frame, kind)), kinds[0]), seq, nonce)
        raise AssertionError("unreachable: `_judged` lets nothing pass")

    @contextmanager
    def _judged(self, failing: str) -> Iterator[None]:
        """Turn what goes wrong before the first anchor into the run's end."""
        try:
            yield
        except Violation as violation:
            self._break(f"protocol.{violation.why}")
        except Late:
            self._break("run_deadline")
        except Gone:
            reason = self._end("")
            raise RunBroken(reason if reason == "zygote_lost" else failing, f"the child ended: {reason}") from None

    def open(self, ordinal: int, reveal: Reveal) -> None:
        """Begin a window. The walker joins the child on its core."""
        self._ordinal, self._reveal = ordinal, reveal
        self._core.join()

    def ask(self, anchor: int) -> Sequence[float] | F64 | bytes | None:
        """Reveal the prefix of `anchor`, ask, and return the bounded answer. Raises Refused, SeatLost, RunBroken."""
        reveal = self._reveal
        assert reveal is not None, "open a window first"
        rows = reveal.rows[anchor]
        self._buffer.show(reveal, rows)
        self._seq = seq = self._seq + 1
        nonce = next(self._nonces)
        request = encode(Step(seq, nonce, self._ordinal, anchor, rows))
        started = time.monotonic()
        deadline = started + self._step_s
        is_last = deadline > self._clock.deadline
        try:
            return self._line.step(request, seq, nonce, self._steps - anchor, started, self._clock.deadline if is_last else deadline)
        except Violation as violation:
            self._break(f"protocol.{violation.why}")
        except Late:
            if is_last:
                self._break("run_deadline")
            raise SeatLost("deadline", self._end("step_deadline")) from None
        except Gone:
            reason = self._end("")
            if reason == "zygote_lost":
                raise RunBroken(reason) from None
            raise SeatLost("died", reason) from None

    def shut(self) -> None:
        """End the window: the buffer is zero before anything of the next is shown (I-44)."""
        self._buffer.clear()
        self._reveal = None
        self._core.leave()

    def leave(self) -> None:
        """End the seat and all it started. Safe to repeat.

        Raises RunBroken `protocol.early` if the child had sent more than it was asked for, unless another error is on its way.
        """
        if self._child is None:
            return
        why = ""
        self._seq += 1
        try:
            self._line.send(encode(Bye(self._seq, next(self._nonces))), time.monotonic())
            self._await_end(self._child)
        except Violation as violation:
            why = violation.why
        except (Gone, Late):
            pass
        self._end(f"protocol.{why}" if why else "ok")
        if why and sys.exc_info()[0] is None:
            raise RunBroken(f"protocol.{why}")

    @staticmethod
    def _await_end(child: Child) -> None:
        """Give the child its moment to leave by itself; what it sends then counts for nothing (I-38)."""
        if child.pidfd >= 0:
            poll = select.poll()
            poll.register(child.pidfd, select.POLLIN)
            poll.poll(LEAVE_S * 1e3)

    def _end(self, reason: str) -> str:
        """Kill the child with all it started; the reason it ended, `reason` unless it has one of its own."""
        child, self._child = self._child, None
        self.shut()
        if child is None:
            return reason
        child.kill(reason)
        usage = child.usage()
        self.output = usage.output
        return usage.reason

    def _break(self, reason: str, trace: str = "") -> NoReturn:
        self._end(reason)
        raise RunBroken(reason, trace or self.trace) from None
