"""Frames: their bytes, and what is no frame."""

from __future__ import annotations

import msgspec
import pytest

from blindcast.frames import Ack, Bye, Curve, Hello, Load, Section, Step, answer_of, encode, request_of

NONCE = bytes(range(16))


@pytest.mark.parametrize(
    ("frame", "hexadecimal"),
    [
        (Step(7, NONCE, 2, 14, (9000, 40000, 15)), "2300000096a47374657007c410000102030405060708090a0b0c0d0e0f020e93cd2328cd9c400f"),
        (
            Curve(7, NONCE, "ok", bytes.fromhex("000000000000e03f")),
            "2700000095a5637572766507c410000102030405060708090a0b0c0d0e0fa26f6bc408000000000000e03f",
        ),
        (Curve(7, NONCE, "keep", b""), "2100000095a5637572766507c410000102030405060708090a0b0c0d0e0fa46b656570c400"),
    ],
    ids=["IV-01", "IV-02", "IV-03"],
)
def test_a_frame_is_its_length_and_one_message(frame: Step | Curve, hexadecimal: str) -> None:
    """IV-01 to IV-03."""
    assert encode(frame).hex() == hexadecimal


@pytest.mark.parametrize(
    "frame",
    [
        Hello(1, 15, 900, 1.0, 0, "carry", (Section("y", "<f8", ("y",), 16, 0),), 4096),
        Hello(1, 15, 900, None, 2**63 - 1, "fresh", (), 0),
        Load(1, NONCE, "/submission/predictor.py"),
        Bye(3, NONCE),
    ],
)
def test_a_request_comes_back_as_it_was(frame: Hello | Load | Bye) -> None:
    """I-51."""
    assert request_of(encode(frame)[4:]) == frame


def test_a_request_is_no_answer() -> None:
    """I-57: a known tag of the wrong direction is none of the structs."""
    with pytest.raises(msgspec.ValidationError):
        answer_of(encode(Bye(3, NONCE))[4:])


@pytest.mark.parametrize(
    "body",
    [
        msgspec.msgpack.encode(["ack", 7, NONCE, None]),
        msgspec.msgpack.encode(["ack", 7]),
        msgspec.msgpack.encode(["ack", 7.0, NONCE]),
        msgspec.msgpack.encode(["ack", True, NONCE]),
        msgspec.msgpack.encode(["ack", 7, "text"]),
        msgspec.msgpack.encode({"type": "ack", "seq": 7, "nonce": NONCE}),
        msgspec.msgpack.encode(["ack", 7, msgspec.msgpack.Ext(1, b"x")]),
        encode(Ack(7, NONCE))[4:] + b"\xc0",
        b"\x93\xa3ack\x07" + b"\x91" * 60_000,
        b"\x93\xa3\xff\xffk\x07\xc4\x00",
        b"\x93\xa3ack\x07\xc6\xff\xff\xff\xff",
        b"",
    ],
)
def test_what_is_not_exactly_a_frame_raises_value_error(body: bytes) -> None:
    """I-50, I-57: extra or missing elements, wrong types, maps, extensions, trailing bytes, deep nesting, bad text, false lengths."""
    with pytest.raises(ValueError, match=r".+"):
        answer_of(body)
