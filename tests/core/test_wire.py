"""A seat over a scripted child: no process, only pipes and a thread that answers as it is told."""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blindcast.answers import Refused
from blindcast.buffer import RevealBuffer
from blindcast.errors import FaultError
from blindcast.frames import (
    Ack,
    Bye,
    Curve,
    Failed,
    Fit,
    Fitted,
    Hello,
    Load,
    Loaded,
    Log,
    Ready,
    SetupFailed,
    Step,
    Warm,
    encode,
    request_of,
)
from blindcast.judge import Tally
from blindcast.records import Blinded, Grid, IsolationReport, Limits, Policy, SpawnSpec, Usage
from blindcast.reveal import Reveal, ready
from blindcast.view import Context
from blindcast.walk import RunBroken, SeatLost
from blindcast.wire import ChildSeat, RunClock

GRID, COLUMNS = Grid(60, 3), ("bid", "ask")
CONTEXT = Context(GRID, 1.0, COLUMNS, 5)
READY = encode(Ready(1, "3", "static", ("fds",)))
Answering = Callable[[Any], bytes | None]


def window(seed: int = 0) -> Reveal:
    random = np.random.default_rng(seed)
    until = np.array([0, 10, 20, 30])
    rows = random.normal(size=(30, 2)).astype("f4")
    return ready(Blinded(COLUMNS, rows, rows, random.normal(size=4), until, until))


class Scripted:
    """A backend and its child at once: `answering` gives the bytes for each request; None closes the pipe."""

    def __init__(self, answering: Answering, first: bytes = READY) -> None:
        self.requests: list[Any] = []
        self.specs: list[SpawnSpec] = []
        self.reasons: list[str] = []
        self.entry, self.pidfd = "/submission/predictor.py", -1
        self._requested, self.request = os.pipe()
        self.answer, self._answered = os.pipe()
        self._answering = answering
        os.write(self._answered, first)
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        pending = b""
        while data := os.read(self._requested, 4_096):
            pending += data
            while len(pending) >= 4 and len(pending) >= (end := 4 + int.from_bytes(pending[:4], "little")):
                request, pending = request_of(pending[4:end]), pending[end:]
                self.requests.append(request)
                said = self._answering(request)
                if said is None:
                    os.close(self._answered)
                    return
                os.write(self._answered, said)
        os.close(self._answered)

    def probe(self, policy: Policy) -> IsolationReport:
        raise NotImplementedError

    def spawn(self, spec: SpawnSpec) -> Scripted:
        self.specs.append(spec)
        return self

    def kill(self, reason: str) -> None:
        if not self.reasons:
            self.reasons.append(reason or "signal:9")
            os.close(self.request)
            self._thread.join()
            os.close(self.answer)
            os.close(self._requested)

    def usage(self) -> Usage:
        return Usage(self.reasons[0] if self.reasons else "ok", output="said")


def polite(request: Any) -> bytes:
    """What an honest child answers."""
    if isinstance(request, Load):
        return encode(Loaded(request.seq, request.nonce, ("fit", "predict")))
    if isinstance(request, Warm):
        return encode(Ack(request.seq, request.nonce))
    if isinstance(request, Fit):
        return encode(Fitted(request.seq, request.nonce, "ok", 0))
    if isinstance(request, Step):
        return half(request)
    return b""


def half(step: Step) -> bytes:
    remaining = GRID.steps - step.anchor
    return encode(Curve(step.seq, step.nonce, "ok", struct.pack(f"<{remaining}d", *[0.5] * remaining)))


def on_step(answering: Answering) -> Answering:
    return lambda request: answering(request) if isinstance(request, Step) else polite(request)


@pytest.fixture
def buffer() -> Iterator[RevealBuffer]:
    made = RevealBuffer(COLUMNS, 30, 30, 4)
    yield made
    made.close()


def seated(child: Scripted, buffer: RevealBuffer, limits: Limits | None = None) -> ChildSeat:
    policy = Policy(limits or Limits())
    return ChildSeat(
        child, Path("/nowhere"), policy, CONTEXT, "carry", buffer, lambda: [window(8), window(9)], RunClock(policy.limits.run_wall_s)
    )


class Spent:
    """A backend that has no child to give."""

    def __init__(self, code: str) -> None:
        self.code = code

    def probe(self, policy: Policy) -> IsolationReport:
        raise NotImplementedError

    def spawn(self, spec: SpawnSpec) -> Scripted:
        raise FaultError(self.code, "gone")


