"""Text in columns, for people and for grep (F-01)."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["columns"]


def columns(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A header and rows, each column as wide as its widest cell; no boxes.

    >>> print(columns(("name", "ms"), [("flat", 1.5)]))
    name  ms
    flat  1.5
    """
    cells = [list(header), *[[str(cell) for cell in row] for row in rows]]
    widths = [max(len(row[index]) for row in cells) for index in range(len(header))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells)
