"""What the bytes of a child are worth: a pure state machine that trusts nothing (isolation.md I-54 to I-58)."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeVar

import numpy as np

from blindcast.frames import CODE_CURVE, CODE_FITTED, LOG_BYTES, MAX_BODY, STATE_BYTES, Answer, Curve, Fitted, Loaded, Log, State, answer_of
from blindcast.protocol import Code, Refused, bound

__all__ = ["ANSWERS_BYTES", "LOGS_PER_CHILD", "LOGS_PER_REQUEST", "Inbox", "Tally", "Verdict", "Violation", "curve_of", "expected", "judge"]

Why = Literal["oversize", "undecodable", "early", "unexpected", "seq", "nonce", "length", "flood", "truncated"]

LOGS_PER_REQUEST: Final = 64
LOGS_PER_CHILD: Final = 2_000
LOGS_PER_RUN: Final = 2_000
ANSWERS_BYTES: Final = 32 << 20  # of a run, `state` apart
_FRAME_BYTES: Final = 64  # of an answer or a log beside its data, with room
_START_BYTES: Final = 4_096  # what a child says before its first curve, with room
_HEAD: Final = 4  # bytes of a frame's length

Kind = TypeVar("Kind", bound=Answer)


class Violation(Exception):
    """A child broke the protocol: `why` of I-57."""

    def __init__(self, why: Why) -> None:
        super().__init__(why)
        self.why: Why = why


class Verdict(NamedTuple):
    """`why` of I-57 or None, `code` of I-54 as the parent leaves it, `curve` as it is sealed or None."""

    why: Why | None
    code: str | None
    curve: list[float] | None


class Tally:
    """What the children of one run have sent, together (I-56).

    `cap_bytes` bounds their answers, logs among them and states apart; `logs` and `trips` (logs of level `tripwire`) count
    frames. A number here is a child's word: it bounds and informs, and decides nothing.
    """

    __slots__ = ("cap_bytes", "logs", "sent_bytes", "trips")

    def __init__(self, cap_bytes: int = ANSWERS_BYTES) -> None:
        self.cap_bytes = cap_bytes
        self.sent_bytes = self.logs = self.trips = 0

    @classmethod
    def of(cls, steps: int, targets: int) -> Tally:
        """The tally of a run: 32 MiB, or what its honest answers need where that is more (I-56 knows no grid).

        A curve has 8 bytes a horizon, and every log of a run may be as long as a log can be: at G = 400 and 96 targets
        the curves alone are 61 MiB.

        >>> Tally.of(15, 96).cap_bytes >> 20, Tally.of(400, 96).cap_bytes >> 20
        (32, 69)
        """
        curves = targets * (8 * steps * (steps + 1) // 2 + steps * _FRAME_BYTES)
        return cls(max(ANSWERS_BYTES, curves + targets * _START_BYTES + LOGS_PER_RUN * (LOG_BYTES + _FRAME_BYTES)))

    def count(self, size: int) -> None:
        """Take note of an answer's bytes. Raises Violation `flood`."""
        self.sent_bytes += size
        if self.sent_bytes > self.cap_bytes:
            raise Violation("flood")


