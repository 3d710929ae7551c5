"""Every shipped data source passes all its checks (plugins.md P-53)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from attrs import evolve

from blindcast.records import Dropped, Grid, Window, WindowRef
from blindcast.testing import Check, Skip, checks, conforms, examine, subject_of
from blindcast_datasources.orderbook import OrderBook


@conforms("datasources", "synthetic")
def test_synthetic(check: Callable[[], None]) -> None:
    """DS-01 to DS-09."""
    check()


@conforms("datasources", "synthetic", options={"windows": 40, "edge": 0.25, "signal_strength": 5.0, "row_s": 0.5, "every_s": 900})
def test_synthetic_with_an_edge(check: Callable[[], None]) -> None:
    """DS-01 to DS-09."""
    check()


@pytest.mark.parametrize("check", checks("datasources"), ids=lambda check: check.case)
def test_a_recorded_pool(check: Check, invented_pool: Callable[[bool], Path]) -> None:
    """DS-01 to DS-09, over eight windows of which one fell into a gap."""
    try:
        examine(check, subject_of("datasources", "orderbook", {"pool": invented_pool(False)}))
    except Skip as reason:
        assert check.id == "DS-10"  # a skip is an answer here
        pytest.skip(str(reason))


class Mirrorable:
    """A recorded pool that knows its mirror image."""

    def __init__(self, pool: Path, image: Path, max_stale_s: float = 60.0) -> None:
        self.source = OrderBook(pool=pool, max_stale_s=max_stale_s)
        self.image = image

    def mirror(self) -> OrderBook:
        return OrderBook(pool=self.image, max_stale_s=self.source.max_stale_s)

    def windows(self, grid: Grid) -> Sequence[WindowRef]:
        return self.source.windows(grid)

    def window(self, ref: str, grid: Grid) -> Window:
        return self.source.window(ref, grid)

    def dropped(self, grid: Grid) -> Sequence[Dropped]:
        return self.source.dropped(grid)

    def digest(self) -> str:
        return self.source.digest()


def test_a_pool_and_its_mirror_image_have_the_same_windows_and_drops(invented_pool: Callable[[bool], Path]) -> None:
    """DS-10."""
    options = {"pool": invented_pool(False), "image": invented_pool(True)}
    subject = evolve(subject_of("datasources", Mirrorable, options), name="mirrorable")
    (check,) = [check for check in checks("datasources") if check.id == "DS-10"]
    examine(check, subject)
    source = subject.make()
    starts = [source.window(ref.ref, Grid(900, 15)).y for ref in source.windows(Grid(900, 15))]
    images = [source.mirror().window(ref.ref, Grid(900, 15)).y for ref in source.mirror().windows(Grid(900, 15))]
    assert all((y[1:] * image[1:] <= 0).all() for y, image in zip(starts, images, strict=True))
