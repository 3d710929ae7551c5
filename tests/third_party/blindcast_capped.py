"""Conviction times the move that followed, with each move capped: no single jump can carry the score."""

from blindcast import Offer, hookimpl


def capped(outcome, curves, *, cap_bps: float = 25.0) -> float:
    """Return the sum over cells of conviction x move, in bps; a move beyond cap_bps counts as cap_bps."""
    moves = outcome.y[None, :] - outcome.y[:-1, None]
    return float((curves * moves.clip(-cap_bps, cap_bps)).sum())


@hookimpl
def graders():
    yield Offer("capped", "blindcast_capped:capped", "conviction x move, each move capped, bps")
