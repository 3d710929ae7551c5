"""A seat in this process (grading.md G-20 to G-23, DESIGN 6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from blindcast.local import READ_ONLY_HINT, LocalSeat, construct, consult
from blindcast.protocol import Refused
from blindcast.records import Blinded, Grid
from blindcast.reveal import Reveal, ready
from blindcast.view import Context, View

CONTEXT = Context(Grid(window_s=20, steps=2), 1.0, ("t", "a"), 7)


@pytest.fixture
def reveal(blinded: Callable[..., Blinded]) -> Reveal:
    return ready(blinded(2))


def seat_of(kind: Callable[..., Any], reveal: Reveal, warmups: list[Reveal] | None = None) -> LocalSeat:
    seat = LocalSeat(kind, CONTEXT, warmups or [])
    seat.open(0, reveal)
    return seat


class Flat:
    def predict(self, view: View) -> float:
        return 0.0


class Told:
    def __init__(self, context: Context) -> None:
        self.context = context

    def predict(self, view: View) -> float:
        return self.context.seed / 7


def test_a_predictor_may_leave_out_its_init(reveal: Reveal) -> None:
    """DESIGN 6."""
    assert isinstance(construct(Flat, CONTEXT), Flat)
    assert construct(Told, CONTEXT).context is CONTEXT
    assert seat_of(Told, reveal).ask(0) == [1.0, 1.0]


def test_observe_is_called_before_predict_at_every_anchor(reveal: Reveal) -> None:
    """G-20: its result is ignored."""
    calls: list[tuple[str, int]] = []

    class Watching:
        def observe(self, view: View) -> float:
            calls.append(("observe", view.anchor))
            return 1.0

        def predict(self, view: View) -> None:
            calls.append(("predict", view.anchor))

    seat = seat_of(Watching, reveal)
    assert [seat.ask(0), seat.ask(1)] == [None, None]
    assert calls == [("observe", 0), ("predict", 0), ("observe", 1), ("predict", 1)]


def test_fit_sees_whole_warm_ups_that_it_may_keep_and_write(reveal: Reveal) -> None:
    """G-04: warm-ups are shown whole."""
    kept: list[View] = []

    class Fitting(Flat):
        def fit(self, warmups: list[View]) -> None:
            kept.extend(warmups)
            warmups[0].y[:] = 5.0

    seat_of(Fitting, reveal, [reveal, reveal])
    assert [(view.anchor, len(view.y), len(view.ladder)) for view in kept] == [(2, 3, 4)] * 2
    assert reveal.path[0] == 0.0


@pytest.mark.parametrize("error", [ValueError("boom"), SystemExit(3), KeyboardInterrupt(), GeneratorExit(), Refused("died")])
@pytest.mark.parametrize("method", ["observe", "predict"])
def test_whatever_is_raised_is_an_exception(reveal: Reveal, error: BaseException, method: str) -> None:
    """G-23: SystemExit and KeyboardInterrupt included; no predictor chooses its own code."""

    class Raising(Flat):
        pass

    def fail(self: object, view: View) -> None:
        raise error

    setattr(Raising, method, fail)
    seat = seat_of(Raising, reveal)
    with pytest.raises(Refused) as caught:
        seat.ask(0)
    assert (caught.value.code, caught.value.position) == ("exception", None)
    assert "in fail" in seat.trace
    assert type(error).__name__ in seat.trace


def test_the_trace_is_that_of_the_newest_refusal(reveal: Reveal) -> None:
    class Once:
        def predict(self, view: View) -> object:
            if view.anchor == 0:
                raise ValueError("boom")
            return "a"

    seat = seat_of(Once, reveal)
    with pytest.raises(Refused):
        seat.ask(0)
    with pytest.raises(Refused) as caught:
        seat.ask(1)
    assert (caught.value.code, seat.trace) == ("wrong_type", "")


def test_a_write_into_a_view_says_to_copy(reveal: Reveal) -> None:
    class Writing:
        def predict(self, view: View) -> float:
            view.y[0] = 1.0
            return 0.0

    seat = seat_of(Writing, reveal)
    with pytest.raises(Refused):
        seat.ask(0)
    assert "read-only" in seat.trace
    assert READ_ONLY_HINT in seat.trace
    assert ".copy()" in READ_ONLY_HINT


def test_an_answer_that_raises_when_it_is_read_is_an_exception(reveal: Reveal) -> None:
    """G-23: a list of its own making runs its code when it is read; that ends no walk."""

    class Trap(list[float]):
        def __iter__(self) -> Iterator[float]:
            raise RuntimeError("sprung")

    class Trapping:
        def predict(self, view: View) -> list[float]:
            return Trap([1.0, 1.0])

    seat = seat_of(Trapping, reveal)
    with pytest.raises(Refused) as caught:
        seat.ask(0)
    assert caught.value.code == "exception"
    assert "sprung" in seat.trace


def test_an_answer_is_flattened_by_whoever_asks_and_bounded_by_the_seat(reveal: Reveal) -> None:
    """G-27: range and finiteness are judged on the parent's side."""

    class High:
        def predict(self, view: View) -> float:
            return 5.0

    view = View(CONTEXT.grid, CONTEXT.columns, 0, reveal.ladder[:, :0], reveal.events[:, :0], reveal.path[:1])
    assert consult(High(), view, observes=False, remaining=2) == [5.0, 5.0]
    with pytest.raises(Refused) as caught:
        seat_of(High, reveal).ask(0)
    assert (caught.value.code, caught.value.position) == ("out_of_range", 0)


def test_a_predictor_that_does_not_start_raises_as_it_is(reveal: Reveal) -> None:
    class Failing(Flat):
        def fit(self, warmups: list[View]) -> None:
            raise ValueError("no fit")

    with pytest.raises(ValueError, match="no fit"):
        LocalSeat(Failing, CONTEXT, [reveal])
