"""The journal: what a killed run leaves behind (grading.md G-27, DESIGN 7)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blindcast.journal import Journal, Sealed, read_journal

LABELS = (b"set:", b"keep:", b"refused:not_finite")


def written(path: Path, links: int) -> list[int]:
    """`links` links of different sizes; the file's size after each."""
    journal = Journal(path)
    sizes = [0]
    for k in range(links):
        curve = np.arange(k % 4 + 1, dtype="<f8") / 4
        journal.store(k // 3, k % 3, LABELS[k % 3], curve.tobytes(), bytes([k]) * 32, bytes([k + 100]) * 32)
        sizes.append(path.stat().st_size)
    journal.close()
    return sizes


def test_links_come_back_as_they_were_sealed(tmp_path: Path) -> None:
    written(tmp_path / "j", 5)
    links = list(read_journal(tmp_path / "j"))
    assert [(s.ordinal, s.anchor, s.label) for s in links] == [
        (0, 0, "set:"), (0, 1, "keep:"), (0, 2, "refused:not_finite"), (1, 0, "set:"), (1, 1, "keep:"),
    ]  # fmt: skip
    assert [s.curve.tolist() for s in links[:3]] == [[0.0], [0.0, 0.25], [0.0, 0.25, 0.5]]
    assert [(s.prefix, s.link) for s in links] == [(bytes([k]) * 32, bytes([k + 100]) * 32) for k in range(5)]


@pytest.mark.parametrize(("label", "kind", "code"), [("set:", "set", None), ("keep:", "keep", None), ("refused:died", "refused", "died")])
def test_a_label_is_a_kind_and_a_code(label: str, kind: str, code: str | None) -> None:
    """G-27."""
    sealed = Sealed(0, 0, label, np.zeros(1), b"", b"")
    assert (sealed.kind, sealed.code) == (kind, code)


@settings(deadline=None, max_examples=60)
@given(cut=st.integers(0, 10_000))
def test_a_torn_tail_is_left_out_and_nothing_else(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    """DESIGN 7: cut anywhere, every whole record before the cut is there."""
    path = tmp_path_factory.mktemp("torn") / "j"
    sizes = written(path, 6)
    cut %= sizes[-1] + 1
    path.write_bytes(path.read_bytes()[:cut])
    assert len(list(read_journal(path))) == sum(size <= cut for size in sizes[1:])


def test_a_link_is_on_file_before_the_next_is_asked_for(tmp_path: Path) -> None:
    """G-27: nothing waits in a buffer of this process."""
    journal = Journal(tmp_path / "j")
    journal.store(0, 0, b"set:", bytes(8), bytes(32), bytes(32))
    assert len(list(read_journal(tmp_path / "j"))) == 1
    journal.close()
    journal.close()


def test_a_journal_is_never_written_over(tmp_path: Path) -> None:
    written(tmp_path / "j", 1)
    with pytest.raises(FileExistsError):
        Journal(tmp_path / "j")


def test_a_full_disk_is_an_error() -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("needs /dev/full")
    journal = Journal.__new__(Journal)
    with full.open("wb", buffering=0) as file:
        journal._fd = file.fileno()
        with pytest.raises(OSError, match="space"):
            journal.store(0, 0, b"set:", bytes(8), bytes(32), bytes(32))
        journal._fd = -1
