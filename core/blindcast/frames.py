"""Frames between the parent and a child: length-prefixed msgpack, typed both ways (isolation.md I-50 to I-56).

Nothing here trusts a frame; `blindcast.judge` says what an answer is worth.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import Final, TypeAlias

import msgspec

__all__ = [
    "LOG_BYTES",
    "MAX_BODY",
    "NONCE_BYTES",
    "PROTOCOL",
    "STATE_BYTES",
    "Ack",
    "Answer",
    "Bye",
    "Curve",
    "Failed",
    "Fit",
    "Fitted",
    "Hello",
    "Load",
    "Loaded",
    "Log",
    "Ready",
    "Request",
    "Restore",
    "Section",
    "SetupFailed",
    "State",
    "Step",
    "Warm",
    "answer_of",
    "encode",
    "nonces",
    "request_of",
]

PROTOCOL: Final = 1
MAX_BODY: Final = 65_536  # bytes of a frame's body, either way (I-50)
NONCE_BYTES: Final = 16
LOG_BYTES: Final = 4_096  # of a log's text (I-56)
STATE_BYTES: Final = 61_440  # of one part of a state (I-51)
CODE_CURVE: Final = frozenset(("ok", "keep", "exception", "wrong_length", "wrong_type", "not_finite", "out_of_range"))
CODE_FITTED: Final = frozenset(("ok", "exception", "unpicklable", "too_large"))


class _Frame(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True, gc=False):
    """A tagged array: no room for repeated or unknown keys."""


class Section(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """One table of the reveal buffer: column-major, each column `cap_rows` long, at byte `offset` (I-40)."""

    name: str
    dtype: str
    columns: tuple[str, ...]
    cap_rows: int
    offset: int


class Hello(_Frame, frozen=True, tag="hello"):
    """The first request; it has no answer of its own."""

    protocol: int
    steps: int
    window_s: int
    alpha: float | None
    seed: int
    state: str
    sections: tuple[Section, ...]
    size: int


class Load(_Frame, frozen=True, tag="load"):
    """Open the submission; `entry` is the path of its `.py` as the child sees it."""

    seq: int
    nonce: bytes
    entry: str


class Warm(_Frame, frozen=True, tag="warm"):
    """A whole warm-up stands in the buffer: copy it."""

    seq: int
    nonce: bytes
    index: int
    of: int
    rows: tuple[int, ...]


class Fit(_Frame, frozen=True, tag="fit"):
    """Fit on the warm-ups that were shown."""

    seq: int
    nonce: bytes
    want_state: bool


class Restore(_Frame, frozen=True, tag="restore"):
    """Take up the state of a fit made elsewhere."""

    seq: int
    nonce: bytes
    size: int


class Step(_Frame, frozen=True, tag="step"):
    """Anchor `anchor` of window `window` is revealed: `rows` of each section are to be seen."""

    seq: int
    nonce: bytes
    window: int
    anchor: int
    rows: tuple[int, ...]


class Bye(_Frame, frozen=True, tag="bye"):
    """Leave, at once."""

    seq: int
    nonce: bytes


class Ready(_Frame, frozen=True, tag="ready"):
    """Locked down; nothing of the submission has been opened yet."""

    protocol: int
    python: str
    libpython: str
    controls: tuple[str, ...]


class SetupFailed(_Frame, frozen=True, tag="setup_failed"):
    """A control could not be put in force."""

    control: str
    errno: int
    text: str


class Loaded(_Frame, frozen=True, tag="loaded"):
    """The submission's methods."""

    seq: int
    nonce: bytes
    methods: tuple[str, ...]


class Failed(_Frame, frozen=True, tag="failed"):
    """The submission could not be loaded."""

    seq: int
    nonce: bytes
    kind: str
    text: str


class Ack(_Frame, frozen=True, tag="ack"):
    """Done."""

    seq: int
    nonce: bytes


class Fitted(_Frame, frozen=True, tag="fitted"):
    """How the fit went; `size` bytes of state follow."""

    seq: int
    nonce: bytes
    code: str
    size: int


class State(_Frame, frozen=True, tag="state"):
    """A part of an opaque state."""

    seq: int
    part: int
    data: bytes


class Curve(_Frame, frozen=True, tag="curve"):
    """A commitment; with `ok`, `data` is one little-endian double per remaining horizon."""

    seq: int
    nonce: bytes
    code: str
    data: bytes


class Log(_Frame, frozen=True, tag="log"):
    """A text for people; a traceback has the level `trace`."""

    level: str
    text: str


Request: TypeAlias = Hello | Load | Warm | Fit | Restore | Step | Bye
Answer: TypeAlias = Ready | SetupFailed | Loaded | Failed | Ack | Fitted | State | Curve | Log

_encoder = msgspec.msgpack.Encoder()
_encode = _encoder.encode
_head = struct.Struct("<I").pack
request_of = msgspec.msgpack.Decoder(Request).decode
"""A request from a frame's body. Raises ValueError."""
answer_of = msgspec.msgpack.Decoder(Answer).decode
"""An answer from a frame's body. Raises ValueError or RecursionError: the body may be hostile."""


def encode(frame: Request | Answer) -> bytes:
    """The whole frame: `u32` little-endian length, then the body.

    >>> encode(Ack(1, b"x")).hex()
    '0900000093a361636b01c40178'
    """
    body = _encode(frame)
    return _head(len(body)) + body


def nonces() -> Iterator[bytes]:
    """16 bytes of the system's randomness for every request, never one twice (I-52); drawn many at once."""
    while True:
        drawn = os.urandom(NONCE_BYTES * 256)
        for start in range(0, len(drawn), NONCE_BYTES):
            yield drawn[start : start + NONCE_BYTES]
