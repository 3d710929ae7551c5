"""Time order of blocks that are nearly in order (DI-05): stable, exact, holding no more than lies out of place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from blindcast.records import I64

__all__ = ["Timed", "in_order"]


class Timed(Protocol):
    """A block of things with times: `Rows` or `Prints`."""

    @property
    def ts(self) -> I64:
        """I64[n], ns."""
        ...

    def take(self, picked: NDArray[np.intp] | slice) -> Self:
        """Those at `picked`."""
        ...


T = TypeVar("T", bound=Timed)


def in_order(blocks: Iterable[T], least: Sequence[int], joined: Callable[[list[T]], T]) -> Iterator[T]:
    """The blocks' things sorted by time, equal times in the order given; `least` holds each block's smallest time.

    `joined` makes one block of several.
    """
    later = np.minimum.accumulate(np.array([*least, 2**63 - 1], dtype=np.int64)[::-1])[::-1][1:]  # least of all blocks after each
    held: T | None = None
    for block, bound in zip(blocks, later.tolist(), strict=True):
        pending = block if held is None else joined([held, block])
        held = None
        if not len(pending.ts):
            continue
        if (np.diff(pending.ts) < 0).any():
            pending = pending.take(np.argsort(pending.ts, kind="stable"))
        ready = int(np.searchsorted(pending.ts, bound, side="right"))
        if ready == len(pending.ts):
            yield pending
            continue
        held = pending.take(slice(ready, None))
        if ready:
            yield pending.take(slice(0, ready))
