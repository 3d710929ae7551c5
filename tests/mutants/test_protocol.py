"""Each mutant of the reveal-and-commit protocol breaks its rule and no other (grading.md section 3, Q-01)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

import numpy as np
import pytest

from blindcast import protocol, walk
from blindcast.protocol import DIED, LATE, Refused, Standing
from blindcast.records import F64, Blinded
from blindcast.reveal import Reveal, ready
from blindcast.walk import Walker

N, NAN = None, float("nan")
Rule = Callable[[], None]


def stands(answers: Sequence[object], rows: Sequence[Sequence[float]], status: str = "ok", codes: Sequence[str] = ()) -> Rule:
    """A rule: these answers leave these curves (knots i+1..G at anchor i), this status and these refusals."""

    def holds() -> None:
        walked = protocol.walk_answers(len(rows), answers)
        got = [walked.curves[i, i + 1 :].tolist() for i in range(len(rows))]
        assert (got, walked.status, [code for code, *_ in walked.refused]) == ([list(row) for row in rows], status, list(codes))

    return holds


def keeps_zero_positive() -> None:
    curve = protocol.read_commitment([-0.0, 0.0], 2)
    assert curve is not None
    assert not np.signbit(curve).any()


def takes_a_copy() -> None:
    mine = np.array([0.5, 0.5])
    curve = protocol.read_commitment(mine, 2)
    mine[:] = 1.0
    assert curve is not None
    assert curve.tolist() == [0.5, 0.5]


def links_hold_everything() -> None:
    given: tuple[Any, Any, Any, Any, Any, Any] = (bytes(32), 1, 2, b"set:", struct.pack("<d", 0.5), bytes(32))
    others: tuple[Any, ...] = (b"\1" * 32, 2, 3, b"keep:", struct.pack("<d", -0.5), b"\1" * 32)
    changed: list[Any] = [tuple(others[j] if j == k else part for j, part in enumerate(given)) for k in range(len(given))]
    links = {protocol.link(*parts) for parts in (given, *changed)}
    assert len(links) == 1 + len(given)


class Seat:
    """Says +1 and notes when it is asked."""

    trace = ""

    def __init__(self, log: list[str]) -> None:
        self.log = log

    def open(self, ordinal: int, reveal: Reveal) -> None:
        self.log.append("open")

    def ask(self, anchor: int) -> Sequence[float] | F64 | None:
        self.log.append(f"ask {anchor}")
        return [1.0] * (3 - anchor)

    def shut(self) -> None:
        self.log.append("shut")

    def leave(self) -> None:
        self.log.append("leave")


def blinded() -> Blinded:
    until = np.array([0, 1, 2, 3])
    return Blinded(("t",), np.zeros((3, 1), dtype="f4"), np.zeros((3, 2), dtype="f4"), np.zeros(4), until, until)


def seals_before_it_reveals() -> None:
    log: list[str] = []
    seat = Seat(log)
    list(Walker(lambda: seat, lambda ordinal, anchor, *_: log.append(f"seal {anchor}"), 3).walk(seat, [ready(blinded())]))
    assert log == ["open", "ask 0", "seal 0", "ask 1", "seal 1", "ask 2", "seal 2", "shut", "leave"]


RULES: dict[str, Rule] = {
    "G-21 a commitment stands": stands([1, N, N], [[1, 1, 1], [1, 1], [1]]),
    "G-21 a curve holds knot by knot": stands([[1, -0.5], N], [[1, -0.5], [-0.5]]),
    "G-21 a curve is copied": takes_a_copy,
    "G-22 a bool is no number": stands([True, 1], [[0, 0], [1]], "degraded", ["wrong_type"]),
    "G-23 never clipped": stands([2.5, 1], [[0, 0], [1]], "degraded", ["out_of_range"]),
    "G-23 one value is not spread": stands([[1], 1], [[0, 0], [1]], "degraded", ["wrong_length"]),
    "G-23 no NaN": stands([1, NAN], [[1, 1], [0]], "degraded", ["not_finite"]),
    "G-23 zero is positive": keeps_zero_positive,
    "G-24 a fault goes flat": stands([1, "x", N], [[1, 1, 1], [0, 0], [0]], "degraded", ["wrong_type"]),
    "G-25 three in a row end it": stands(["x", "x", "x", 1], [[0] * 4, [0] * 3, [0] * 2, [0]], "crashed", ["wrong_type"] * 3),
    "G-25 None ends a streak": stands(["x", "x", N, "x", 1], [[0] * 5, [0] * 4, [0] * 3, [0] * 2, [1]], "degraded", ["wrong_type"] * 3),
    "G-25 late is the end": stands([1, LATE, 1], [[1] * 3, [0] * 2, [0]], "crashed", ["deadline"]),
    "G-25 death is the end": stands([1, DIED, 1], [[1] * 3, [0] * 2, [0]], "crashed", ["died"]),
    "G-27 a link holds everything": links_hold_everything,
    "I-43 sealed, then revealed": seals_before_it_reveals,
}

REFUSE, COMMIT, FLATTEN, BOUND, READ = Standing.refuse, Standing.commit, protocol.flatten, protocol.bound, protocol.read_commitment


def none_goes_flat(self: Standing, anchor: int, values: Any) -> Any:
    return COMMIT(self, anchor, [0.0] * (self.steps - anchor) if values is None else values)


def reversed_curve(self: Standing, anchor: int, values: Any) -> Any:
    return COMMIT(self, anchor, None if values is None else list(values)[::-1])


def keeps_what_stood(self: Standing, anchor: int, code: Any, position: int | None = None) -> Any:
    before = list(self.curve)
    tail = REFUSE(self, anchor, code, position)
    if code == "wrong_type":
        tail = COMMIT(self, anchor, before[anchor:])
        self.streak = sum(one == "wrong_type" for one, *_ in self.refused) if anchor == len(self.refused) - 1 else 1
    return tail


def streak_outlives_none(self: Standing, anchor: int, values: Any) -> Any:
    streak = self.streak
    tail = COMMIT(self, anchor, values)
    self.streak = streak if values is None else 0
    return tail


def counts_no_streak(self: Standing, anchor: int, code: Any, position: int | None = None) -> Any:
    tail = REFUSE(self, anchor, code, position)
    self.streak = 0
    return tail


def bool_is_a_number(value: object, remaining: int) -> Any:
    return FLATTEN(float(value) if isinstance(value, bool) else value, remaining)


def one_is_spread(value: object, remaining: int) -> Any:
    return FLATTEN(value * remaining if isinstance(value, list) and len(value) == 1 else value, remaining)


def clips(values: Any) -> Any:
    return BOUND([max(-1.0, min(1.0, value)) if abs(value) < float("inf") else value for value in values])


def nan_is_flat(values: Any) -> Any:
    return BOUND(np.nan_to_num(np.asarray(values, dtype=np.float64)))


def minus_zero(value: object, remaining: int) -> F64 | None:
    curve = READ(value, remaining)
    return None if curve is None else np.where(curve == 0, np.asarray(value, dtype=np.float64) * 1.0, curve)


def shares(value: object, remaining: int) -> Any:
    curve = READ(value, remaining)
    return value if isinstance(value, np.ndarray) else curve


def forgetful(field: int) -> Callable[..., bytes]:
    def link(*parts: Any) -> bytes:
        kept = [part for k, part in enumerate(parts) if k != field]
        return sha256(b"|".join(part if isinstance(part, bytes) else struct.pack("<I", part) for part in kept)).digest()

    return link


def only(*codes: str) -> property:
    """`is_over` that knows these endings alone."""
    return property(lambda self: self.streak >= 3 or bool(self.refused and self.refused[-1][0] in codes))


def asks_first(self: Walker, first: Any, reveals: Any) -> Iterator[Any]:
    """Seals a window's answers after all of them were asked for."""
    kept: list[tuple[Any, ...]] = []
    late = Walker(self.seats, lambda *sealed: kept.append(sealed), self.steps)
    for walked in WALK(late, first, reveals):
        for sealed in kept:
            self.store(*sealed)
        yield walked


