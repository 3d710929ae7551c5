"""Windows made ready to be revealed, and the digest of each prefix (performance.md PF-27)."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from blindcast.errors import IntegrityError
from blindcast.records import Blinded
from blindcast.reveal import prefix_digests, ready


@st.composite
def counts_of_rows(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    steps = draw(st.integers(1, 6))
    some = st.lists(st.integers(0, 4), min_size=steps, max_size=steps)
    return draw(some), draw(some)


def recomputed(shown: Blinded) -> list[bytes]:
    """PF-27 read literally: one row at a time, each value in little-endian bytes."""
    digest, digests, ladder_from, events_from = bytes(32), [], 0, 0
    for anchor in range(len(shown.y) - 1):
        step = b""
        for row in range(ladder_from, int(shown.ladder_until[anchor])):
            step += b"".join(np.array(value, dtype="<f4").tobytes() for value in shown.ladder[row])
        for row in range(events_from, int(shown.events_until[anchor])):
            step += b"".join(np.array(value, dtype="<f4").tobytes() for value in shown.events[row])
        step += np.array(shown.y[anchor], dtype="<f8").tobytes()
        digest = sha256(digest + step).digest()
        digests.append(digest)
        ladder_from, events_from = int(shown.ladder_until[anchor]), int(shown.events_until[anchor])
    return digests


@settings(deadline=None)
@given(counts=counts_of_rows(), columns=st.integers(1, 5), seed=st.integers(0, 99))
def test_the_digests_are_a_chain_over_the_rows_as_shown(
    blinded: Callable[..., Blinded], counts: tuple[list[int], list[int]], columns: int, seed: int
) -> None:
    """PF-27, for any number of rows a step, none included."""
    names = tuple(f"c{k}" for k in range(columns))
    shown = blinded(len(counts[0]), rows=counts[0], prints=counts[1], columns=names, seed=seed)
    assert list(prefix_digests(shown)) == recomputed(shown)


@settings(deadline=None)
@given(counts=counts_of_rows(), anchor=st.integers(0, 5))
def test_a_digest_knows_nothing_of_what_comes_after_its_anchor(
    blinded: Callable[..., Blinded], counts: tuple[list[int], list[int]], anchor: int
) -> None:
    """G-04: rows before the knot and y up to it, no more."""
    shown = blinded(len(counts[0]), rows=counts[0], prints=counts[1])
    anchor = min(anchor, len(counts[0]) - 1)
    ladder, events, y = shown.ladder.copy(), shown.events.copy(), shown.y.copy()
    ladder[int(shown.ladder_until[anchor]) :] = 9.0
    events[int(shown.events_until[anchor]) :] = 9.0
    y[anchor + 1 :] = 9.0
    other = evolve(shown, ladder=ladder, events=events, y=y)
    assert prefix_digests(shown)[: anchor + 1] == prefix_digests(other)[: anchor + 1]


def test_rows_say_what_each_anchor_shows(blinded: Callable[..., Blinded]) -> None:
    """G-04: anchor 0 shows no row and y_0; the last entry is the whole window."""
    reveal = ready(blinded(3, rows=[2, 0, 3], prints=[1, 1, 0]))
    assert reveal.rows == ((0, 0, 1), (2, 1, 2), (2, 2, 3), (5, 2, 4))
    assert (reveal.steps, len(reveal.digests)) == (3, 3)


def test_a_reveal_is_column_major_and_read_only(blinded: Callable[..., Blinded]) -> None:
    shown = blinded(3)
    reveal = ready(evolve(shown, y=shown.y.copy()))
    assert np.array_equal(reveal.ladder.T, shown.ladder)
    assert reveal.ladder.flags.c_contiguous
    assert reveal.events.flags.c_contiguous
    assert not any(array.flags.writeable for array in (reveal.ladder, reveal.events, reveal.path))


@pytest.mark.parametrize("until", [[0, 2, 4], [0, 2, 4, 5], [0, 4, 2, 6], [-1, 2, 4, 6], [0, 2, 4, 7], [0, 2, 4, 6, 6]])
def test_counts_that_do_not_fit_are_refused(blinded: Callable[..., Blinded], until: list[int]) -> None:
    """AN-08."""
    with pytest.raises(IntegrityError) as caught:
        ready(evolve(blinded(3), ladder_until=np.array(until)))
    assert (caught.value.code, caught.value.exit_code) == ("anonymizer_malformed", 4)


@pytest.mark.parametrize(
    "bend", [lambda t: t.astype(np.float64), np.asfortranarray, lambda t: t[:, :1], lambda t: t.ravel(), lambda t: t.astype(">f4")]
)
def test_an_array_that_would_be_hashed_otherwise_than_shown_is_refused(
    blinded: Callable[..., Blinded], bend: Callable[[np.ndarray[tuple[int, ...], np.dtype[np.float32]]], object]
) -> None:
    """AN-09, PF-27."""
    shown = blinded(3)
    with pytest.raises(IntegrityError) as caught:
        ready(evolve(shown, ladder=bend(shown.ladder)))  # type: ignore[arg-type]  # what a stranger's anonymizer may give
    assert caught.value.code == "anonymizer_malformed"
