"""Hostile text made safe to show."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blindcast.printable import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("a\x1b[31;1mred\x1b[0m", "ared"),
        ("a\x1b]0;title\x07b\x1b]8;;http://x\x1b\\c", "abc"),
        ("a\x9b2Jb", "ab"),
        ("a\rb\bc\x00d", "abcd"),
        ("a\u202eb\u2066c\u200bd", "abcd"),
        ("a\x1bP1;2|x\x1b\\b", "ab"),
        ("tail\x1b[", "tail"),
    ],
)
def test_what_could_move_hide_or_reorder_is_gone(text: str, shown: str) -> None:
    """I-59."""
    assert printable(text) == shown


@given(st.text())
def test_no_control_character_is_left(text: str) -> None:
    """I-59."""
    assert all(c in "\t\n" or unicodedata.category(c) not in ("Cc", "Cs") for c in printable(text))