WALK = Walker.walk

MUTANTS: Mapping[str, tuple[object, str, object, list[str]]] = {
    "None goes flat": (Standing, "commit", none_goes_flat, ["G-21 a commitment stands", "G-21 a curve holds knot by knot"]),
    "a curve the wrong way round": (Standing, "commit", reversed_curve, ["G-21 a curve holds knot by knot"]),
    "shares the predictor's array": (protocol, "read_commitment", shares, ["G-21 a curve is copied"]),
    "a bool is a number": (protocol, "flatten", bool_is_a_number, ["G-22 a bool is no number"]),
    "clips": (protocol, "bound", clips, ["G-23 never clipped"]),
    "spreads one value": (protocol, "flatten", one_is_spread, ["G-23 one value is not spread"]),
    "NaN is flat": (protocol, "bound", nan_is_flat, ["G-23 no NaN"]),
    "minus zero": (protocol, "read_commitment", minus_zero, ["G-23 zero is positive"]),
    "keeps what stood": (Standing, "refuse", keeps_what_stood, ["G-24 a fault goes flat"]),
    "never gives up": (Standing, "refuse", counts_no_streak, ["G-25 three in a row end it"]),
    "a streak outlives None": (Standing, "commit", streak_outlives_none, ["G-25 None ends a streak"]),
    "asks after a deadline": (Standing, "is_over", only("died"), ["G-25 late is the end"]),
    "asks after a death": (Standing, "is_over", only("deadline"), ["G-25 death is the end"]),
    "seals late": (Walker, "walk", asks_first, ["I-43 sealed, then revealed"]),
} | {f"a link without part {k}": (protocol, "link", forgetful(k), ["G-27 a link holds everything"]) for k in range(6)}


def broken_rules() -> list[str]:
    broken = []
    for name, rule in RULES.items():
        try:
            rule()
        except (AssertionError, Refused):
            broken.append(name)
    return broken


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_breaks_its_rule_and_no_other(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """G-21 to G-27, I-43."""
    target, attribute, mutant, rules = MUTANTS[name]
    monkeypatch.setattr(target, attribute, mutant)
    assert broken_rules() == rules


def test_the_protocol_itself_breaks_none() -> None:
    """Q-01."""
    assert walk.Walker is Walker
    assert broken_rules() == []


def test_every_rule_has_a_mutant() -> None:
    """P-53."""
    assert {rule for *_, rules in MUTANTS.values() for rule in rules} == set(RULES)
