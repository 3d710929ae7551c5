"""A workspace is counted, and removed, whatever hostile code made of it (isolation.md I-86)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from blindcast.workspace import MAX_DEPTH, MAX_NAMES, Holding, Room, holding, is_over, remove

MIB = 1 << 20


def nested(folder: Path, depth: int) -> None:
    """Folders within folders, beyond any path's length."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(depth):
        os.mkdir("d", 0o700, dir_fd=fd)
        inner = os.open("d", os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
        os.close(fd)
        fd = inner
    os.close(fd)


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "workspace"
    folder.mkdir()
    yield folder
    if folder.exists():
        remove(folder)


def test_blocks_and_names_are_counted_and_links_are_not_followed(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").write_bytes(bytes(MIB))
    (workspace / "in").mkdir()
    (workspace / "in" / "file").write_bytes(bytes(8_192))
    (workspace / "link").symlink_to(tmp_path / "outside")
    (workspace / "folder").symlink_to(tmp_path)
    found = holding(workspace)
    assert found.names == 4
    assert set(found.files) == {"in/file"}
    assert found.disk_bytes < MIB
    assert found.is_whole
    assert not is_over(found, 8)


def test_folders_as_deep_as_is_allowed_are_counted(workspace: Path) -> None:
    nested(workspace, MAX_DEPTH - 1)
    assert holding(workspace).is_whole


def test_folders_nested_beyond_any_recursion_are_too_many(workspace: Path) -> None:
    """No count of theirs can be had within bounds, so they are over."""
    nested(workspace, 3_000)
    found = holding(workspace)
    assert not found.is_whole
    assert is_over(found, 512)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every folder")
@pytest.mark.parametrize("mode", [0o300, 0o000, 0o400])
def test_a_folder_that_hides_what_it_holds_is_over(workspace: Path, mode: int) -> None:
    """Mode 0300: its files can be made and written, and not be listed."""
    (workspace / "hidden").mkdir()
    (workspace / "hidden" / "file").write_bytes(bytes(MIB))
    (workspace / "hidden").chmod(mode)
    assert is_over(holding(workspace), 512)


def test_too_many_names_are_over(workspace: Path) -> None:
    """I-86: 10,000."""
    assert is_over(Holding(0, MAX_NAMES + 1, {}), 512)
    assert not is_over(Holding(0, MAX_NAMES, {}), 512)


def test_changed_paths_can_be_shown_and_written_as_json(workspace: Path) -> None:
    """I-59: a name is the child's text."""
    before = holding(workspace)
    for name in (b"bad\xff\xfe", b"esc\x1b[31mred", "rlo\u202egnp.exe".encode()):
        (Path(os.fsdecode(os.fsencode(workspace) + b"/" + name))).write_bytes(b"x")
    changed = holding(workspace).changed(before)
    assert sorted(path for path, _ in changed) == ["bad", "escred", "rlognp.exe"]
    assert all(path.encode() for path, _ in changed)


@pytest.mark.parametrize(("gone_mib", "shown_mib", "is_spent"), [(71, 0, False), (73, 0, True), (100, 40, False), (120, 40, True)])
def test_what_has_no_name_any_more_is_missed_on_the_disk(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, gone_mib: int, shown_mib: int, is_spent: bool
) -> None:
    """Files that are open or mapped and unlinked: the limit, 8 MiB here, and 64 more."""
    free = 200 * MIB
    monkeypatch.setattr("blindcast.workspace._free", lambda _folder: free - gone_mib * MIB)
    assert Room(free, 0).is_spent(workspace, Holding(shown_mib * MIB, 1, {}), 8) is is_spent


def test_others_who_write_to_a_large_disk_are_not_taken_for_the_code(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to a quarter of what was free."""
    free = 100_000 * MIB
    monkeypatch.setattr("blindcast.workspace._free", lambda _folder: free - 20_000 * MIB)
    assert not Room(free, 0).is_spent(workspace, Holding(0, 0, {}), 8)


def test_what_was_made_of_it_is_removed(workspace: Path, tmp_path: Path) -> None:
    """I-86: gone with the session, whatever its modes and depth; nothing behind a link is."""
    (tmp_path / "outside").write_text("stays")
    (workspace / "link").symlink_to(tmp_path)
    nested(workspace, 3_000)
    for mode in (0o300, 0o000, 0o500):
        inner = workspace / f"hidden{mode}"
        (inner / "more").mkdir(parents=True)
        (inner / "more" / "file").write_text("x")
        (inner / "more").chmod(mode)
        inner.chmod(mode)
    remove(workspace)
    assert not workspace.exists()
    assert (tmp_path / "outside").read_text() == "stays"
