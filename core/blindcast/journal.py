"""The journal: every sealed link, on disk before anything more is revealed. What a killed run leaves behind."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from attrs import frozen

from blindcast.records import F64

__all__ = ["Journal", "Sealed", "read_journal"]

_HEAD = struct.Struct("<IIBH")  # ordinal, anchor, bytes of the label, values of the curve


@frozen(eq=False)
class Sealed:
    """One link: where, `set:`, `keep:` or `refused:<code>`, the standing curve F64[G - anchor], prefix digest and link."""

    ordinal: int
    anchor: int
    label: str
    curve: F64
    prefix: bytes
    link: bytes

    @property
    def kind(self) -> str:
        """set, keep or refused."""
        return self.label.partition(":")[0]

    @property
    def code(self) -> str | None:
        """The refusal's code (G-23)."""
        return self.label.partition(":")[2] or None


class Journal:
    """An append-only file of links. One write a link, so a process that dies leaves whole records and at most one torn."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def store(self, ordinal: int, anchor: int, label: bytes, curve: bytes, prefix: bytes, link: bytes) -> None:
        """Append one link. Raises OSError when the disk is full."""
        record = _HEAD.pack(ordinal, anchor, len(label), len(curve) >> 3) + label + curve + prefix + link
        if os.write(self._fd, record) != len(record):
            raise OSError("the journal could not be written to its end")

    def close(self) -> None:
        """Force what was written to disk and close."""
        if self._fd >= 0:
            os.fsync(self._fd)
            os.close(self._fd)
            self._fd = -1


def read_journal(path: Path) -> Iterator[Sealed]:
    """Every whole record in order; a torn one at the end is left out."""
    with path.open("rb") as file:
        while len(head := file.read(_HEAD.size)) == _HEAD.size:
            ordinal, anchor, label_bytes, values = _HEAD.unpack(head)
            size = label_bytes + 8 * values + 64
            body = file.read(size)
            if len(body) < size:
                return
            curve = np.frombuffer(body, dtype="<f8", count=values, offset=label_bytes)
            yield Sealed(ordinal, anchor, body[:label_bytes].decode(), curve, body[-64:-32], body[-32:])
