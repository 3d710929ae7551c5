"""The one walker: it asks a seat at every anchor, seals what comes back, and only then lets more be revealed.

A *seat* is where a predictor sits: in this process (`LocalSeat`, for tests, benchmarks and the probes' lab) or in a
locked-down child (`blindcast.wire.ChildSeat`). Both serve the same walker, so both give the same curves and links.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Literal, Protocol

from attrs import field, frozen

from blindcast.protocol import Code, Refused, Standing, Status, link
from blindcast.records import F64
from blindcast.reveal import Reveal

__all__ = ["Failure", "RunBroken", "Seat", "SeatLost", "Walked", "Walker", "chain_head"]

RESTARTS = 3  # new children a run may have after a crash (G-25)


class SeatLost(Exception):
    """The predictor is gone: `code` deadline or died, `reason` of isolation.md I-73."""

    def __init__(self, code: Literal["deadline", "died"], reason: str) -> None:
        super().__init__(reason)
        self.code: Literal["deadline", "died"] = code
        self.reason = reason


class RunBroken(SeatLost):
    """The run ends here with `reason`: `run_deadline`, `protocol.<why>`, `load_failed`, `fit_failed`, `setup:<control>`, `zygote_lost`.

    What was sealed stands; the anchor that was being asked counts as died.
    """

    def __init__(self, reason: str, trace: str = "") -> None:
        super().__init__("died", reason)
        self.trace = trace


class Seat(Protocol):
    """Where a predictor sits, loaded, warmed and fitted."""

    @property
    def trace(self) -> str:
        """The text of the newest exception, for people; hostile where the predictor is."""
        ...

    def open(self, ordinal: int, reveal: Reveal) -> None:
        """Begin a window; nothing of it is shown yet."""
        ...

    def ask(self, anchor: int) -> Sequence[float] | F64 | bytes | None:
        """Reveal the prefix of `anchor` and return the bounded answer, or its doubles. Raises Refused, SeatLost, RunBroken."""
        ...

    def shut(self) -> None:
        """End the window: nothing of it stays readable."""
        ...

    def leave(self) -> None:
        """End the seat and all it started. Safe to repeat."""
        ...


@frozen
class Failure:
    """One refused answer or ending: where, what, and the text that came with it (hostile, for people only)."""

    target: int
    anchor: int | None
    code: str
    knot: int | None = None
    trace: str = ""


@frozen(eq=False)
class Walked:
    """One target walked: its curves, how it went, and the head of the chain behind it."""

    ordinal: int
    curves: F64
    status: Status
    code: str | None
    reason: str | None
    failures: tuple[Failure, ...]
    head: bytes


Store = Callable[[int, int, bytes, bytes, bytes, bytes], object]  # ordinal, anchor, label, curve, prefix digest, link


@frozen
class Walker:
    """Walks targets in time order (G-20 to G-28).

    `seats` makes a fitted seat; `store` is called with each link before anything more is revealed. `state` is `carry`
    (one seat walks on, a new one after a crash, at most 3 times) or `fresh` (a new seat a window).
    """

    seats: Callable[[], Seat]
    store: Store
    steps: int
    state: Literal["carry", "fresh"] = "carry"
    stops_at_failure: bool = False
    _labels: dict[str, bytes] = field(factory=dict, init=False, repr=False)

    def walk(self, first: Seat, reveals: Iterable[Reveal]) -> Iterator[Walked]:
        """Yield each target as it is walked. Raises RunBroken; the seat at work is left then and at the end."""
        seat: Seat | None = first
        restarts, head = 0, bytes(32)
        try:
            for ordinal, reveal in enumerate(reveals):
                if seat is None and self.state == "carry" and restarts == RESTARTS:
                    yield self._unasked(ordinal, head)
                    continue
                if seat is None:
                    seat = self.seats()
                    restarts += self.state == "carry"
                walked, broken = self._window(seat, ordinal, reveal, bytes(32) if self.state == "fresh" else head)
                head = walked.head
                if walked.status == "crashed" or self.state == "fresh":
                    fault, seat = _left(seat), None
                    broken = broken or fault
                yield walked
                if broken is not None:
                    raise broken
                if self.stops_at_failure and walked.failures:
                    return
        finally:
            if seat is not None:
                seat.leave()

    def _unasked(self, ordinal: int, head: bytes) -> Walked:
        failure = Failure(ordinal, None, "restarts_spent")
        return Walked(ordinal, Standing(self.steps).curves(), "crashed", "restarts_spent", "restarts_spent", (failure,), head)

    def _window(self, seat: Seat, ordinal: int, reveal: Reveal, head: bytes) -> tuple[Walked, RunBroken | None]:
        standing = Standing(self.steps)
        digests, store, sign = reveal.digests, self.store, reveal.sign
        failures: list[Failure] = []
        lost: SeatLost | None = None
        seat.open(ordinal, reveal)
        for anchor in range(self.steps):
            label = b"set:"
            try:
                answer = seat.ask(anchor)
                if answer is None:
                    label = b"keep:"
                elif sign < 0:
                    answer = [0.0 - value for value in (answer if not isinstance(answer, bytes) else array("d", answer))]
                tail = standing.commit(anchor, answer)
            except Refused as refused:
                label = self._refuse(standing, failures, ordinal, anchor, refused.code, refused.position, seat.trace)
                tail = bytes(8 * (self.steps - anchor))
            except SeatLost as ending:
                lost = ending
                label = self._refuse(standing, failures, ordinal, anchor, ending.code, None, seat.trace)
                tail = bytes(8 * (self.steps - anchor))
            head = link(head, ordinal, anchor, label, tail, digests[anchor])
            store(ordinal, anchor, label, tail, digests[anchor], head)
            if failures and (standing.is_over or self.stops_at_failure):
                break
        if lost is None:
            seat.shut()
        status: Status = "crashed" if failures and self.stops_at_failure else standing.status
        code = standing.refused[-1][0] if status == "crashed" else None
        walked = Walked(ordinal, standing.curves(), status, code, lost.reason if lost else None, tuple(failures), head)
        return walked, lost if isinstance(lost, RunBroken) else None

    def _refuse(
        self, standing: Standing, failures: list[Failure], ordinal: int, anchor: int, code: Code, position: int | None, trace: str
    ) -> bytes:
        standing.refuse(anchor, code, position)
        knot = None if position is None else anchor + 1 + position
        failures.append(Failure(ordinal, anchor, code, knot, trace if code == "exception" else ""))
        return self._labels.setdefault(code, f"refused:{code}".encode())


def _left(seat: Seat) -> RunBroken | None:
    """Leave a seat; what ends the run then is told after its window is yielded: that is sealed and stands."""
    try:
        seat.leave()
    except RunBroken as broken:
        return broken
    return None


def chain_head(heads: Sequence[bytes], state: Literal["carry", "fresh"]) -> bytes:
    """A run's head: the last link in `carry`; in `fresh` sha256 over the windows' heads in time order (PF-42)."""
    if state == "fresh":
        return sha256(b"".join(heads)).digest()
    return heads[-1] if heads else bytes(32)
