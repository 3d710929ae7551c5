"""A seat in this process: for code that is trusted, such as our own predictors in tests, benchmarks and labs."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from typing import Any

from blindcast.protocol import Refused, bound, flatten
from blindcast.records import F64, Grid
from blindcast.reveal import Reveal
from blindcast.view import Context, View

__all__ = ["LocalSeat", "construct", "consult", "whole"]

READ_ONLY_HINT = "a view is read-only: take `.copy()` of what you want to change"


def construct(kind: Callable[..., Any], context: Context) -> Any:
    """A predictor of class `kind`; the context is left out where `__init__` is not defined (DESIGN 6)."""
    return kind(context) if getattr(kind, "__init__", None) is not object.__init__ else kind()


def whole(grid: Grid, reveal: Reveal) -> View:
    """A warm-up: the window revealed to its end, on memory of its own."""
    return View(grid, reveal.columns, grid.steps, reveal.ladder, reveal.events, reveal.path).copy()


def consult(predictor: Any, view: View, *, observes: bool, remaining: int) -> Sequence[float] | F64 | None:
    """Call observe, then predict, and flatten the answer. Raises Refused; whatever the predictor raises is `exception`."""
    try:
        if observes:
            predictor.observe(view)
        answer = predictor.predict(view)
    except BaseException as error:
        if isinstance(error, ValueError) and "read-only" in str(error):
            error.add_note(READ_ONLY_HINT)
        raise Refused("exception") from error
    try:
        return flatten(answer, remaining)
    except Refused:
        raise
    except BaseException as error:  # a list or Series of its own making runs its code when it is read
        raise Refused("exception") from error


class LocalSeat:
    """A predictor that sits in this process, warmed and fitted by the constructor."""

    __slots__ = ("_columns", "_grid", "_observes", "_predictor", "_reveal", "trace")

    def __init__(self, kind: Callable[..., Any], context: Context, warmups: Sequence[Reveal]) -> None:
        self.trace = ""
        self._grid = context.grid
        self._columns = context.columns
        self._predictor = construct(kind, context)
        self._observes = callable(getattr(self._predictor, "observe", None))
        self._reveal: Reveal | None = None
        if callable(getattr(self._predictor, "fit", None)):
            self._predictor.fit([whole(context.grid, warmup) for warmup in warmups])

    def open(self, ordinal: int, reveal: Reveal) -> None:
        """Begin a window."""
        self._reveal = reveal

    def ask(self, anchor: int) -> Sequence[float] | F64 | None:
        """The bounded answer at `anchor`. Raises Refused."""
        reveal = self._reveal
        assert reveal is not None, "open a window first"
        ladder, events, knots = reveal.rows[anchor]
        view = View(self._grid, self._columns, anchor, reveal.ladder[:, :ladder], reveal.events[:, :events], reveal.path[:knots])
        try:
            values = consult(self._predictor, view, observes=self._observes, remaining=self._grid.steps - anchor)
        except Refused as refused:
            self.trace = "".join(traceback.format_exception(refused.__cause__)) if refused.__cause__ else ""
            raise
        return None if values is None else bound(values)

    def shut(self) -> None:
        """End the window."""
        self._reveal = None

    def leave(self) -> None:
        """Let the predictor go."""
        self._predictor = None
