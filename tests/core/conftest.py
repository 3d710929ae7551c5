"""What the tests of the core share: blinded windows made up on the spot, and clean surroundings."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from blindcast.records import Blinded, read_only


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of whoever runs the tests has a say."""
    for name in [name for name in os.environ if name.startswith("BLINDCAST_") and name != "BLINDCAST_REAL_DATA"]:
        monkeypatch.delenv(name)


def make_blinded(
    steps: int, *, rows: Sequence[int] = (), prints: Sequence[int] = (), columns: tuple[str, ...] = ("t", "a"), sign: int = 1, seed: int = 0
) -> Blinded:
    """A window with `rows[i]` new ladder rows and `prints[i]` new events in step i; the path is drawn."""
    draw = np.random.default_rng(seed)
    rows, prints = list(rows) or [2] * steps, list(prints) or [1] * steps
    ladder = draw.normal(size=(sum(rows), len(columns))).astype(np.float32)
    events = draw.normal(size=(sum(prints), 2)).astype(np.float32)
    y = np.concatenate([[0.0], draw.normal(size=steps).astype(np.float32).astype(np.float64).cumsum()])
    until = [np.concatenate([[0], np.cumsum(counts)]).astype(np.int64) for counts in (rows, prints)]
    for array in (ladder, events, y, *until):
        read_only(array)
    return Blinded(columns, ladder, events, y, until[0], until[1], 1 if sign > 0 else -1)


@pytest.fixture(scope="session")
def blinded() -> Callable[..., Blinded]:
    """`make_blinded`."""
    return make_blinded


@pytest.fixture
def submission(tmp_path: Path) -> Callable[[str], Path]:
    """Write a submission of this text; returns its path."""

    def write(text: str) -> Path:
        path = tmp_path / "submitted.py"
        path.write_text(text, encoding="utf-8")
        return path

    return write
