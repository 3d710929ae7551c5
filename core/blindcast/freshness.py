"""How the windows of a `fresh` run come to their state (isolation.md I-35)."""

from __future__ import annotations

from typing import Final, Literal

from blindcast.errors import BudgetError

__all__ = ["STATE_BYTES", "fresh_mode"]

STATE_BYTES: Final = 64 << 20  # `state_mb` (isolation.md section 8)


def fresh_mode(
    blob_bytes: int | None, *, fit_s: float | None = None, windows: int = 0, left_s: float = float("inf")
) -> Literal["none", "state", "refit"]:
    """How each window's child of a `fresh` run comes to its state (I-35).

    Nothing to hand on (0 bytes, or neither a pickle nor a fit): there is no `fit`, so `none`. A pickle of at most 64 MiB is
    handed on (`state`); without one (None), or past that, each of `windows` fits again, `fit_s` seconds each. Raises
    BudgetError `refit_too_slow` when that cannot end within `left_s`.

    >>> fresh_mode(295_000, fit_s=1.5, windows=96, left_s=100.0)
    'state'
    """
    if blob_bytes == 0 or (blob_bytes is None and fit_s is None):
        return "none"
    if blob_bytes is not None and blob_bytes <= STATE_BYTES:
        return "state"
    if fit_s is not None and fit_s * windows > left_s:
        raise BudgetError(
            "refit_too_slow",
            f"{windows} fits of {fit_s:.3g} s do not end within the {left_s:.3g} s that the run has left",
            expected="a predictor that pickles to at most 64 MiB, or a fit that is quick enough to repeat",
            do="make the predictor picklable, or its fit quicker, or raise [budget] run_wall_s",
        )
    return "refit"
