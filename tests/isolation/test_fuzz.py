"""Whatever a child sends: a sealed curve, a refusal or a typed end, and the parent stays as small as it was (I-57, I-58)."""

from __future__ import annotations

import math
import os
import random
import select
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, get_args

import numpy as np
import psutil
import pytest
from attrs import define, field
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from blindcast import judge as judging
from blindcast.buffer import RevealBuffer
from blindcast.frames import (
    CODE_CURVE,
    MAX_BODY,
    Ack,
    Answer,
    Curve,
    Failed,
    Fitted,
    Load,
    Loaded,
    Log,
    Ready,
    SetupFailed,
    State,
    Step,
    encode,
    request_of,
)
from blindcast.judge import Inbox, Verdict, Violation, judge
from blindcast.protocol import Refused
from blindcast.records import Blinded, Grid, IsolationReport, Limits, Policy, SpawnSpec, Usage
from blindcast.reveal import Reveal, ready
from blindcast.view import Context
from blindcast.walk import RunBroken, SeatLost
from blindcast.wire import ChildSeat, RunClock

WHYS: Final = frozenset(get_args(judging.Why))
FRAMES: Final = int(os.environ.get("BLINDCAST_FUZZ_FRAMES", "100000"))
GROWTH_BYTES: Final = 16 << 20
GRID, COLUMNS, ROWS = Grid(60, 6), ("bid",), 12
NONCE = bytes(range(16))

Part = Callable[[Step], bytes]


def curve(step: Step, *, code: str = "ok", value: float = 0.5, seq: int = 0, nonce: bytes = b"", more: int = 0) -> bytes:
    """An answer to `step`, right but for what is asked otherwise."""
    values = [value] * (GRID.steps - step.anchor + more) if code == "ok" else []
    return encode(Curve(step.seq + seq, nonce or step.nonce, code, struct.pack(f"<{len(values)}d", *values)))


def framed(body: bytes) -> bytes:
    return struct.pack("<I", len(body)) + body


def changed(step: Step, changes: list[tuple[int, int]], cut: int) -> bytes:
    """A good answer with bytes replaced, and cut short."""
    data = bytearray(curve(step))
    for place, value in changes:
        data[place % len(data)] = value
    return bytes(data[: len(data) - cut])


def constant(data: bytes) -> Part:
    return lambda step: data


def other(make: Callable[[Step], Answer]) -> Part:
    return lambda step: encode(make(step))


VALUES = st.floats() | st.sampled_from([0.5, -1.0, 1.0 + 1e-10, -0.0, 5e-324, math.nan, 2.0])
OTHERS: Final[list[Part]] = [
    other(lambda step: Ack(step.seq, step.nonce)),
    other(lambda step: Ready(1, "3", "static", ())),
    other(lambda step: SetupFailed("seccomp", 1, "no")),
    other(lambda step: Loaded(step.seq, step.nonce, ("predict",))),
    other(lambda step: Failed(step.seq, step.nonce, "E", "")),
    other(lambda step: Fitted(step.seq, step.nonce, "ok", 0)),
    other(lambda step: State(step.seq, 0, b"x")),
    lambda step: encode(step),
    lambda step: curve(step, seq=1),
    lambda step: curve(step, nonce=NONCE),
    lambda step: curve(step, more=1),
    lambda step: curve(step, code="fine"),
    lambda step: struct.pack("<I", MAX_BODY + 1),
    lambda step: framed(b"\x91" * 1_000),
]
GOOD = st.one_of(
    VALUES.map(lambda value: lambda step: curve(step, value=value)),
    st.sampled_from(sorted(CODE_CURVE - {"ok"})).map(lambda code: lambda step: curve(step, code=code)),
)
LOGS = st.builds(
    lambda level, text, count: constant(encode(Log(level, text)) * count),
    st.sampled_from(["trace", "info", "tripwire", "\x1b[2J"]),
    st.text(max_size=8),
    st.sampled_from([1, 2, 30, 64, 65]),
)
BAD = st.one_of(
    st.sampled_from(OTHERS),
    st.binary(max_size=40).map(constant),
    st.binary(max_size=40).map(lambda body: constant(framed(body))),
    st.builds(
        lambda changes, cut: lambda step: changed(step, changes, cut),
        st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), max_size=3),
        st.sampled_from([0, 0, 0, 1, 9, 40]),
    ),
)
SAID = st.lists(st.one_of(GOOD, GOOD, LOGS, BAD), max_size=3)