def doubles(answer: Any) -> list[float]:
    return list(struct.unpack(f"<{len(answer) // 8}d", answer)) if isinstance(answer, bytes) else list(answer)


def test_an_honest_child_is_greeted_warmed_fitted_asked_and_left(buffer: RevealBuffer) -> None:
    """I-51, I-57: each request once, in order, with seq from 1 and a nonce never used twice."""
    child = Scripted(polite)
    seat = seated(child, buffer)
    seat.open(0, window())
    assert [doubles(seat.ask(anchor)) for anchor in range(3)] == [[0.5] * 3, [0.5] * 2, [0.5]]
    seat.shut()
    seat.leave()
    assert [type(r).__name__ for r in child.requests] == ["Hello", "Load", "Warm", "Warm", "Fit", "Step", "Step", "Step", "Bye"]
    asked = child.requests[1:]
    assert [r.seq for r in asked] == list(range(1, len(asked) + 1))
    assert len({r.nonce for r in asked}) == len(asked)
    assert [(r.window, r.anchor, r.rows) for r in asked[4:7]] == [(0, 0, (0, 0, 1)), (0, 1, (10, 10, 2)), (0, 2, (20, 20, 3))]
    assert child.reasons == ["ok"]
    assert seat.output == "said"


def test_many_requests_keep_their_seq_through_every_width(buffer: RevealBuffer) -> None:
    """I-52: what is read without decoding is read alike at 127, 255 and 65,535 requests."""
    child = Scripted(polite)
    seat = seated(child, buffer)
    seat.open(0, window())
    for start in (126, 254, 65_534):
        seat._seq = start
        assert [doubles(seat.ask(0)) for _ in range(3)] == [[0.5] * 3] * 3
    seat.leave()


@pytest.mark.parametrize(
    ("code", "values", "refused"),
    [("ok", [0.5, float("nan"), 0.0], "not_finite"), ("ok", [2.0, 0.0, 0.0], "out_of_range"), ("wrong_type", [], "wrong_type")],
)
def test_a_refused_answer_is_raised_with_its_code(buffer: RevealBuffer, code: str, values: list[float], refused: str) -> None:
    """I-54, IV-14."""
    seat = seated(Scripted(on_step(lambda s: encode(Curve(s.seq, s.nonce, code, struct.pack(f"<{len(values)}d", *values))))), buffer)
    seat.open(0, window())
    with pytest.raises(Refused) as caught:
        seat.ask(0)
    assert caught.value.code == refused
    seat.leave()


def test_values_that_snap_or_are_negative_zero_are_sealed_clean(buffer: RevealBuffer) -> None:
    """G-23."""
    seat = seated(Scripted(on_step(lambda s: encode(Curve(s.seq, s.nonce, "ok", struct.pack("<3d", 1.0000000005, -0.0, -1.0))))), buffer)
    seat.open(0, window())
    assert str(doubles(seat.ask(0))) == "[1.0, 0.0, -1.0]"
    seat.leave()


def test_keep_is_none_and_a_trace_is_kept_printable(buffer: RevealBuffer) -> None:
    """I-54, I-59."""
    seat = seated(
        Scripted(on_step(lambda s: encode(Log("trace", "a\x1b[31mb\u202e")) + encode(Curve(s.seq, s.nonce, "keep", b"")))), buffer
    )
    seat.open(0, window())
    assert seat.ask(0) is None
    assert seat.trace == "ab"
    seat.leave()


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (lambda s: encode(Curve(s.seq + 1, s.nonce, "ok", bytes(24))), "seq"),
        (lambda s: encode(Curve(s.seq, bytes(16), "ok", bytes(24))), "nonce"),
        (lambda s: encode(Curve(s.seq, s.nonce, "ok", bytes(16))), "length"),
        (lambda s: encode(Ack(s.seq, s.nonce)), "unexpected"),
        (lambda s: b"\x01\x00\x01\x00", "oversize"),
        (lambda s: b"\x03\x00\x00\x00abc", "undecodable"),
        (lambda s: encode(Log("x", "y")) * 65, "flood"),
    ],
)
def test_a_violation_breaks_the_run(buffer: RevealBuffer, said: Answering, why: str) -> None:
    """I-57."""
    child = Scripted(on_step(said))
    seat = seated(child, buffer)
    seat.open(0, window())
    with pytest.raises(RunBroken) as caught:
        seat.ask(0)
    assert caught.value.reason == child.reasons[0] == f"protocol.{why}"
    seat.leave()


