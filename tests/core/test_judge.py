"""The judge: vectors of isolation.md section 14, and every byte string there is."""

from __future__ import annotations

import math
import struct

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blindcast.frames import Ack, Answer, Curve, Fitted, Log, Ready, State, encode
from blindcast.judge import Inbox, Tally, Verdict, Violation, expected, judge
from blindcast.protocol import bound, is_bounded

NONCE = bytes(range(16))
GOOD = encode(Curve(7, NONCE, "ok", struct.pack("<d", 0.5)))


def said(data: bytes, *, anchor: int = 14, seq: int = 7, nonce: bytes = NONCE) -> Verdict:
    return judge(data, steps=15, anchor=anchor, seq=seq, nonce=nonce)


def curve(*values: float, code: str = "ok") -> bytes:
    return encode(Curve(7, NONCE, code, struct.pack(f"<{len(values)}d", *values)))


def framed(body: bytes) -> bytes:
    return struct.pack("<I", len(body)) + body


def test_a_good_answer_gives_its_curve() -> None:
    """IV-02."""
    assert said(GOOD) == Verdict(None, "ok", [0.5])


def test_none_keeps() -> None:
    """IV-03."""
    assert said(curve(code="keep")) == Verdict(None, "keep", None)


def test_a_length_above_the_cap_is_seen_in_the_header() -> None:
    """IV-12: no body is read."""
    assert said(bytes.fromhex("01000100")).why == "oversize"
    assert said(bytes.fromhex("00000100")).why == "truncated"


def test_another_number_of_values_is_the_length() -> None:
    """IV-13."""
    assert said(curve(*[0.0] * 14), anchor=0).why == "length"
    assert said(curve(*[0.0] * 15), anchor=0).why is None


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ([0.5, math.nan], "not_finite"),
        ([math.nan, 0.5], "not_finite"),
        ([-math.inf, 0.0], "not_finite"),
        ([1.5, math.nan], "not_finite"),
        ([1.5, 0.0], "out_of_range"),
        ([1.0000000011, 0.0], "out_of_range"),
    ],
)
def test_a_bad_ok_is_refused_by_the_parent(values: list[float], code: str) -> None:
    """IV-14, I-54: finiteness first."""
    assert said(curve(*values), anchor=13) == Verdict(None, code, None)


def test_a_hair_above_one_snaps_and_no_negative_zero_is_sealed() -> None:
    """I-54, G-23."""
    verdict = said(curve(1.000000001, -0.0), anchor=13)
    assert str(verdict.curve) == "[1.0, 0.0]"


@pytest.mark.parametrize("code", ["exception", "wrong_length", "wrong_type", "not_finite", "out_of_range"])
def test_a_code_of_the_child_is_taken_without_data(code: str) -> None:
    """I-54."""
    assert said(curve(code=code)) == Verdict(None, code, None)
    assert said(curve(0.5, code=code)).why == "length"


@pytest.mark.parametrize(
    "body",
    [
        GOOD[4:] + b"\xc0",
        msgspec.msgpack.encode(["curve", 7, NONCE, "ok", GOOD[-8:], None]),
        msgspec.msgpack.encode({"type": "curve", "seq": 7, "nonce": NONCE, "code": "ok", "data": GOOD[-8:]}),
        msgspec.msgpack.encode(["curve", 7.0, NONCE, "ok", GOOD[-8:]]),
    ],
)
def test_what_is_no_frame_is_undecodable(body: bytes) -> None:
    """IV-16."""
    assert said(framed(body)) == Verdict("undecodable", None, None)


def test_another_seq_nonce_or_length_is_named() -> None:
    """IV-17."""
    assert said(GOOD, seq=8).why == "seq"
    assert said(GOOD, nonce=bytes(16)).why == "nonce"
    assert said(curve(0.5, code="keep")).why == "length"
    assert said(curve(0.5, code="fine")).why == "length"


def test_an_answer_written_twice_is_sealed_then_early() -> None:
    """IV-17."""
    assert said(GOOD + GOOD) == Verdict("early", "ok", [0.5])
    assert said(GOOD + b"x") == Verdict("early", "ok", [0.5])


@pytest.mark.parametrize("frame", [Ack(7, NONCE), Ready(1, "", "", ()), State(7, 0, b""), Fitted(7, NONCE, "ok", 0)])
def test_a_known_frame_of_another_kind_is_unexpected(frame: Answer) -> None:
    """I-57."""
    assert said(encode(frame)).why == "unexpected"


def test_logs_may_come_before_and_after_an_answer() -> None:
    """I-51, I-57."""
    log = encode(Log("info", "x"))
    assert said(log * 32 + GOOD + log * 32) == Verdict(None, "ok", [0.5])
    assert said(log * 65 + GOOD).why == "flood"
    assert said(log * 64 + GOOD + log) == Verdict("flood", "ok", [0.5])


def test_a_logs_text_has_a_cap_in_bytes() -> None:
    """I-56."""
    assert said(encode(Log("info", "\u20ac" * 1365)) + GOOD).why is None
    assert said(encode(Log("info", "\u20ac" * 1366)) + GOOD).why == "oversize"