@define(eq=False, slots=False)
class Talker:
    """A backend and its child at once: a thread that says `parts` after each step, and hangs up where that is no answer."""

    entry: str = "/submission/predictor.py"
    pidfd: int = -1
    parts: list[Part] = field(factory=list)
    said: bytes = b""

    def __attrs_post_init__(self) -> None:
        self._requested, self.request = os.pipe()
        self.answer, self._answered = os.pipe()
        self._is_gone = False
        os.write(self._answered, encode(Ready(1, "3", "static", ())))
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        pending, is_open = b"", True
        while data := os.read(self._requested, 4_096):
            pending += data
            while len(pending) >= 4 and len(pending) >= (end := 4 + int.from_bytes(pending[:4], "little")):
                request, pending = request_of(pending[4:end]), pending[end:]
                if isinstance(request, Load):
                    os.write(self._answered, encode(Loaded(request.seq, request.nonce, ("predict",))))
                elif isinstance(request, Step) and is_open:
                    is_open = self._say(request)
        if is_open:
            os.close(self._answered)

    def _say(self, step: Step) -> bool:
        """Whether the pipe stays open. A pipe takes so many bytes whole, so no outcome hangs on time."""
        said = self.said = b"".join(part(step) for part in self.parts)[: select.PIPE_BUF]
        is_answered = verdict_of(step, said).code != "died"
        os.write(self._answered, said)
        if not is_answered:
            os.close(self._answered)
        return is_answered

    def probe(self, policy: Policy) -> IsolationReport:
        raise NotImplementedError

    def spawn(self, spec: SpawnSpec) -> Talker:
        return self

    def kill(self, reason: str) -> None:
        if not self._is_gone:
            self._is_gone = True
            os.close(self.request)
            self._thread.join()
            os.close(self.answer)
            os.close(self._requested)
            self.reason = reason or "signal:9"

    def usage(self) -> Usage:
        return Usage(self.reason)


def verdict_of(step: Step, data: bytes) -> Verdict:
    return judge(data, steps=GRID.steps, anchor=step.anchor, seq=step.seq, nonce=step.nonce)


