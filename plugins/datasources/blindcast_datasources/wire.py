"""Binance on the wire: raw recordings `<local time> <json>`, decoded line by line, and T_DEPTH csv (DI-06, section 3)."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from typing import Final

import msgspec
from attrs import frozen

from blindcast.errors import ImportDamaged
from blindcast_datasources.raw import RawFile
from blindcast_datasources.times import Clock

__all__ = ["Event", "Line", "depth_messages", "first_time", "is_depth_csv", "is_raw", "lines", "pairs"]

DEPTH_HEADER: Final = b"symbol,timestamp,first_update_id,last_update_id,side,update_type,price,qty,pu"
_RAW_LINE: Final = re.compile(rb'\d{10,19} \{"(stream|data|e|u|lastUpdateId)"\s*:')


class Event(msgspec.Struct, gc=False):
    """The fields of Binance's market messages that matter here; `b` and `a` mean several things."""

    e: str = ""
    E: int = 0
    T: int = 0
    s: str = ""
    ps: str = ""
    U: int = 0
    u: int = 0
    pu: int = -1
    b: msgspec.Raw = msgspec.Raw(b"")
    a: msgspec.Raw = msgspec.Raw(b"")
    B: msgspec.Raw = msgspec.Raw(b"")
    A: msgspec.Raw = msgspec.Raw(b"")
    p: str = ""
    q: str = ""
    X: str = ""
    m: bool | None = None
    t: int = -1
    f: int = -1
    l: int = -1  # noqa: E741  # the venue's own name
    lastUpdateId: int = -1  # noqa: N815  # the venue's own name
    symbol: str = ""
    pair: str = ""
    bids: msgspec.Raw = msgspec.Raw(b"")
    asks: msgspec.Raw = msgspec.Raw(b"")


class _Envelope(msgspec.Struct, gc=False):
    stream: str
    data: Event


class _Named(msgspec.Struct, gc=False):
    e: str = ""


class _NamedEnvelope(msgspec.Struct, gc=False):
    data: _Named = msgspec.field(default_factory=_Named)


@frozen
class Line:
    """One line: local time in ns, the stream it came by ("" unknown), what it says, its place."""

    local_ns: int
    stream: str
    event: Event
    number: int


KNOWN: Final = frozenset({"depthUpdate", "trade", "aggTrade", "bookTicker"})
_EVENT = msgspec.json.Decoder(Event)
_ENVELOPE = msgspec.json.Decoder(_Envelope)
_LEVELS = msgspec.json.Decoder(list[tuple[str, str]])


def pairs(raw: msgspec.Raw) -> list[tuple[str, str]]:
    """A side of a book: price and size as texts. Raises msgspec.ValidationError."""
    return _LEVELS.decode(raw)


def is_raw(head: bytes) -> bool:
    """Whether bytes begin as a raw recording does."""
    return _RAW_LINE.match(head) is not None


def is_depth_csv(head: bytes) -> bool:
    """Whether bytes begin as T_DEPTH does."""
    return head.startswith(DEPTH_HEADER)


def first_time(head: bytes, clock: Clock, name: str) -> int:
    """The first time in a file's first bytes. Raises ImportDamaged, DataError `time_unit`."""
    if is_depth_csv(head):
        cells = (head.split(b"\n")[1:2] or [b""])[0].split(b",")
        text = cells[1] if len(cells) > 1 else b""
        if not text:
            return 0  # a header alone
    else:
        text = head.split(b" ", 1)[0]
    if not text.isdigit():
        raise ImportDamaged(name, "line 1")
    return clock.ns(int(text), name)


def lines(file: RawFile) -> Iterator[Line]:
    """The lines of a raw recording. Raises ImportDamaged with the line, DataError `time_unit`."""
    clock = Clock()  # local times go by magnitude whatever `unit` says of the venue's
    for number, line in file.lines():
        text, blank, body = line.partition(b" ")
        if not blank and not text.strip():
            continue  # an empty line between or after
        if not text.isdigit():
            raise ImportDamaged(file.name, f"line {number}")
        try:
            if body.startswith(b'{"stream"'):
                envelope = _ENVELOPE.decode(body)
                stream, event = envelope.stream, envelope.data
            else:
                stream, event = "", _EVENT.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            stream, event = "", _other(body, file.name, number, error)
        yield Line(clock.ns(int(text), lambda number=number: f"{file.name}, line {number}"), stream, event, number)  # type: ignore[misc]  # a defaulted lambda


def _other(body: bytes, name: str, number: int, error: Exception) -> Event:
    """A message of another kind, whose fields have other types; anything else is damage."""
    try:
        outer = msgspec.json.decode(body, type=_NamedEnvelope).data.e or msgspec.json.decode(body, type=_Named).e
    except (msgspec.DecodeError, UnicodeDecodeError):
        outer = ""
    if not outer or outer in KNOWN:
        raise ImportDamaged(name, f"line {number}: {error}") from error
    return Event(e=outer)


@frozen
class DepthMessage:
    """The rows of T_DEPTH that make one message."""

    ts: int
    symbol: str
    first: int
    last: int
    previous: int | None
    is_snapshot: bool
    bids: list[tuple[str, str]]
    asks: list[tuple[str, str]]
    number: int


def depth_messages(file: RawFile, clock: Clock) -> Iterator[DepthMessage]:
    """The messages of a T_DEPTH file: neighbouring rows of one time and update. Raises ImportDamaged, DataError `time_unit`."""
    now: DepthMessage | None = None
    key: tuple[str, ...] = ()
    for number, line in file.lines():
        if number == 1 or not line.strip():
            continue
        try:
            cells = next(csv.reader([line.decode("ascii")]))
            symbol, time, first, last, side, update, price, size, previous = (cell.strip() for cell in cells)
            head = (symbol, time, first, last, update, previous)
            if now is None or head != key:
                if now is not None:
                    yield now
                ids = int(first), int(last), int(previous) if previous not in ("", "-1") else None
                key, ts = head, clock.text_ns(time, f"{file.name}, line {number}")
                now = DepthMessage(ts, symbol, *ids, update == "snap", [], [], number)
            {"b": now.bids, "a": now.asks}[side].append((price, size))
        except (ValueError, KeyError, UnicodeDecodeError) as error:
            raise ImportDamaged(file.name, f"line {number}: {error}") from error
    if now is not None:
        yield now
