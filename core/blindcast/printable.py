"""Hostile text made safe to show: no control characters, no escape sequences, no bidirectional marks (isolation.md I-59)."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["printable"]

_ESCAPES: Final = re.compile(
    r"(?:\x1b\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"  # operating system commands: titles, links
    r"|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])[^\x1b\x9c]*(?:\x1b\\|\x9c)?"  # device control, private messages
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # colours, cursor
    r"|\x1b[ -/]*[0-~]?"
)
_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but tab and line feed, C1
    "\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\u2028\u2029"  # marks, overrides, isolates, zero width, separators
    "\ud800-\udfff\ufff9-\ufffb\U000e0000-\U000e007f]"  # lone surrogates, interlinear marks, tags
)


def printable(text: str) -> str:
    r"""The text without what could move a cursor, hide or reorder; tab and line feed stay.

    >>> printable("a\x1b[31mred\x1b[0m\u202eb\r\n")
    'aredb\n'
    """
    return _UNSEEN.sub("", _ESCAPES.sub("", text))
