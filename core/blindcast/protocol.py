"""Reveal and commit: what counts as an answer, what stands, and the sealed chain (grading.md section 3).

An answer is read in two halves. `flatten` looks at its type and length and runs where the predictor runs, in the
child; `bound` looks at finiteness and range and runs in the parent, which trusts nothing the child counted.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from hashlib import sha256
from typing import Final, Literal, NamedTuple

import numpy as np

from blindcast.answers import Code, Refused, flatten
from blindcast.records import F64, read_only

__all__ = [
    "DIED",
    "LATE",
    "LIMIT",
    "Code",
    "Refused",
    "Standing",
    "Walk",
    "bound",
    "flatten",
    "is_bounded",
    "link",
    "read_commitment",
    "walk_answers",
]

Status = Literal["ok", "degraded", "crashed", "not_run"]

LIMIT: Final = 1.000000001  # what a conviction may exceed 1 by before it is refused (G-23)
STREAK: Final = 3  # refused answers in a row that end a window (G-25)


class _Ending(NamedTuple):
    """Stands for an answer that never came."""

    code: Code


_MINUS_ZERO: Final = struct.pack("<d", -0.0)

LATE: Final = _Ending("deadline")
DIED: Final = _Ending("died")


def bound(values: Sequence[float] | F64) -> Sequence[float] | F64:
    """The values as convictions: finite, in [-1, 1], no negative zero. Raises Refused with the first offender (G-23)."""
    if isinstance(values, np.ndarray) or len(values) > 32:
        array_ = np.asarray(values, dtype=np.float64) + 0.0
        if not (np.abs(array_) <= 1.0).all():
            array_ = np.asarray(_snap(array_.tolist()))
        return array_
    total = sum(values)  # NaN hides from min and max, never from a sum
    if total != total or not (min(values) >= -1.0 and max(values) <= 1.0):
        return _snap(values)
    return [value + 0.0 for value in values] if 0.0 in values else values


@cache
def _lanes(count: int) -> tuple[int, int, int]:
    """(magnitude bits, 1.0 with the sign bits above it, sign bits) of `count` doubles side by side in one integer."""
    ones = sum(1 << 64 * lane for lane in range(count))
    sign = ones << 63
    return sign - ones, sign | ones * 0x3FF0_0000_0000_0000, sign


def is_bounded(data: bytes, count: int) -> bool:
    """Whether little-endian doubles are surely convictions as they stand; False asks `bound`.

    Magnitudes compare as their bits do, so all are taken from 1.0 at once: a sign bit stays where none had to be borrowed.
    """
    magnitude, ones, sign = _lanes(count)
    return (ones - (int.from_bytes(data, "little") & magnitude)) & sign == sign and _MINUS_ZERO not in data


def _snap(values: Iterable[float]) -> list[float]:
    values = list(values)
    for position, value in enumerate(values):
        if not -float("inf") < value < float("inf"):
            raise Refused("not_finite", position)
    for position, value in enumerate(values):
        if not -LIMIT <= value <= LIMIT:
            raise Refused("out_of_range", position)
    return [max(-1.0, min(1.0, value)) + 0.0 for value in values]


def read_commitment(value: object, remaining: int) -> F64 | None:
    """A predictor's answer as F64[remaining] convictions, knots i+1..G in order; None keeps the standing curve.

    Raises Refused(code, position) by the first check of G-23 that fails. The curve is a copy.

    >>> read_commitment(0.5, 3)
    array([0.5, 0.5, 0.5])
    """
    values = flatten(value, remaining)
    if values is None:
        return None
    curve = np.array(bound(values), dtype=np.float64)
    read_only(curve)
    return curve


@cache
def _doubles(count: int) -> Callable[..., bytes]:
    return struct.Struct(f"<{count}d").pack


class Standing:
    """The curve that stands in one window, anchor by anchor (G-21, G-24, G-25).

    `curve` holds knots 1..G; at anchor i its tail from i on stands. `cells` is the window's [G, G+1] table, row-major.
    """

    __slots__ = ("_cells", "_curve", "cells", "curve", "refused", "steps", "streak")

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.curve = array("d", bytes(8 * steps))
        self.cells = array("d", bytes(8 * steps * (steps + 1)))
        self._curve, self._cells = memoryview(self.curve).cast("B"), memoryview(self.cells).cast("B")
        self.streak = 0
        self.refused: list[tuple[Code, int, int | None]] = []

    def commit(self, anchor: int, values: Sequence[float] | F64 | bytes | None) -> bytes:
        """Let `values` (bounded, one per remaining horizon, or their doubles) stand from `anchor` on; None keeps what stands.

        What stands then is returned as little-endian doubles, knots i+1..G.
        """
        self.streak = 0
        if values is None:
            tail = bytes(self._curve[8 * anchor :])
        else:
            tail = values if isinstance(values, bytes) else _doubles(self.steps - anchor)(*values)
            self._curve[8 * anchor :] = tail
        row = 8 * anchor * (self.steps + 1)
        self._cells[row + 8 * anchor + 8 : row + 8 * self.steps + 8] = tail
        return tail

    def refuse(self, anchor: int, code: Code, position: int | None = None) -> None:
        """Go flat from `anchor` on: a refused answer never leaves the old curve to earn (G-24)."""
        self.streak += 1
        self.refused.append((code, anchor, None if position is None else anchor + 1 + position))
        self.curve[anchor:] = array("d", bytes(8 * (self.steps - anchor)))

    @property
    def is_over(self) -> bool:
        """Whether the window is not asked any further: three refusals in a row, a deadline or a death."""
        return self.streak >= STREAK or (bool(self.refused) and self.refused[-1][0] in ("deadline", "died"))

    @property
    def status(self) -> Status:
        """`ok`, `degraded` or `crashed` (G-26)."""
        if self.is_over:
            return "crashed"
        return "degraded" if self.refused else "ok"

    def curves(self) -> F64:
        """F64[G, G+1]: c[i, j] in [-1, 1] at anchor i for knot j, 0 where j <= i; read-only."""
        table = np.frombuffer(self.cells, dtype=np.float64).reshape(self.steps, self.steps + 1).copy()
        read_only(table)
        return table


class Walk(NamedTuple):
    """One window walked: `curves` F64[G, G+1], `refused` (code, anchor, knot or None), and the status of G-26."""

    curves: F64
    refused: list[tuple[Code, int, int | None]]
    status: Status


def walk_answers(steps: int, answers: Iterable[object]) -> Walk:
    """Walk one window over given answers: values, exceptions, LATE or DIED, one per anchor (G-20 to G-26).

    >>> walk_answers(2, [1, None]).curves.tolist()
    [[0.0, 1.0, 1.0], [0.0, 0.0, 1.0]]
    """
    standing = Standing(steps)
    for anchor, answer in zip(range(steps), answers, strict=False):
        if isinstance(answer, _Ending):
            standing.refuse(anchor, answer.code)
        elif isinstance(answer, BaseException) or (isinstance(answer, type) and issubclass(answer, BaseException)):
            standing.refuse(anchor, "exception")
        else:
            try:
                standing.commit(anchor, read_commitment(answer, steps - anchor))
            except Refused as refused:
                standing.refuse(anchor, refused.code, refused.position)
        if standing.is_over:
            break
    return Walk(standing.curves(), standing.refused, standing.status)


_PLACE = struct.Struct("<II")


def link(head: bytes, ordinal: int, anchor: int, label: bytes, curve: bytes, prefix: bytes) -> bytes:
    """The next link of the sealed chain, 32 bytes: sha256 of the fields in order (DESIGN 4).

    `head` is the previous link (32 zero bytes at first), `ordinal` and `anchor` go in as u32, `label` is `set:`,
    `keep:` or `refused:<code>`, `curve` the standing curve as little-endian float64 for knots i+1..G, `prefix` the
    digest of the revealed prefix (PF-27).
    """
    return sha256(head + _PLACE.pack(ordinal, anchor) + label + curve + prefix).digest()
