"""Streaming order, whatever the blocks."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from blindcast_datasources.columns import Prints
from blindcast_datasources.order import in_order


def _prints(times: list[int], first: int) -> Prints:
    ts = np.array(times, dtype=np.int64)
    ids = np.arange(first, first + len(times), dtype=np.int64)
    return Prints(ts, ts, ts, ts, ts, ids, ts, ts, ids, ids)


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 20), max_size=8), max_size=8))
def test_blocks_come_out_in_time_order_and_stable(blocks: list[list[int]]) -> None:
    """DI-05."""
    made: list[Prints] = []
    for times in blocks:
        made.append(_prints(times, sum(len(block) for block in made)))
    got = [
        (ts, number)
        for block in in_order(made, [min(times, default=2**63 - 1) for times in blocks], Prints.joined)
        for ts, number in zip(block.ts.tolist(), block.trade_id.tolist(), strict=True)
    ]
    joined = [time for times in blocks for time in times]
    flat = [(time, number) for number, time in enumerate(joined)]
    assert got == sorted(flat)