def test_a_second_answer_is_early_at_the_next_request(buffer: RevealBuffer) -> None:
    """I-57, IV-17: sealed, then `early`."""
    seat = seated(Scripted(on_step(lambda s: half(s) + (half(s) if s.anchor == 0 else b""))), buffer)
    seat.open(0, window())
    assert doubles(seat.ask(0)) == [0.5] * 3
    with pytest.raises(RunBroken, match="early"):
        seat.ask(1)


def test_bye_looks_for_early_bytes_too(buffer: RevealBuffer) -> None:
    """I-57."""
    seat = seated(Scripted(on_step(lambda s: half(s) + b"x")), buffer)
    seat.open(0, window())
    seat.ask(0)
    with pytest.raises(RunBroken, match="early"):
        seat.leave()
    seat.leave()


def test_whole_logs_may_wait_when_a_request_is_sent(buffer: RevealBuffer) -> None:
    """I-57: any byte but whole log frames."""
    seat = seated(Scripted(on_step(lambda s: half(s) + encode(Log("info", "late")))), buffer)
    seat.open(0, window())
    assert [doubles(seat.ask(anchor)) for anchor in range(3)] == [[0.5] * 3, [0.5] * 2, [0.5]]
    seat.leave()


def test_a_child_that_never_answers_is_late(buffer: RevealBuffer) -> None:
    """I-58, I-62."""
    child = Scripted(on_step(lambda s: b""))
    seat = seated(child, buffer, Limits(step_wall_s=0.05))
    seat.open(0, window())
    with pytest.raises(SeatLost) as caught:
        seat.ask(0)
    assert (caught.value.code, caught.value.reason) == ("deadline", "step_deadline")


def test_half_a_frame_and_silence_is_late(buffer: RevealBuffer) -> None:
    """I-58: bytes that come without end gain no time."""
    seat = seated(Scripted(on_step(lambda s: half(s)[:10])), buffer, Limits(step_wall_s=0.05))
    seat.open(0, window())
    with pytest.raises(SeatLost, match="step_deadline"):
        seat.ask(0)


def test_the_runs_deadline_breaks_the_run(buffer: RevealBuffer) -> None:
    """I-73."""
    seat = seated(Scripted(on_step(lambda s: b"")), buffer, Limits(run_wall_s=0.1))
    seat.open(0, window())
    with pytest.raises(RunBroken, match="run_deadline"):
        seat.ask(0)


def test_the_end_of_the_pipe_is_a_death_and_inside_a_frame_a_violation(buffer: RevealBuffer) -> None:
    """I-57: `truncated`."""
    seat = seated(Scripted(on_step(lambda s: None)), buffer)
    seat.open(0, window())
    with pytest.raises(SeatLost) as caught:
        seat.ask(0)
    assert (caught.value.code, caught.value.reason) == ("died", "signal:9")

    def cut(step: Step) -> None:
        os.write(child._answered, half(step)[:9])

    child = Scripted(on_step(cut))
    seat = seated(child, buffer)
    seat.open(0, window())
    with pytest.raises(RunBroken, match="truncated"):
        seat.ask(0)


def test_a_failed_control_breaks_the_run_before_anything_is_sent(buffer: RevealBuffer) -> None:
    """I-04."""
    child = Scripted(polite, first=encode(SetupFailed("netns", 1, "no")))
    with pytest.raises(RunBroken, match="setup:netns"):
        seated(child, buffer)
    assert child.requests == []


def test_load_and_fit_failures_carry_the_trace(buffer: RevealBuffer) -> None:
    """I-52."""
    for kind, reason, said in (
        (Load, "load_failed", lambda r: encode(Log("trace", "boom")) + encode(Failed(r.seq, r.nonce, "E", ""))),
        (Load, "load_failed", lambda r: encode(Loaded(r.seq, r.nonce, ("fit",)))),
        (Load, "load_failed", lambda r: None),
        (Fit, "fit_failed", lambda r: encode(Log("trace", "boom")) + encode(Fitted(r.seq, r.nonce, "exception", 0))),
    ):
        child = Scripted(lambda r, kind=kind, said=said: said(r) if isinstance(r, kind) else polite(r))  # type: ignore[misc]  # bound early
        with pytest.raises(RunBroken, match=reason) as caught:
            seated(child, buffer)
        assert caught.value.trace


