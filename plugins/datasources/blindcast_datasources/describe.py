"""What `data describe` says of a source: its instrument and its numbers (DK-01, DK-04, S-05)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from blindcast.contracts import DataSource
from blindcast.records import Grid
from blindcast_datasources.columns import rows_of
from blindcast_datasources.pool import Pool
from blindcast_datasources.sampled import SECOND_NS, Sampled, Sampler, market_prints
from blindcast_datasources.statistics import STATS, market_stats, window_stats

__all__ = ["describe_pool", "describe_synthetic", "lines", "median_stats", "pool_stats"]

INSTRUMENT: Final = (
    "venue",
    "symbol",
    "base",
    "quote",
    "inverse",
    "contract_multiplier",
    "tick_size",
    "lot_size",
    "inferred",
    "depth",
    "clock",
    "licence",
)
SPAN: Final = ("t0_ns", "t1_ns", "rows", "trades")


def pool_stats(pool: Pool) -> dict[str, float | None]:
    """The numbers of a whole pool, between whole UTC seconds."""
    index = pool.index()
    if not len(index.ts):
        return dict.fromkeys(STATS)
    first, last = int(index.ts[0]), int(index.ts[-1])
    sampler = Sampler(-(-first // SECOND_NS) * SECOND_NS)
    for table in pool.tables("book_events"):
        sampler.push(rows_of(table))
    return market_stats(Sampled(sampler.finish(last), *market_prints(pool.tables("trades"))))


def describe_pool(path: Path) -> dict[str, Any]:
    """`instrument` and `stats` of DK-04. Raises DataError `pool_missing`, IntegrityError `pool_damaged`."""
    pool = Pool(path)
    meta = pool.meta
    return {"instrument": {key: meta.get(key) for key in (*INSTRUMENT, *SPAN)}, "stats": pool_stats(pool)}


def describe_synthetic(source: DataSource, window_s: int, steps: int) -> dict[str, Any]:
    """`instrument`, `stats` (medians over windows) and `truth` of an invented market (S-05)."""
    from blindcast_datasources import synthetic

    assert isinstance(source, synthetic.Synthetic), "only the invented market knows its making"
    grid = Grid(min(window_s, source.every_s), steps)
    stats = median_stats(source, grid)
    known = {"venue": "invented", "tick_size": synthetic.TICK_SIZE, "lot_size": synthetic.LOT_SIZE}
    instrument = {**dict.fromkeys((*INSTRUMENT, *SPAN)), **known, "windows": len(source.windows(grid)), "digest": source.digest()}
    told = getattr(source, "truth", None)
    truth: Any = told() if callable(told) else synthetic.truth(source)
    table = {f"imb{k}": {f"{seconds}s": stats[f"ic_imb{k}_{seconds}s"] for seconds in (1, 10, 60)} for k in (1, 20)}
    return {"instrument": instrument, "stats": stats, "truth": {**truth, "invented": True, "ic": table}}


def median_stats(source: DataSource, grid: Grid, most: int = 60) -> dict[str, float | None]:
    """The median over the first `most` windows of each per-window number (S-03); None where it is undefined in all of them."""
    found = [window_stats(source.window(ref.ref, grid)) for ref in source.windows(grid)[:most]]
    return {key: _median([one[key] for one in found]) for key in STATS}


def _median(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.median(known)) if known else None


def lines(stats: Mapping[str, float | None]) -> str:
    """The numbers as a table for people."""
    width = max(len(key) for key in stats)
    return "\n".join(f"{key:<{width}}  {'-' if value is None else format(value, '.6g')}" for key, value in stats.items())
