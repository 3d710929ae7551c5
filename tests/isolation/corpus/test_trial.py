"""What is read out of a run."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from blindcast_isolation.corpus.asserts import gap, oracles
from blindcast_isolation.corpus.trial import said


def test_of_several_lines_of_one_variant_the_most_successful_counts() -> None:
    """K-03: the worst verdict."""
    output = "attack|open|raised|EPERM\nattack|open|got|loot|more\nattack|open|nothing|\n"
    assert said(output) == {"open": ("got", "loot|more")}


@given(st.text())
@settings(deadline=None)
def test_any_output_can_be_read(output: str) -> None:
    """K-04: what a child prints may be anything."""
    assert all(outcome in ("raised", "nothing", "got") for outcome, _ in said(output).values())
    assert all(len(line) == 4 for line in oracles(output))


def test_times_tell_the_halves_apart_only_where_they_differ() -> None:
    """A-06: mean times within 20 %."""
    exists = np.arange(8) % 2 == 0
    assert gap(np.array([0, 1, 2, 3, 0, 1, 2, 3]), [100.0] * 4, exists) == 1.0
    assert gap(np.where(exists, 3, 0), [100.0, 110.0, 120.0, 200.0], exists) == 2.0
