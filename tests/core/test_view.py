"""What a predictor sees (data.md DA-01, performance.md PF-26)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from blindcast.records import Blinded, Grid
from blindcast.reveal import Reveal, ready
from blindcast.view import EVENT_COLUMNS, View

GRID = Grid(window_s=30, steps=3)


@pytest.fixture
def reveal(blinded: Callable[..., Blinded]) -> Reveal:
    return ready(blinded(3, rows=[2, 1, 3], prints=[1, 0, 2]))


def view_at(reveal: Reveal, anchor: int) -> View:
    ladder, events, knots = reveal.rows[anchor]
    return View(GRID, reveal.columns, anchor, reveal.ladder[:, :ladder], reveal.events[:, :events], reveal.path[:knots])


def test_a_view_says_when_it_is(reveal: Reveal) -> None:
    """DESIGN 6: t is i/G, clock_s seconds since the start, horizons the knots that remain."""
    view = view_at(reveal, 1)
    assert (view.t, view.clock_s, view.anchor, view.horizons.tolist()) == (1 / 3, 10.0, 1, [2, 3])


def test_a_warm_up_has_no_horizon(reveal: Reveal) -> None:
    """DESIGN 6: anchor G and none."""
    view = view_at(reveal, 3)
    assert (view.anchor, view.t, view.horizons.tolist(), len(view.y)) == (3, 1.0, [], 4)


def test_a_view_shows_the_revealed_prefix_and_no_more(reveal: Reveal) -> None:
    """G-04."""
    for anchor, (ladder, events, knots) in enumerate(reveal.rows):
        view = view_at(reveal, anchor)
        assert (len(view.ladder), len(view.events), len(view.y)) == (ladder, events, knots)
        assert list(view.ladder.columns) == ["t", "a"]
        assert list(view.events.columns) == list(EVENT_COLUMNS)
        assert (view.ladder.to_numpy() == reveal.ladder[:, :ladder].T).all()


def test_a_frame_shares_the_memory_of_the_prefix(reveal: Reveal) -> None:
    """PF-26: no row is copied."""
    view = view_at(reveal, 3)
    assert np.shares_memory(view.ladder.to_numpy(), reveal.ladder)
    assert np.shares_memory(view.ladder["a"].to_numpy(), reveal.ladder)
    assert np.shares_memory(view.events.to_numpy(), reveal.events)
    assert np.shares_memory(view.y, reveal.path)


def test_a_frame_is_built_on_first_touch_and_once(reveal: Reveal) -> None:
    """PF-26."""
    view = view_at(reveal, 2)
    assert view.ladder is view.ladder
    assert view.events is view.events


def test_no_value_of_a_view_can_be_written(reveal: Reveal) -> None:
    view = view_at(reveal, 2)
    for array in (view.y, view.horizons, view.ladder.to_numpy(), view.ladder["a"].to_numpy(), view.events.to_numpy()):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


def test_a_frame_that_is_written_to_leaves_the_prefix_alone(reveal: Reveal) -> None:
    """pandas may copy before it writes; what was revealed stays."""
    view, before = view_at(reveal, 2), reveal.ladder.tobytes()
    try:
        view.ladder.iloc[0, 0] = 5.0
    except ValueError as error:
        assert "read-only" in str(error)  # noqa: PT017  # either outcome will do
    assert reveal.ladder.tobytes() == before


def test_a_copy_is_the_same_on_memory_of_its_own(reveal: Reveal) -> None:
    view = view_at(reveal, 2)
    copy = view.copy()
    copy.y[0] = 5.0
    copy.ladder.iloc[0, 0] = 5.0
    assert (copy.anchor, copy.t) == (view.anchor, view.t)
    assert view.y[0] == reveal.path[0] != 5.0
    assert view.ladder.iloc[0, 0] != 5.0
