"""What a child prints is drained, bounded and never shown raw."""

from __future__ import annotations

import os

from blindcast.output import KEPT_BYTES, Output


def drained(data: bytes, limit_bytes: int) -> tuple[Output, list[str]]:
    out, into = os.pipe()
    over: list[str] = []
    output = Output(out, limit_bytes, lambda: over.append("over"))
    with os.fdopen(into, "wb") as pipe:
        pipe.write(data)
    output.join(5.0)
    return output, over


def test_a_little_is_kept_whole_and_printable() -> None:
    """I-59."""
    output, over = drained(b"caf\xc3\xa9 \x1b[31mred\x1b[0m \xff\n", 1 << 20)
    assert output.text() == "caf\u00e9 red \ufffd\n"
    assert over == []


def test_the_first_and_the_last_32_kib_are_kept() -> None:
    """Section 8: stdout + stderr."""
    output, over = drained(b"a" * KEPT_BYTES + b"b" * 1_000 + b"c" * KEPT_BYTES, 1 << 20)
    assert output.text() == "a" * KEPT_BYTES + "\n... 1000 bytes left out ...\n" + "c" * KEPT_BYTES
    assert over == []


def test_past_the_limit_it_tells_once_and_reads_on() -> None:
    """I-73: `output`."""
    output, over = drained(b"x" * 3_000_000, 1 << 20)
    assert over == ["over"]
    assert output.is_over