class Inbox:
    """Frames out of a stream of bytes, log frames counted and taken aside.

    `logs` are those that came since `ask()`, `asked` how many did. Holds at most one frame that is not yet whole, so memory stays bounded.
    `tally` is that of the run: beyond its 2,000 logs they are dropped, as the shim drops those of its own child. A later
    child cannot know how much the ones before it have said (in `fresh` it must not), so that alone is no violation.
    """

    __slots__ = ("_pending", "_total", "asked", "logs", "tally")

    def __init__(self, tally: Tally | None = None) -> None:
        self._pending = bytearray()
        self._total = 0
        self.tally = tally or Tally()
        self.logs: list[Log] = []
        self.asked = 0  # log frames since then

    def ask(self) -> None:
        """Begin a new request: its logs are counted anew."""
        self.logs.clear()
        self.asked = 0

    def feed(self, data: bytes) -> None:
        """Take bytes as they came."""
        self._pending += data

    def take(self) -> Answer | None:
        """The next frame that is no log, or None until more bytes come. Raises Violation."""
        while True:
            frame = self._next()
            if not isinstance(frame, Log):
                return frame
            if len(frame.text.encode()) > LOG_BYTES:
                raise Violation("oversize")
            self._keep(frame)

    def _keep(self, log: Log) -> None:
        tally = self.tally
        self.asked += 1
        self._total += 1
        if self.asked > LOGS_PER_REQUEST or self._total > LOGS_PER_CHILD:
            raise Violation("flood")
        tally.logs += 1
        tally.trips += log.level == "tripwire"
        if tally.logs <= LOGS_PER_RUN:
            self.logs.append(log)

    def _next(self) -> Answer | None:
        pending = self._pending
        if len(pending) < _HEAD:
            return None
        length = int.from_bytes(pending[:_HEAD], "little")
        if length > MAX_BODY:
            raise Violation("oversize")
        if len(pending) < _HEAD + length:
            return None
        body = bytes(pending[_HEAD : _HEAD + length])
        del pending[: _HEAD + length]
        try:
            answer = answer_of(body)
        except (ValueError, RecursionError):
            raise Violation("undecodable") from None
        if not isinstance(answer, State):
            self.tally.count(_HEAD + length)
        return answer

    @property
    def is_inside_frame(self) -> bool:
        """Whether bytes are left that were not yet taken; after a `take` that gave None they are a part of a frame."""
        return bool(self._pending)


def expected(frame: Answer, kind: type[Kind], seq: int, nonce: bytes) -> Kind:
    """The frame, if it is the answer to the outstanding request. Raises Violation."""
    if isinstance(frame, State) and len(frame.data) > STATE_BYTES:
        raise Violation("oversize")
    if not isinstance(frame, kind):
        raise Violation("unexpected")
    if getattr(frame, "seq", seq) != seq:
        raise Violation("seq")
    if getattr(frame, "nonce", nonce) != nonce:
        raise Violation("nonce")
    if isinstance(frame, Fitted) and frame.code not in CODE_FITTED:
        raise Violation("length")
    if isinstance(frame, Loaded) and len(frame.methods) > LOGS_PER_REQUEST:
        raise Violation("oversize")
    return frame


def curve_of(frame: Curve, remaining: int) -> list[float] | None:
    """The curve's bounded values, one per remaining horizon; None keeps. Raises Violation `length`, Refused (I-54)."""
    if frame.code not in CODE_CURVE or len(frame.data) != (8 * remaining if frame.code == "ok" else 0):
        raise Violation("length")
    if frame.code == "keep":
        return None
    if frame.code != "ok":
        code: Code = frame.code  # type: ignore[assignment]  # one of CODE_CURVE but ok and keep
        raise Refused(code)
    values = bound(np.frombuffer(frame.data, dtype="<f8").tolist())
    return values.tolist() if isinstance(values, np.ndarray) else list(values)


def judge(data: bytes, *, steps: int, anchor: int, seq: int, nonce: bytes) -> Verdict:
    """Judge all bytes that a child sent after the `step` of `anchor`, until the next request or its end (I-57).

    What was sealed before a violation stands: an answer written twice gives its curve and `early`. Without a whole answer
    the code is `died`.
    """
    inbox = Inbox()
    inbox.feed(data)
    try:
        frame = inbox.take()
        if frame is None:
            return Verdict("truncated" if inbox.is_inside_frame else None, "died", None)
        code, curve = _sealed(expected(frame, Curve, seq, nonce), steps - anchor)
    except Violation as violation:
        return Verdict(violation.why, None, None)
    try:
        is_early = inbox.take() is not None or inbox.is_inside_frame
    except Violation as violation:
        return Verdict("flood" if violation.why == "flood" else "early", code, curve)
    return Verdict("early" if is_early else None, code, curve)


def _sealed(frame: Curve, remaining: int) -> tuple[str, list[float] | None]:
    try:
        curve = curve_of(frame, remaining)
    except Refused as refused:
        return refused.code, None
    return ("keep" if curve is None else "ok"), curve
