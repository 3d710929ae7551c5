"""How `fresh` windows come to their state (isolation.md I-35)."""

from __future__ import annotations

import pytest

from blindcast.errors import BudgetError
from blindcast.freshness import STATE_BYTES, fresh_mode


@pytest.mark.parametrize(
    ("blob", "fit_s", "mode"),
    [
        (0, 1.0, "none"),
        (None, None, "none"),
        (1, None, "state"),
        (STATE_BYTES, 1.0, "state"),
        (STATE_BYTES + 1, 1.0, "refit"),
        (STATE_BYTES + 1, None, "refit"),
        (None, 1.0, "refit"),
    ],
)
def test_the_mode_follows_from_pickle_and_fit(blob: int | None, fit_s: float | None, mode: str) -> None:
    """I-35: without a fit there is nothing to hand on."""
    assert fresh_mode(blob, fit_s=fit_s, windows=96, left_s=96.0) == mode


def test_refits_that_just_end_are_let_through() -> None:
    """I-35: refused when they exceed what is left."""
    assert fresh_mode(None, fit_s=1.5, windows=96, left_s=144.0) == "refit"
    with pytest.raises(BudgetError, match="96 fits") as caught:
        fresh_mode(None, fit_s=1.5, windows=96, left_s=143.99)
    assert (caught.value.code, caught.value.exit_code) == ("refit_too_slow", 7)


def test_a_pickle_is_never_too_slow() -> None:
    """I-35."""
    assert fresh_mode(10, fit_s=1e9, windows=96, left_s=0.0) == "state"
