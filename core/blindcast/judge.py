"""What the bytes of a child are worth: a pure state machine that trusts nothing (isolation.md I-54 to I-58)."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeVar

import numpy as np

from blindcast.frames import CODE_CURVE, CODE_FITTED, LOG_BYTES, MAX_BODY, STATE_BYTES, Answer, Curve, Fitted, Loaded, Log, State, answer_of
from blindcast.protocol import Code, Refused, bound

__all__ = ["LOGS_PER_CHILD", "LOGS_PER_REQUEST", "Inbox", "Verdict", "Violation", "curve_of", "expected", "judge"]

Why = Literal["oversize", "undecodable", "early", "unexpected", "seq", "nonce", "length", "flood", "truncated"]

LOGS_PER_REQUEST: Final = 64
LOGS_PER_CHILD: Final = 2_000
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


class Inbox:
    """Frames out of a stream of bytes, log frames counted and taken aside.

    `logs` are those that came since `ask()`. Holds at most one frame that is not yet whole, so memory stays bounded.
    """

    __slots__ = ("_pending", "_total", "logs")

    def __init__(self) -> None:
        self._pending = bytearray()
        self._total = 0
        self.logs: list[Log] = []

    def ask(self) -> None:
        """Begin a new request: its logs are counted anew."""
        self.logs.clear()

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
            self.logs.append(frame)
            self._total += 1
            if len(self.logs) > LOGS_PER_REQUEST or self._total > LOGS_PER_CHILD:
                raise Violation("flood")

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
            return answer_of(body)
        except (ValueError, RecursionError):
            raise Violation("undecodable") from None

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
