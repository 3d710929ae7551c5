"""One side of a book, best first: a sorted list of keys beside their sizes, and the range that the last snapshot covered (B-07)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from typing import Final

from blindcast_datasources.columns import DEPTH, NULL

__all__ = ["Ladder"]

_FAR: Final = 1 << 200  # behind every key
_EMPTY: Final = [NULL] * (2 * DEPTH)


class Ladder:
    """Levels by key: a key is the price for asks and minus the price for bids, so the best is always the smallest."""

    __slots__ = ("_bound", "_depth", "_is_stale", "_keys", "_shown", "ages", "beyond", "sizes")

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._keys: list[int] = []
        self.sizes: dict[int, int] = {}
        self.ages: dict[int, int] | None = None  # number of the message that last set a level; only where asked for
        self._bound = _FAR
        self._shown: list[int] = _EMPTY
        self._is_stale = False
        self.beyond = False  # a level shown lies beyond the range

    @property
    def best(self) -> int | None:
        """The smallest key."""
        return self._keys[0] if self._keys else None

    def replace(self, levels: Iterable[tuple[int, int]], covered: int, age: int) -> None:
        """A snapshot's side: it says nothing beyond its last level if it has `covered` levels or more (0: it is whole)."""
        given = list(levels)
        self.sizes = {key: size for key, size in given if size}
        self._keys = sorted(self.sizes)
        self._bound = max(key for key, _ in given) if covered and len(given) >= covered else _FAR
        if self.ages is not None:
            self.ages = dict.fromkeys(self._keys, age)
        self._is_stale = True

    def change(self, levels: Iterable[tuple[int, int]], age: int) -> None:
        """Set absolute sizes; 0 deletes."""
        keys, sizes, ages = self._keys, self.sizes, self.ages
        edge = keys[self._depth - 1] if len(keys) >= self._depth else _FAR
        for key, size in levels:
            if key <= edge:
                self._is_stale = True
            if size:
                if key not in sizes:
                    insort(keys, key)
                sizes[key] = size
                if ages is not None:
                    ages[key] = age
            elif sizes.pop(key, 0):
                del keys[bisect_left(keys, key)]
                if ages is not None:
                    del ages[key]

    def drop(self, key: int) -> None:
        """Remove one level."""
        del self.sizes[key]
        if self.ages is not None:
            del self.ages[key]
        del self._keys[bisect_left(self._keys, key)]
        self._is_stale = True

    def shown(self, *, cuts: bool) -> list[int]:
        """2 x 20 integers, keys then sizes, NULL where there is no level; `cuts` leaves out what lies beyond the range.

        The same list comes back while nothing shown has changed. Sets `beyond`.
        """
        if self._is_stale:
            keys = self._keys[: self._depth]
            if keys and keys[-1] > self._bound:
                self.beyond = not cuts
                if cuts:
                    keys = keys[: bisect_right(keys, self._bound)]
            else:
                self.beyond = False
            sizes = self.sizes
            padding = _EMPTY[: DEPTH - len(keys)]
            self._shown = [*keys, *padding, *[sizes[key] for key in keys], *padding]
            self._is_stale = False
        return self._shown
