"""One uid per run, and none that is not clean (isolation.md I-16)."""

from __future__ import annotations

import ctypes
import os
import pwd
import signal
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from blindcast.errors import DeniedError
from blindcast_isolation import slots
from blindcast_isolation.slots import Quarantined, quarantined, take_slot

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it makes what another uid owns")
RANGE = (64100, 64199)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "SETTLE_S", 0.0)


@contextmanager
def process(uid: int) -> Iterator[int]:
    """A process under `uid` that waits to be killed."""
    out, into = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setresuid(uid, uid, uid)
        os.write(into, b"x")
        signal.pause()
        os._exit(0)
    os.read(out, 1)
    os.close(out)
    os.close(into)
    try:
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


@contextmanager
def shared_memory(uid: int) -> Iterator[int]:
    """A SysV segment that `uid` made."""
    libc = ctypes.CDLL(None, use_errno=True)
    os.setresuid(-1, uid, 0)
    made = libc.shmget(0, 4_096, 0o1600)
    os.setresuid(0, 0, 0)
    assert made >= 0
    try:
        yield made
    finally:
        libc.shmctl(made, 0, None)  # IPC_RMID


def test_the_lowest_free_uid_is_taken_and_comes_back(tmp_path: Path) -> None:
    """I-16."""
    first, second = take_slot(RANGE, tmp_path), take_slot(RANGE, tmp_path)
    assert (first.uid, second.uid) == (64100, 64101)
    first.release()
    again = take_slot(RANGE, tmp_path)
    assert again.uid == 64100
    again.release()
    second.release()
    assert quarantined(tmp_path) == []


def test_a_uid_that_somebody_has_is_skipped(tmp_path: Path) -> None:
    """I-16: known to the user database; 0 never."""
    known = max((entry.pw_uid for entry in pwd.getpwall() if 0 < entry.pw_uid < 65_534), default=1)
    slot = take_slot((known, known + 1), tmp_path)
    assert slot.uid == known + 1
    slot.release()
    with pytest.raises(DeniedError):
        take_slot((0, 0), tmp_path)
    assert quarantined(tmp_path) == []


def test_no_slot_left_is_an_error(tmp_path: Path) -> None:
    """I-16: exit 5."""
    slot = take_slot((64150, 64150), tmp_path)
    with pytest.raises(DeniedError) as caught:
        take_slot((64150, 64150), tmp_path)
    assert (caught.value.code, caught.value.exit_code) == ("uid_slots_spent", 5)
    slot.release()


@root_only
def test_a_uid_that_something_runs_under_is_quarantined_before_use(tmp_path: Path) -> None:
    """I-16: no process."""
    with process(64100) as pid:
        slot = take_slot(RANGE, tmp_path)
    assert slot.uid == 64101
    assert quarantined(tmp_path) == [Quarantined(64100, f"process {pid}")]
    slot.release()
    again = take_slot(RANGE, tmp_path)
    assert again.uid == 64101  # the process is gone, the slot stays shut
    again.release()


@root_only
def test_a_uid_that_something_runs_under_is_quarantined_before_release(tmp_path: Path) -> None:
    """I-16."""
    slot = take_slot(RANGE, tmp_path)
    assert slot.leftover() == ""
    with process(slot.uid) as pid:
        assert slot.leftover() == f"process {pid}"
        slot.release()
    assert quarantined(tmp_path) == [Quarantined(64100, f"process {pid}")]


@root_only
def test_what_ends_in_time_quarantines_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """I-16, I-71: the tree of a server that was killed has a moment to be gone."""
    monkeypatch.setattr(slots, "SETTLE_S", 60.0)
    found = iter(["process 7", "process 7", ""])
    monkeypatch.setattr(slots, "leftover", lambda *_: next(found, ""))
    slot = take_slot(RANGE, tmp_path)
    assert slot.uid == 64100
    slot.release()


@root_only
def test_a_sysv_object_spoils_a_slot(tmp_path: Path) -> None:
    """I-16: no SysV object; one that root owns but the uid made counts too."""
    slot = take_slot(RANGE, tmp_path)
    with shared_memory(slot.uid) as made:
        slot.release()
    assert quarantined(tmp_path) == [Quarantined(64100, f"shm {made}")]


@root_only
def test_a_workspace_file_spoils_a_slot_but_for_its_own_session(tmp_path: Path) -> None:
    """I-16."""
    folder, workspace = tmp_path / "slots", tmp_path / "workspace"
    (workspace / "model").mkdir(parents=True)
    file = workspace / "model" / "weights.bin"
    file.touch()
    slot = take_slot(RANGE, folder)
    slot.keep_workspace(workspace)
    os.chown(file, slot.uid, slot.uid)
    assert slot.leftover() == f"file {file}"
    assert slot.leftover(apart=[workspace]) == ""
    slot.release()
    assert quarantined(folder) == [Quarantined(64100, f"file {file}")]


@root_only
def test_a_workspace_of_a_server_that_died_is_found_by_the_next_one(tmp_path: Path) -> None:
    """I-16: the slot's file says where it lies."""
    folder, workspace = tmp_path / "slots", tmp_path / "workspace"
    workspace.mkdir()
    slot = take_slot(RANGE, folder)
    slot.keep_workspace(workspace)
    os.chown(workspace, slot.uid, slot.uid)
    os.close(slot._fd)  # as the kernel does
    after = take_slot(RANGE, folder)
    assert after.uid == 64101
    assert quarantined(folder) == [Quarantined(64100, f"file {workspace}")]
    after.release()


def test_a_workspace_that_is_gone_spoils_nothing(tmp_path: Path) -> None:
    """I-16."""
    slot = take_slot(RANGE, tmp_path)
    slot.keep_workspace(tmp_path / "gone")
    slot.release()
    again = take_slot(RANGE, tmp_path)
    assert (again.uid, quarantined(tmp_path)) == (64100, [])
    again.release()


def test_a_slot_can_be_quarantined_by_its_holder(tmp_path: Path) -> None:
    """I-71: the uid of a stuck child; its reason is printable and one line."""
    held = take_slot(RANGE, tmp_path)
    held.quarantine("stuck: \x1b[31m\nprocess 7")
    held.release()
    assert quarantined(tmp_path) == [Quarantined(64100, "stuck:  process 7")]
    with pytest.raises(DeniedError) as caught:
        take_slot((64100, 64100), tmp_path)
    assert "64100: stuck" in caught.value.what
    (tmp_path / "64100").unlink()
    slot = take_slot(RANGE, tmp_path)
    assert slot.uid == 64100
    slot.release()


def test_the_folder_is_private_whatever_it_was(tmp_path: Path) -> None:
    """I-16: 0700."""
    folder = tmp_path / "slots"
    folder.mkdir(mode=0o777)
    folder.chmod(0o1777)
    take_slot(RANGE, folder).release()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(DeniedError, match="is no folder of uid"):
        take_slot(RANGE, tmp_path / "link")


def test_a_folder_that_is_not_there_quarantines_nothing(tmp_path: Path) -> None:
    """I-90: the doctor asks before any run."""
    assert quarantined(tmp_path / "none") == []
