"""The three hashes of a pool (DP-06), over rows as little-endian int64, null = -2^63."""

from __future__ import annotations

import hashlib

import numpy as np

from blindcast_datasources.columns import FORMAT, Prints, Rows

__all__ = ["PoolHashes"]

_LITTLE = np.dtype("<i8")


class PoolHashes:
    """Takes the rows of both tables in order."""

    def __init__(self) -> None:
        self._ladder, self._book = hashlib.sha256(), hashlib.sha256()
        self._prints, self._trades = hashlib.sha256(), hashlib.sha256()

    def see_rows(self, rows: Rows) -> None:
        """The next book rows."""
        n = len(rows)
        table = np.empty((n, 84), dtype=_LITTLE)
        table[:, 0], table[:, 1], table[:, 2], table[:, 3] = rows.ts, rows.recv, rows.seq, rows.flags
        table[:, 4:] = rows.levels.reshape(n, 80)
        self._book.update(table.data)
        table[:, 3] = rows.ts
        self._ladder.update(np.ascontiguousarray(table[:, 3:]).data)

    def see_prints(self, prints: Prints) -> None:
        """The next prints."""
        table = [prints.ts, prints.recv, prints.px, prints.sz, prints.side, prints.trade_id, prints.kind, prints.n]
        self._trades.update(np.stack(table, axis=1).astype(_LITTLE).data)
        self._prints.update(np.stack([table[k] for k in (0, 2, 3, 4, 6)], axis=1).astype(_LITTLE).data)

    def result(self, tick_size: str, lot_size: str) -> dict[str, str]:
        """`ladder_sha256`, `prints_sha256` and `digest`, hex."""
        text = f"{FORMAT}\n{tick_size}\n{lot_size}\n{self._book.hexdigest()}\n{self._trades.hexdigest()}\n"
        return {
            "ladder_sha256": self._ladder.hexdigest(),
            "prints_sha256": self._prints.hexdigest(),
            "digest": hashlib.sha256(text.encode()).hexdigest(),
        }