def window() -> Reveal:
    until = np.array([ROWS * i // GRID.steps for i in range(GRID.steps + 1)])
    rows = np.ones((ROWS, 2), dtype="f4")
    return ready(Blinded(COLUMNS, rows[:, :1].copy(), rows, np.zeros(GRID.steps + 1), until, until))


class Conversation(RuleBasedStateMachine):
    """A window, asked anchor by anchor; `judge` says what each answer must come to, and the seat must agree."""

    @initialize()
    def begin(self) -> None:
        """A new child, its first window open."""
        self.talker = Talker()
        self.buffer = RevealBuffer(COLUMNS, ROWS, ROWS, GRID.steps + 1)
        limits, context = Limits(step_wall_s=60.0), Context(GRID, 1.0, COLUMNS, 7)
        self.seat = ChildSeat(self.talker, Path("/nowhere"), Policy(limits), context, "carry", self.buffer, list, RunClock(600.0))
        self.seat.open(0, window())
        self.anchor = 0
        self.owed: str | None = None  # why the next request must break the run
        self.is_over = False

    @precondition(lambda self: not self.is_over and self.anchor < GRID.steps)
    @rule(parts=SAID)
    def ask(self, parts: list[Part]) -> None:
        """One anchor: the outcome is the verdict's."""
        self.talker.parts, self.talker.said = parts, b""
        seq = self.seat._seq + 1
        outcome = self._outcome()
        if self.owed is not None:
            assert outcome == ("broken", f"protocol.{self.owed}")
            return
        verdict = self._verdict(seq)
        assert outcome == expected(verdict)
        if verdict.code not in (None, "died"):
            self.owed = verdict.why
        self.anchor += 1

    def _verdict(self, seq: int) -> Verdict:
        asked = Step(seq, self.nonce, 0, self.anchor, ())
        return verdict_of(asked, self.talker.said)

    def _outcome(self) -> tuple[str, Any]:
        drawn: list[bytes] = []
        nonces = self.seat._nonces

        def tee() -> Iterator[bytes]:
            for nonce in nonces:
                drawn.append(nonce)
                yield nonce

        self.seat._nonces = tee()
        try:
            answer = self.seat.ask(self.anchor)
            told: tuple[str, Any] = ("sealed", doubles(answer))
        except Refused as refused:
            told = "refused", refused.code
        except RunBroken as broken:
            self.is_over = True
            told = "broken", broken.reason
        except SeatLost as lost:
            self.is_over = True
            told = "lost", lost.code
        finally:
            self.seat._nonces = nonces
        (self.nonce,) = drawn
        return told

    @precondition(lambda self: self.is_over or self.anchor == GRID.steps)
    @rule()
    def leave(self) -> None:
        """The end of a window or of a child: what is owed comes out at `bye`; then another child."""
        self._leave()
        self.begin()

    def _leave(self) -> None:
        told = None
        try:
            self.seat.leave()
        except RunBroken as broken:
            told = broken.reason
        finally:
            self.buffer.close()
        assert told == (f"protocol.{self.owed}" if self.owed and not self.is_over else None)

    def teardown(self) -> None:
        if hasattr(self, "is_over"):
            self._leave()


def doubles(answer: Any) -> list[float] | None:
    if answer is None:
        return None
    return list(struct.unpack(f"<{len(answer) // 8}d", answer)) if isinstance(answer, bytes) else list(answer)


def expected(verdict: Verdict) -> tuple[str, Any]:
    """How a seat shows a verdict."""
    if verdict.code in ("ok", "keep"):
        return "sealed", verdict.curve
    if verdict.why is not None and verdict.code in (None, "died"):
        return "broken", f"protocol.{verdict.why}"
    if verdict.code == "died":
        return "lost", "died"
    return "refused", verdict.code


TestConversation = Conversation.TestCase
TestConversation.settings = settings(deadline=None, max_examples=200, stateful_step_count=8, suppress_health_check=[HealthCheck.too_slow])


def seeds() -> list[bytes]:
    """Good frames of every kind, whole."""
    step = Step(7, NONCE, 0, 3, (1, 2, 3))
    frames = [part(step) for part in OTHERS[:8]]
    return [*frames, curve(step), curve(step, code="keep"), encode(Log("trace", "x" * 50)), encode(State(7, 1, bytes(300)))]


def mutated(chance: random.Random, frame: bytes) -> bytes:
    """A frame with bytes changed, put in, taken out or doubled; in one of two cases its length is made right again."""
    data = bytearray(frame)
    for _ in range(chance.randint(1, 4)):
        place, kind = chance.randrange(len(data) + 1), chance.randrange(4)
        if kind == 0 and place < len(data):
            data[place] = chance.randrange(256)
        elif kind == 1:
            data[place:place] = chance.randbytes(chance.randint(1, 8))
        elif kind == 2:
            del data[place : place + chance.randint(1, 8)]
        else:
            data[place:place] = data[chance.randrange(len(data) + 1) :][:20]
    return framed(bytes(data[4:])) if chance.random() < 0.5 else bytes(data)


def noise(chance: random.Random) -> bytes:
    """Random bytes, as they are or as the body of a frame."""
    data = chance.randbytes(chance.choice((0, 1, 4, 17, 60, 400)))
    return framed(data) if chance.random() < 0.7 else data


@pytest.mark.parametrize("kind", ["random", "mutated"])
def test_any_frame_is_a_typed_refusal_or_a_valid_frame(kind: str) -> None:
    """I-58: 1e5 frames, 1e6 with BLINDCAST_FUZZ_FRAMES=1000000; the parent grows by less than 16 MiB."""
    chance, good, process = random.Random(58), seeds(), psutil.Process()
    before, seen = process.memory_info().rss, dict[str, int]()
    for _ in range(FRAMES):
        data = noise(chance) if kind == "random" else mutated(chance, chance.choice(good))
        verdict = judge(data, steps=GRID.steps, anchor=3, seq=7, nonce=NONCE)
        assert verdict.why in WHYS or verdict.code is not None
        assert verdict.curve is None or all(-1.0 <= value <= 1.0 for value in verdict.curve)
        word = verdict.why or str(verdict.code)
        seen[word] = seen.get(word, 0) + 1
    assert process.memory_info().rss - before < GROWTH_BYTES
    assert set(seen) >= {"undecodable", "oversize", "truncated"}
    if kind == "mutated":
        assert set(seen) >= {"unexpected", "seq", "nonce", "length", "ok", "early"}


def violated(inbox: Inbox) -> bool:
    """Whether what was fed breaks the protocol; everything whole is taken."""
    try:
        while inbox.take() is not None:
            continue
    except Violation as violation:
        return violation.why in WHYS
    return False


def test_a_stream_without_end_is_never_held() -> None:
    """I-58: 64 MiB of frames, whole and halved, in a pipe's pieces; an inbox holds one that is not whole and a request's logs."""
    chance, good, process = random.Random(59), seeds(), psutil.Process()
    before, inbox, fed = process.memory_info().rss, Inbox(), 0
    largest = framed(encode(Log("x" * 60_000, "y"))[4:])
    while fed < 64 << 20:  # bytes
        piece = largest[: chance.randint(1, len(largest))] if chance.random() < 0.5 else b"".join(chance.choices(good, k=200))
        fed += len(piece)
        for start in range(0, len(piece), 8_192):
            inbox.feed(piece[start : start + 8_192])
            if violated(inbox):
                inbox = Inbox()
                break
    assert process.memory_info().rss - before < GROWTH_BYTES
