"""The walker (grading.md G-20 to G-28, GV-121, performance.md PF-24 and PF-42)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blindcast.local import LocalSeat
from blindcast.protocol import DIED, LATE, Refused, link, read_commitment, walk_answers
from blindcast.records import Blinded, Grid
from blindcast.reveal import Reveal, ready
from blindcast.view import Context, View
from blindcast.walk import Failure, RunBroken, SeatLost, Walked, Walker, chain_head

STEPS = 3
NAN = float("nan")


class Scripted:
    """A seat that answers from a script per ordinal; it keeps what was done to it."""

    def __init__(self, script: dict[int, Sequence[object]], log: list[str]) -> None:
        self.script, self.log = script, log
        self.trace = ""
        self.ordinal = -1
        self.steps = 0
        self.left = 0

    def open(self, ordinal: int, reveal: Reveal) -> None:
        self.ordinal, self.steps = ordinal, reveal.steps
        self.log.append(f"open {ordinal}")

    def ask(self, anchor: int) -> Any:
        answer = self.script.get(self.ordinal, [0.0] * self.steps)[anchor]
        self.trace = ""
        if answer is LATE or answer is DIED:
            raise SeatLost("deadline" if answer is LATE else "died", "step_deadline" if answer is LATE else "signal:9")
        if isinstance(answer, RunBroken):
            raise answer
        if isinstance(answer, Exception):
            self.trace = f"trace of {answer}"
            raise Refused("exception")
        curve = read_commitment(answer, self.steps - anchor)
        return None if curve is None else curve.tolist()

    def shut(self) -> None:
        self.log.append(f"shut {self.ordinal}")

    def leave(self) -> None:
        self.left += 1
        self.log.append("leave")


class Stand:
    """A walker over scripted seats, with all that it did."""

    def __init__(self, script: dict[int, Sequence[object]], state: Literal["carry", "fresh"] = "carry", stops: bool = False) -> None:
        self.script = script
        self.log: list[str] = []
        self.seats: list[Scripted] = []
        self.links: list[tuple[Any, ...]] = []
        self.walker = Walker(self.seat, lambda *sealed: self.links.append(sealed), STEPS, state, stops)

    def seat(self) -> Scripted:
        self.seats.append(Scripted(self.script, self.log))
        return self.seats[-1]

    def walk(self, reveals: Sequence[Reveal]) -> list[Walked]:
        return list(self.walker.walk(self.seat(), reveals))


@pytest.fixture(scope="module")
def reveals(blinded: Callable[..., Blinded]) -> list[Reveal]:
    return [ready(blinded(STEPS, seed=seed)) for seed in range(8)]


def recomputed(walked: Walked, reveal: Reveal, labels: Sequence[bytes], head: bytes) -> bytes:
    for anchor, label in enumerate(labels):
        head = link(head, walked.ordinal, anchor, label, walked.curves[anchor, anchor + 1 :].tobytes(), reveal.digests[anchor])
    return head


def test_every_anchor_asked_is_sealed_in_order(reveals: list[Reveal]) -> None:
    """G-27, DESIGN 4: the chain runs over windows, from 32 zero bytes."""
    stand = Stand({0: [1, None, NAN], 1: [[1, 0, -1], 0.5, None]})
    walked = stand.walk(reveals[:2])
    assert [(sealed[0], sealed[1], sealed[2]) for sealed in stand.links] == [
        (0, 0, b"set:"), (0, 1, b"keep:"), (0, 2, b"refused:not_finite"), (1, 0, b"set:"), (1, 1, b"set:"), (1, 2, b"keep:"),
    ]  # fmt: skip
    first = recomputed(walked[0], reveals[0], [b"set:", b"keep:", b"refused:not_finite"], bytes(32))
    second = recomputed(walked[1], reveals[1], [b"set:", b"set:", b"keep:"], first)
    assert [one.head for one in walked] == [first, second] == [stand.links[2][-1], stand.links[5][-1]]
    assert chain_head([one.head for one in walked], "carry") == second


def test_a_link_is_stored_before_anything_more_is_asked(reveals: list[Reveal]) -> None:
    """G-27: what was sealed is sealed when the next anchor is revealed."""
    seen: list[int] = []
    stand = Stand({})

    class Counting(Scripted):
        def ask(self, anchor: int) -> Any:
            seen.append(len(stand.links))
            return None

    list(stand.walker.walk(Counting({}, []), reveals[:2]))
    assert seen == [0, 1, 2, 3, 4, 5]


@settings(deadline=None)
@given(
    answers=st.lists(
        st.one_of(st.none(), st.floats(-1, 1), st.sampled_from([NAN, 2.0, "a", True, ValueError("x"), LATE, DIED])), min_size=3, max_size=3
    )
)
def test_the_walker_and_the_pure_rules_agree(answers: list[Any], blinded: Callable[..., Blinded]) -> None:
    """G-20 to G-26: one walker, the curves of `walk_answers`."""
    walked = Stand({0: answers}).walk([ready(blinded(STEPS))])[0]
    pure = walk_answers(STEPS, answers)
    assert walked.curves.tobytes() == pure.curves.tobytes()
    assert walked.status == pure.status
    assert [(failure.code, failure.anchor, failure.knot) for failure in walked.failures] == pure.refused


def test_a_crash_gets_a_new_seat_for_the_next_window(reveals: list[Reveal]) -> None:
    """G-25: what was sealed stands, the rest of the window is not asked and flat."""
    stand = Stand({0: [1, DIED, 1], 1: [1, None, None]})
    walked = stand.walk(reveals[:2])
    assert [(one.status, one.code, one.reason) for one in walked] == [("crashed", "died", "signal:9"), ("ok", None, None)]
    assert walked[0].curves.tolist() == [[0, 1, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0]]
    assert stand.log == ["open 0", "leave", "open 1", "shut 1", "leave"]
    assert len(stand.links) == 2 + 3


def test_three_refusals_in_a_row_end_a_window_too(reveals: list[Reveal]) -> None:
    """G-25: the seat lives, and is left all the same."""
    stand = Stand({0: [NAN, "a", 5]})
    walked = stand.walk(reveals[:2])
    assert (walked[0].status, walked[0].code, walked[0].reason) == ("crashed", "out_of_range", None)
    assert stand.log[:4] == ["open 0", "shut 0", "leave", "open 1"]
    assert len(stand.seats) == 2


def test_a_run_restarts_at_most_three_times(reveals: list[Reveal]) -> None:
    """G-25: then the remaining windows are crashed, `restarts_spent`, and are not asked."""
    stand = Stand({ordinal: [LATE, 0, 0] for ordinal in range(8)})
    walked = stand.walk(reveals[:6])
    assert [one.code for one in walked] == ["deadline"] * 4 + ["restarts_spent"] * 2
    assert [one.status for one in walked] == ["crashed"] * 6
    assert len(stand.seats) == 4
    assert [seat.left for seat in stand.seats] == [1] * 4
    assert len(stand.links) == 4
    assert not walked[5].curves.any()
    assert walked[5].failures == (Failure(5, None, "restarts_spent"),)
    assert walked[5].head == walked[3].head


def test_three_crashes_leave_the_last_window_a_seat(reveals: list[Reveal]) -> None:
    """G-25: the fourth seat goes on as long as it lives."""
    stand = Stand({0: [DIED], 1: [DIED], 2: [DIED], 3: [1, None, None]})
    assert [one.status for one in stand.walk(reveals[:6])] == ["crashed"] * 3 + ["ok"] * 3
    assert len(stand.seats) == 4


def test_in_fresh_each_window_has_a_seat_and_a_chain_of_its_own(reveals: list[Reveal]) -> None:
    """G-25, G-28, PF-42: nothing is spent, links start from zeros, the run's head is over the windows' heads."""
    script: dict[int, Sequence[object]] = {5: [1, None, None]}
    stand = Stand(script | {k: [DIED] for k in range(5)}, "fresh")
    walked = stand.walk(reveals[:6])
    assert [one.code for one in walked] == ["died"] * 5 + [None]
    assert len(stand.seats) == 6
    assert [seat.left for seat in stand.seats] == [1] * 6
    assert walked[5].head == recomputed(walked[5], reveals[5], [b"set:", b"keep:", b"keep:"], bytes(32))
    heads = [one.head for one in walked]
    assert chain_head(heads, "fresh") == sha256(b"".join(heads)).digest()


def test_a_fresh_window_walks_alike_whatever_was_walked_before(reveals: list[Reveal]) -> None:
    """G-28: any order gives byte-equal curves."""
    script: dict[int, Sequence[object]] = {0: [1, None, 0.5]}
    alone = Stand(script, "fresh").walk(reveals[:1])[0]
    after = Stand({0: [-1, -1, -1], 1: [1, None, 0.5]}, "fresh").walk([reveals[3], reveals[0]])[1]
    assert alone.curves.tobytes() == after.curves.tobytes()


def test_no_window_has_a_chain_of_zeros() -> None:
    assert chain_head([], "carry") == bytes(32)


def test_a_run_may_stop_at_its_first_failure(reveals: list[Reveal]) -> None:
    """G-51, G-52: at once, inside the window; the sealed part stands."""
    stand = Stand({1: [1, ValueError("boom"), 1]}, stops=True)
    walked = stand.walk(reveals[:4])
    assert [one.status for one in walked] == ["ok", "crashed"]
    assert walked[1].failures == (Failure(1, 1, "exception", None, "trace of boom"),)
    assert walked[1].curves.tolist() == [[0, 1, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0]]
    assert len(stand.links) == 3 + 2
    assert stand.log[-2:] == ["shut 1", "leave"]


def test_a_broken_window_is_yielded_before_the_run_ends(reveals: list[Reveal]) -> None:
    """G-55: the number is kept; the anchor that was being asked counts as died."""
    stand = Stand({1: [1, RunBroken("protocol.nonce"), 1]})
    walk = stand.walker.walk(stand.seat(), reveals[:4])
    assert next(walk).status == "ok"
    second = next(walk)
    assert (second.status, second.code, second.reason) == ("crashed", "died", "protocol.nonce")
    assert second.curves[0].tolist() == [0, 1, 1, 1]
    with pytest.raises(RunBroken, match=r"protocol\.nonce"):
        next(walk)
    assert stand.seats[0].left == 1
    assert (len(stand.links), stand.links[-1][2]) == (3 + 2, b"refused:died")


class Early(Scripted):
    """A seat whose child turns out to have said too much, when it is left."""

    def leave(self) -> None:
        super().leave()
        raise RunBroken("protocol.early")


def test_a_fault_found_on_leaving_does_not_lose_the_window(reveals: list[Reveal]) -> None:
    """G-27, G-55: its links are stored, so its curves must be told."""
    stand = Stand({}, "fresh")
    walk = stand.walker.walk(Early({0: [1, None, None]}, []), reveals[:2])
    assert next(walk).curves[0].tolist() == [0, 1, 1, 1]
    with pytest.raises(RunBroken, match=r"protocol\.early"):
        next(walk)


def test_a_seat_that_cannot_be_made_anew_ends_the_run(reveals: list[Reveal]) -> None:
    """G-55: load or fit failing in a restarted child; the windows before stand."""
    links: list[object] = []

    def refuse() -> Scripted:
        raise RunBroken("fit_failed")

    walk = Walker(refuse, lambda *sealed: links.append(sealed), STEPS).walk(Scripted({0: [DIED]}, []), reveals[:3])
    assert next(walk).code == "died"
    with pytest.raises(RunBroken, match="fit_failed"):
        next(walk)


def test_a_link_that_cannot_be_stored_ends_the_walk_and_the_seat(reveals: list[Reveal]) -> None:
    def full(*sealed: object) -> None:
        raise OSError("no space")

    seat = Scripted({}, [])
    with pytest.raises(OSError, match="no space"):
        list(Walker(lambda: seat, full, STEPS).walk(seat, reveals[:1]))
    assert seat.left == 1


def test_a_walk_that_is_dropped_leaves_its_seat(reveals: list[Reveal]) -> None:
    stand = Stand({})
    walk = stand.walker.walk(stand.seat(), reveals)
    next(walk)
    walk.close()  # type: ignore[attr-defined]  # a generator, told as an Iterator
    assert stand.seats[0].left == 1


def test_a_mirrored_window_turns_the_curves_back(blinded: Callable[..., Blinded]) -> None:
    """DA-06: what was said of the mirrored world counts in the true one; a zero stays a plain zero."""
    mirrored = ready(blinded(STEPS, sign=-1))
    walked = Stand({0: [[1, -0.5, 0.0], None, 0.25]}).walk([mirrored])[0]
    assert walked.curves.tolist() == [[0, -1, 0.5, 0], [0, 0, 0.5, 0], [0, 0, 0, -0.25]]
    assert not np.signbit(walked.curves[walked.curves == 0]).any()


def test_carry_lets_one_predictor_walk_on_and_fresh_does_not(reveals: list[Reveal]) -> None:
    """GV-121: says +1 in the first window it meets, else -1."""

    class FirstLong:
        def __init__(self) -> None:
            self.met = 0

        def predict(self, view: View) -> float:
            self.met += view.anchor == 0
            return 1.0 if self.met == 1 else -1.0

    class Met(FirstLong):
        def __init__(self, context: Context) -> None:
            super().__init__()

    context = Context(Grid(30, STEPS), 1.0, ("t", "a"), 0)

    def walk(state: Literal["carry", "fresh"]) -> list[float]:
        def seat() -> LocalSeat:
            return LocalSeat(Met, context, [])

        walker = Walker(seat, lambda *sealed: None, STEPS, state)
        return [float(one.curves[0, 1]) for one in walker.walk(seat(), [reveals[0], reveals[0]])]

    assert walk("carry") == [1.0, -1.0]
    assert walk("fresh") == [1.0, 1.0]


def test_reveals_are_taken_one_at_a_time(reveals: list[Reveal]) -> None:
    """Memory does not grow with the number of windows: nothing is read ahead."""
    taken: list[int] = []

    def one_by_one() -> Any:
        for index, reveal in enumerate(reveals[:3]):
            taken.append(index)
            yield reveal

    stand = Stand({})
    walk = stand.walker.walk(stand.seat(), one_by_one())
    next(walk)
    assert taken == [0]
    next(walk)
    assert taken == [0, 1]
