"""A small task and submissions by their text, for tests that type commands."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

Write = Callable[[str], Path]


@pytest.fixture
def submission(tmp_path: Path) -> Write:
    """Write a submission of this text; returns its path."""

    def write(text: str) -> Path:
        path = tmp_path / "submitted.py"
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    return write
