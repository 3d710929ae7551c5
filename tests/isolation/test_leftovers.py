"""What there is of a uid."""

from __future__ import annotations

from pathlib import Path

import pytest

from blindcast_isolation.leftovers import files_of, leftover, processes_of, sysv_of

NOBODY = 4_000_000_001
ROWS = {
    "shm": ("key shmid perms size cpid lpid nattch uid gid cuid cgid atime dtime ctime rss swap", "0 3 600 4096 9 9 0 {} 0 {} 0 0 0 0 0 0"),
    "msg": ("key msqid perms cbytes qnum lspid lrpid uid gid cuid cgid stime rtime ctime", "0 4 600 0 0 0 0 {} 0 {} 0 0 0 0"),
    "sem": ("key semid perms nsems uid gid cuid cgid otime ctime", "0 5 600 1 {} 0 {} 0 0 0"),
}


def proc(tmp_path: Path, **sysv: str) -> Path:
    (tmp_path / "sysvipc").mkdir()
    for kind, text in sysv.items():
        (tmp_path / "sysvipc" / kind).write_text(text)
    return tmp_path


@pytest.mark.parametrize("kind", ["shm", "msg", "sem"])
@pytest.mark.parametrize("uids", [(64100, 64100), (64100, 0), (0, 64100)])
def test_a_sysv_object_is_found_by_owner_and_by_maker(tmp_path: Path, kind: str, uids: tuple[int, int]) -> None:
    """I-16: a child can give its object away, but not who made it."""
    head, row = ROWS[kind]
    found = proc(tmp_path, **{kind: f"{head}\n{row.format(*uids)}\n"})
    number = {"shm": 3, "msg": 4, "sem": 5}[kind]
    assert list(sysv_of(64100, found)) == [f"{kind} {number}"]
    assert leftover(64100, proc=found) == f"{kind} {number}"
    assert list(sysv_of(64101, found)) == []


def test_a_kernel_without_sysv_has_no_such_objects(tmp_path: Path) -> None:
    assert list(sysv_of(64100, tmp_path)) == []
    assert list(sysv_of(64100, proc(tmp_path, shm=""))) == []


def test_the_dead_are_no_processes(tmp_path: Path) -> None:
    """I-16: nobody reaped them yet, but they hold nothing."""
    uid = tmp_path.stat().st_uid
    for pid, state in (("7", "Z"), ("8", "X"), ("9", "S"), ("10", "D")):
        (tmp_path / pid).mkdir()
        (tmp_path / pid / "stat").write_text(f"{pid} (a) Z (b)) {state} 1 1\n")
    (tmp_path / "11").mkdir()  # ended while we looked
    (tmp_path / "self").mkdir()
    assert sorted(processes_of(uid, tmp_path)) == [9, 10]


def test_files_are_found_without_following_links(tmp_path: Path) -> None:
    """I-16, I-17."""
    uid = tmp_path.stat().st_uid
    workspace, other = tmp_path / "workspace", tmp_path / "other"
    workspace.mkdir()
    other.mkdir()
    (other / "secret").touch()
    (workspace / "link").symlink_to(other)
    (workspace / "file").touch()
    assert sorted(files_of(uid, workspace)) == [str(workspace), str(workspace / "file"), str(workspace / "link")]
    assert list(files_of(NOBODY, workspace)) == []
    assert list(files_of(uid, tmp_path / "none")) == []
