"""The line to a child: frames there and back, every read and write against the parent's clock (isolation.md I-57, I-58, I-62)."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Sequence
from functools import cache
from typing import Final

from blindcast.contracts import Child
from blindcast.frames import NONCE_BYTES, Answer, Curve, encode
from blindcast.judge import Inbox, Tally, Violation, curve_of, expected
from blindcast.printable import printable
from blindcast.protocol import is_bounded

__all__ = ["Gone", "Late", "Line"]

READ_BYTES: Final = 8_192
PATIENCE_MS: Final = 100.0  # the answer alone is waited for so long, then the child's end too


class Late(Exception):
    """The deadline passed."""


class Gone(Exception):
    """The child has ended or closed its pipe."""


_STEP_SEQ: Final = 10  # where the seq of a step stands: behind length, array and tag
_ANSWER_SEQ: Final = 11  # and that of a curve
_SEQ: Final = {1: 0, 2: 128, 3: 256, 5: 65_536}  # the lowest number that takes so many bytes


@cache
def _form(remaining: int, number_bytes: int) -> tuple[bytes, bytes]:
    """What stands before seq and nonce in a good answer whose seq takes `number_bytes`, and after them."""
    size = 8 * remaining
    frame = encode(Curve(_SEQ[number_bytes], bytes(NONCE_BYTES), "ok", bytes(size)))[:-size]
    return frame[:_ANSWER_SEQ], frame[_ANSWER_SEQ + number_bytes + 2 + NONCE_BYTES :]


def _good(request: bytes, seq: int, remaining: int) -> bytes:
    """The bytes of a good answer to a `step` before its doubles: seq and nonce stand in it as in the request."""
    number_bytes = 1 if seq < 128 else 2 if seq < 256 else 3 if seq < 65_536 else 5
    front, back = _form(remaining, number_bytes)
    return front + request[_STEP_SEQ : _STEP_SEQ + number_bytes + 2 + NONCE_BYTES] + back


class Line:
    """Both pipes of one child. `trace` is the text of its newest traceback, made printable.

    Deadlines are monotonic seconds; all methods raise Late, Gone and Violation.
    """

    __slots__ = ("_answer", "_inbox", "_pidfd", "_poll", "_poll_answer", "_request", "trace")

    def __init__(self, child: Child, tally: Tally | None = None) -> None:
        self.trace = ""
        self._request, self._answer, self._pidfd = child.request, child.answer, child.pidfd
        self._inbox = Inbox(tally)
        poll = select.poll()
        for fd in (self._request, self._answer):
            os.set_blocking(fd, False)
        for fd in (self._answer, self._pidfd):
            if fd >= 0:
                poll.register(fd, select.POLLIN)
        self._poll = poll.poll
        answer = select.poll()
        answer.register(self._answer, select.POLLIN)
        self._poll_answer = answer.poll

    def exchange(self, request: bytes, deadline: float) -> Answer:
        """Send a request and wait for its answer."""
        self.send(request, deadline)
        return self.receive(deadline)

    def send(self, request: bytes, deadline: float) -> None:
        """Send a request, if the child has not answered in advance. Raises Violation `early`."""
        self._check_early()
        self._inbox.ask()
        self._write(request, deadline)

    def _check_early(self) -> None:
        """Nothing but whole log frames may be waiting when a request is about to be sent (I-57)."""
        inbox = self._inbox
        if not inbox.is_inside_frame and not self._poll_answer(0):
            return
        while (data := self._read()) is not None:
            inbox.feed(data)
            self._refuse_early()
        self._refuse_early()
        if inbox.is_inside_frame:
            raise Violation("early")

    def _refuse_early(self) -> None:
        try:
            frame = self._inbox.take()
        except Violation as violation:
            raise violation if violation.why == "flood" else Violation("early") from None
        if frame is not None:
            raise Violation("early")
        self._note_traces()

    def _write(self, request: bytes, deadline: float) -> None:
        left = memoryview(request)
        while left:
            try:
                left = left[os.write(self._request, left) :]
            except BlockingIOError:
                self._wait_writable(deadline)
            except OSError:
                raise Gone from None

    def _wait_writable(self, deadline: float) -> None:
        poll = select.poll()
        poll.register(self._request, select.POLLOUT)
        if self._pidfd >= 0:
            poll.register(self._pidfd, select.POLLIN)
        ready = poll.poll(_ms(deadline))
        if not ready:
            raise Late
        if any(fd == self._pidfd for fd, _ in ready):
            raise Gone

    def _read(self) -> bytes | None:
        """What is there; None if nothing is. Raises Gone at the end, Violation `truncated` where that is inside a frame."""
        try:
            data = os.read(self._answer, READ_BYTES)
        except BlockingIOError:
            return None
        except OSError:
            raise Gone from None
        if not data:
            if self._inbox.is_inside_frame:
                raise Violation("truncated")
            raise Gone
        return data

    def receive(self, deadline: float) -> Answer:
        """The next frame that is no log."""
        inbox = self._inbox
        while True:
            frame = inbox.take()
            self._note_traces()
            if frame is not None:
                return frame
            ready = self._poll(_ms(deadline))
            if not ready or time.monotonic() >= deadline:
                raise Late
            data = self._read()
            if data is not None:
                inbox.feed(data)
            elif ready[0][0] == self._pidfd:
                raise Gone

    def _note_traces(self) -> None:
        for log in self._inbox.logs:
            if log.level == "trace":
                self.trace = printable(log.text)

    def step(
        self, request: bytes, seq: int, nonce: bytes, remaining: int, started: float, deadline: float
    ) -> Sequence[float] | bytes | None:
        """Send a `step` and return its bounded curve; None keeps what stands. Raises Refused too.

        An answer that is byte for byte what a good one must be is read without decoding; all else goes the long way.
        """
        wait = self._poll_answer
        inbox = self._inbox
        if inbox.is_inside_frame or wait(0):
            self._check_early()
        if inbox.asked:
            inbox.ask()
        try:
            if os.write(self._request, request) != len(request):
                raise Gone
        except OSError:
            raise Gone from None
        if wait(min((deadline - started) * 1e3, PATIENCE_MS)):
            data = self._read()
            if data is not None:
                head = _good(request, seq, remaining)
                doubles = data[len(head) :]
                if len(doubles) == 8 * remaining and data.startswith(head) and is_bounded(doubles, remaining):
                    inbox.tally.count(len(data))
                    return doubles
                inbox.feed(data)
        return curve_of(expected(self.receive(deadline), Curve, seq, nonce), remaining)


def _ms(deadline: float) -> float:
    """Milliseconds until `deadline`, at most a day: what poll takes."""
    return min(86_400_000.0, max(0.0, (deadline - time.monotonic()) * 1e3))