def test_warm_ups_are_shown_whole_one_at_a_time_and_the_buffer_is_zero_behind_them(buffer: RevealBuffer) -> None:
    """I-46."""
    shown: list[bytes] = []

    def answering(request: Any) -> bytes:
        if isinstance(request, Warm):
            fd = buffer.reopened()
            shown.append(os.pread(fd, 8, 0))
            os.close(fd)
        return polite(request)

    seat = seated(Scripted(answering), buffer)
    assert shown == [window(8).ladder[0, :2].tobytes(), window(9).ladder[0, :2].tobytes()]
    fd = buffer.reopened()
    assert not any(os.pread(fd, buffer.size, 0))
    os.close(fd)
    seat.leave()


def test_no_row_is_written_before_the_anchor_that_reveals_it(buffer: RevealBuffer) -> None:
    """I-43: rows of the next anchor come only with the next request."""
    reveal, seen = window(), []

    def look(step: Step) -> bytes:
        fd = buffer.reopened()
        row = np.frombuffer(os.pread(fd, 32 * 4, 0), "<f4")
        os.close(fd)
        seen.append(int(np.count_nonzero(row)))
        return half(step)

    seat = seated(Scripted(on_step(look)), buffer)
    seat.open(0, reveal)
    for anchor in range(3):
        seat.ask(anchor)
    assert seen == [0, 10, 20]
    seat.shut()
    seat.leave()


def test_a_child_is_spawned_on_the_cpu_of_the_runs_slot(buffer: RevealBuffer) -> None:
    """I-61, I-80."""
    child = Scripted(polite)
    seat = ChildSeat(child, Path("/nowhere"), Policy(), CONTEXT, "carry", buffer, list, RunClock(9.0), cpu=5)
    seat.leave()
    assert [spec.cpu for spec in child.specs] == [5]


def test_a_zygote_that_gives_no_child_breaks_the_run_and_another_fault_does_not(buffer: RevealBuffer) -> None:
    """I-32, I-73."""
    for code, error in (("zygote_lost", RunBroken), ("plugin_broken", FaultError)):
        with pytest.raises(error):
            ChildSeat(Spent(code), Path("/nowhere"), Policy(), CONTEXT, "carry", buffer, list, RunClock(9.0))


@pytest.mark.parametrize("methods", [("fit", "predict"), ("predict",)])
def test_a_fit_is_timed_where_there_is_one(buffer: RevealBuffer, methods: tuple[str, ...]) -> None:
    """I-35."""
    seat = seated(Scripted(lambda r: encode(Loaded(r.seq, r.nonce, methods)) if isinstance(r, Load) else polite(r)), buffer)
    assert (seat.fit_s is not None) == ("fit" in methods)
    seat.leave()


def test_every_answer_of_every_child_goes_into_the_runs_tally(buffer: RevealBuffer) -> None:
    """I-56: those that are read without decoding too."""
    tally, sent = Tally(), 0
    for _ in range(2):
        child = Scripted(on_step(half))
        seat = ChildSeat(child, Path("/nowhere"), Policy(), CONTEXT, "carry", buffer, list, RunClock(9.0), tally=tally)
        seat.open(0, window())
        for anchor in range(3):
            seat.ask(anchor)
        seat.leave()
        answered = [r for r in child.requests if not isinstance(r, Hello | Bye)]
        sent += len(READY) + sum(len(polite(request)) for request in answered)
    assert tally.sent_bytes == sent


def test_a_run_that_has_sent_its_share_floods(buffer: RevealBuffer) -> None:
    """I-56."""
    tally = Tally()
    seat = ChildSeat(Scripted(polite), Path("/nowhere"), Policy(), CONTEXT, "carry", buffer, list, RunClock(9.0), tally=tally)
    seat.open(0, window())
    tally.sent_bytes = tally.cap_bytes - 1
    with pytest.raises(RunBroken, match="flood"):
        seat.ask(0)


def test_a_control_that_fails_because_the_zygote_is_gone_is_a_lost_zygote(buffer: RevealBuffer) -> None:
    """I-32: the child finds its parent dead before anybody else does."""
    child = Scripted(polite, first=encode(SetupFailed("parent", 3, "gone")))
    child.usage = lambda: Usage("zygote_lost")  # type: ignore[method-assign]  # what a child without a supervisor says
    with pytest.raises(RunBroken, match="zygote_lost"):
        seated(child, buffer)
