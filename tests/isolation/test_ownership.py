"""A workspace is handed over whole, however its code nested it (isolation.md I-16, I-17)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from blindcast.workspace import remove
from blindcast_isolation.leftovers import files_of
from blindcast_isolation.ownership import everything, hand

DEPTH = 3_000


@pytest.fixture
def deep(tmp_path: Path) -> Iterator[Path]:
    """A workspace with a file at the end of more folders than any recursion has frames, and a link out of it."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    (tmp_path / "outside").mkdir()
    (folder / "out").symlink_to(tmp_path / "outside")
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(DEPTH):
        os.mkdir("d", 0o700, dir_fd=fd)
        inner = os.open("d", os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
        os.close(fd)
        fd = inner
    os.close(os.open("end", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=fd))
    os.close(fd)
    yield folder
    remove(folder)


def test_everything_is_seen_once_with_few_descriptors(deep: Path) -> None:
    top, before = os.open(deep, os.O_RDONLY | os.O_DIRECTORY), len(os.listdir("/proc/self/fd"))
    names = []
    for _, place, name, _ in everything(top):
        names.append((place.count("/"), name))
        assert len(os.listdir("/proc/self/fd")) <= before + 2
    os.close(top)
    assert len(names) == DEPTH + 2
    assert (DEPTH, "end") in names
    assert (0, "out") in names


def test_a_folder_that_is_moved_on_the_way_back_is_an_error(tmp_path: Path) -> None:
    """`..` would lead elsewhere."""
    (tmp_path / "workspace" / "a" / "b").mkdir(parents=True)
    (tmp_path / "workspace" / "a" / "b" / "file").touch()
    top = os.open(tmp_path / "workspace", os.O_RDONLY | os.O_DIRECTORY)
    walk = everything(top)
    assert [next(walk)[2] for _ in range(3)] == ["a", "b", "file"]
    (tmp_path / "workspace" / "a" / "b").rename(tmp_path / "b")
    with pytest.raises(OSError, match="was moved"):
        next(walk)
    os.close(top)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_all_of_it_is_handed_and_nothing_behind_a_link(deep: Path, tmp_path: Path) -> None:
    uid = 61_998
    hand(deep, uid)
    assert sum(1 for _ in files_of(uid, deep)) == DEPTH + 3
    assert (tmp_path / "outside").stat().st_uid == 0
    hand(deep, 0)
    assert list(files_of(uid, deep)) == []
