"""A blinded window made ready to be revealed, step by step, with the digest of each prefix (performance.md PF-27)."""

from __future__ import annotations

from hashlib import sha256

import numpy as np
from attrs import frozen

from blindcast.errors import IntegrityError
from blindcast.records import F32, F64, Blinded, read_only

__all__ = ["Reveal", "prefix_digests", "ready"]


@frozen(eq=False)
class Reveal:
    """One window's rows, column-major, and how many of them each anchor shows.

    `ladder` F32[columns, N], `events` F32[2, M], `path` F64[G+1] as shown. `rows[i]` counts the ladder rows, events and
    path values revealed at anchor i, G+1 entries; the last is the whole window. `digests[i]` is the 32-byte digest of
    that prefix, i < G. `sign` turns accepted curves back to the true world (DA-06).
    """

    columns: tuple[str, ...]
    ladder: F32
    events: F32
    path: F64
    rows: tuple[tuple[int, int, int], ...]
    digests: tuple[bytes, ...]
    sign: int

    @property
    def steps(self) -> int:
        """G."""
        return len(self.path) - 1


def prefix_digests(blinded: Blinded) -> tuple[bytes, ...]:
    """G digests: d_i = sha256(d_(i-1) + step i's ladder rows, then events, then y_i), from 32 zero bytes (PF-27).

    Step i's rows are those before knot i that no earlier step had, row by row, float32; y_i is float64; little-endian.
    """
    digest, digests = bytes(32), []
    ladder_from = events_from = 0
    for anchor in range(len(blinded.y) - 1):
        ladder_to, events_to = int(blinded.ladder_until[anchor]), int(blinded.events_until[anchor])
        state = sha256(digest)
        state.update(blinded.ladder[ladder_from:ladder_to].data.cast("B") if ladder_to > ladder_from else b"")
        state.update(blinded.events[events_from:events_to].data.cast("B") if events_to > events_from else b"")
        state.update(blinded.y[anchor : anchor + 1].tobytes())
        digest = state.digest()
        digests.append(digest)
        ladder_from, events_from = ladder_to, events_to
    return tuple(digests)


def _column_major(table: F32) -> F32:
    turned = np.ascontiguousarray(table.T, dtype="<f4")
    read_only(turned)
    return turned


def ready(blinded: Blinded) -> Reveal:
    """The window ready to be revealed. Raises IntegrityError `anonymizer_malformed` where the counts do not fit (AN-08)."""
    steps = len(blinded.y) - 1
    for table, columns in ((blinded.ladder, len(blinded.columns)), (blinded.events, 2)):
        if table.dtype != "<f4" or table.ndim != 2 or table.shape[1] != columns or not table.flags.c_contiguous:
            raise IntegrityError(
                "anonymizer_malformed",
                f"the anonymizer shows an array of {table.dtype} and shape {table.shape}",
                expected=f"float32, C-ordered, {columns} columns (AN-09)",
                do="run `blindcast plugins doctor` on the anonymizer",
            )
    for until, table in ((blinded.ladder_until, blinded.ladder), (blinded.events_until, blinded.events)):
        fits = len(until) == steps + 1 and until[0] >= 0 and until[-1] == len(table) and bool((np.diff(until) >= 0).all())
        if not fits:
            raise IntegrityError(
                "anonymizer_malformed",
                f"the anonymizer's until-counts {until.tolist()[:5]}.. do not fit {len(table)} rows and {steps} steps",
                expected="G+1 counts that never fall and end at the number of rows (AN-08)",
                do="run `blindcast plugins doctor` on the anonymizer",
            )
    path = blinded.y.view()
    read_only(path)
    rows = tuple((int(a), int(b), i + 1) for i, (a, b) in enumerate(zip(blinded.ladder_until, blinded.events_until, strict=True)))
    return Reveal(
        blinded.columns,
        _column_major(blinded.ladder),
        _column_major(blinded.events),
        path,
        rows,
        prefix_digests(blinded),
        blinded.sign,
    )