def test_two_thousand_logs_are_a_childs_share() -> None:
    """I-56."""
    inbox, log = Inbox(), encode(Log("info", "x"))
    for _ in range(2_000):
        inbox.ask()
        inbox.feed(log)
        assert inbox.take() is None
    inbox.ask()
    inbox.feed(log)
    with pytest.raises(Violation, match="flood"):
        inbox.take()


def say(inbox: Inbox, data: bytes) -> None:
    inbox.ask()
    inbox.feed(data)
    while inbox.take() is not None:
        pass


def test_two_thousand_logs_are_a_runs_share_and_more_of_them_are_dropped() -> None:
    """I-56: a later child cannot know what was said before, so it is not blamed; nothing beyond is kept."""
    tally, log = Tally(), encode(Log("info", "x"))
    for child in range(40):
        inbox = Inbox(tally)
        say(inbox, log * 64)
        assert len(inbox.logs) == (64 if child < 31 else 16 if child == 31 else 0)
    assert tally.logs == 40 * 64


def test_dropped_logs_still_flood_a_request() -> None:
    """I-56."""
    tally = Tally()
    tally.logs = 5_000
    with pytest.raises(Violation, match="flood"):
        say(Inbox(tally), encode(Log("info", "x")) * 65)


def test_what_the_children_of_a_run_send_is_bounded_together() -> None:
    """I-56: 32 MiB, states apart."""
    tally = Tally()
    assert tally.cap_bytes == 32 << 20
    tally.sent_bytes = tally.cap_bytes - len(GOOD)
    say(Inbox(tally), GOOD)
    say(Inbox(tally), encode(State(7, 0, bytes(61_440))))
    with pytest.raises(Violation, match="flood"):
        say(Inbox(tally), GOOD)


@pytest.mark.parametrize(("steps", "targets"), [(15, 96), (400, 96), (1, 10_000), (8_000, 3)])
def test_an_honest_run_fits_whatever_its_grid(steps: int, targets: int) -> None:
    """I-56: the cap never ends a run that only answers, with every log at its longest."""
    curves = sum(len(encode(Curve(2**31, NONCE, "ok", bytes(8 * left)))) for left in range(1, steps + 1)) * targets
    logs = 2_000 * len(encode(Log("tripwire", "x" * 4_096)))
    assert Tally.of(steps, targets).cap_bytes >= max(32 << 20, curves + logs)


def test_trips_are_counted_over_the_run() -> None:
    """K-02: logs of level `tripwire`."""
    tally = Tally()
    for _ in range(2):
        say(Inbox(tally), encode(Log("tripwire", "no")) * 3 + encode(Log("trace", "x")) + GOOD)
    assert (tally.trips, tally.logs) == (6, 8)


def test_nothing_said_is_a_death_and_half_a_frame_is_truncated() -> None:
    """I-57."""
    assert said(b"") == Verdict(None, "died", None)
    assert said(GOOD[:-1]) == Verdict("truncated", "died", None)


def test_a_states_part_has_a_cap() -> None:
    """I-51: 61,440 bytes."""
    with pytest.raises(Violation, match="oversize"):
        expected(State(7, 0, bytes(61_441)), State, 7, NONCE)


def test_an_unknown_code_of_a_fit_is_the_length() -> None:
    """I-57."""
    with pytest.raises(Violation, match="length"):
        expected(Fitted(7, NONCE, "fine", 0), Fitted, 7, NONCE)


@given(st.binary(max_size=300))
@settings(deadline=None)
def test_any_bytes_give_a_verdict(data: bytes) -> None:
    """I-58."""
    verdict = said(data)
    assert verdict.why is not None or verdict.code == "died"


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), max_size=4), st.integers(0, 60), st.integers(0, 60))
@settings(deadline=None)
def test_any_mutation_of_a_good_answer_gives_a_verdict_within_the_rules(changes: list[tuple[int, int]], cut: int, doubled: int) -> None:
    """I-58: a typed refusal or a valid frame, nothing else."""
    data = bytearray(encode(Log("trace", "x")) + GOOD)
    for place, value in changes:
        data[place % len(data)] = value
    verdict = said(bytes(data[:cut] + data[max(0, cut - doubled) :]))
    if verdict.code == "ok":
        assert verdict.curve is not None
        assert -1.0 <= verdict.curve[0] <= 1.0
    else:
        assert verdict.curve is None


@given(st.lists(st.floats() | st.sampled_from([1.0, -1.0, 1.0 + 2**-52, -0.0, 0.0, 5e-324, -5e-324]), min_size=1, max_size=20))
@settings(deadline=None)
def test_bounded_bytes_are_those_that_bound_leaves_as_they_are(values: list[float]) -> None:
    """G-23: the quick look at the bits never differs from the rule."""
    data = struct.pack(f"<{len(values)}d", *values)
    plain = all(-1.0 <= v <= 1.0 and not (v == 0 and math.copysign(1, v) < 0) for v in values)
    if is_bounded(data, len(values)):
        assert plain
        assert struct.pack(f"<{len(values)}d", *bound(values)) == data
    elif plain:
        assert b"\x80" in data  # bytes that look like a negative zero across two values: `bound` decides
