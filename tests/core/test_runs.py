"""Runs on disk (DESIGN 7 and 8)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from blindcast.aside import Aside, write_json
from blindcast.errors import DataError, UsageError
from blindcast.journal import Journal
from blindcast.runs import list_runs, open_run

FIRST, SECOND, THIRD = "20260101T000000Z-aaaaaa", "20260102T000000Z-bbbbbb", "20260103T000000Z-cccccc"


def whole(home: Path, run_id: str, status: str = "success", reason: str | None = None) -> Path:
    folder = home / "runs" / run_id
    folder.mkdir(parents=True)
    write_json(folder / "run.json", {"run_id": run_id})
    write_json(folder / "state.json", {"status": status, "reason": reason})
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for run_id in (SECOND, FIRST):
        whole(tmp_path, run_id)
    return tmp_path


def test_runs_are_listed_oldest_first(home: Path) -> None:
    (home / "runs" / "notes").mkdir()
    (home / "runs" / "20260101T000000Z-AAAAAA").mkdir()
    (home / "runs" / f"{THIRD}.txt").write_text("no run")
    assert [(run.run_id, run.status, run.is_whole) for run in list_runs(home)] == [(FIRST, "success", True), (SECOND, "success", True)]


def test_a_home_without_runs_lists_none(tmp_path: Path) -> None:
    assert list_runs(tmp_path) == ()


def test_runs_of_one_second_go_by_when_they_were_written(tmp_path: Path) -> None:
    """Six random digits order nothing."""
    for place, digits in enumerate(("ffffff", "000000", "888888")):
        os.utime(whole(tmp_path, f"20260101T000000Z-{digits}"), ns=(10**18 + place, 10**18 + place))
    assert [run.run_id[-6:] for run in list_runs(tmp_path)] == ["ffffff", "000000", "888888"]
    assert open_run(tmp_path, "last").run_id[-6:] == "888888"


def test_a_run_is_named_by_its_id_its_digits_last_or_a_path(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DESIGN 8."""
    for name in (SECOND, "bbbbbb", "last", str(home / "runs" / SECOND)):
        run = open_run(home, name)
        assert (run.run_id, run.folder) == (SECOND, home / "runs" / SECOND)
    monkeypatch.chdir(home / "runs")
    assert open_run(home / "elsewhere", f"./{FIRST}").run_id == FIRST
    assert open_run(home / "elsewhere", FIRST).run_id == FIRST
    monkeypatch.chdir(FIRST)
    assert open_run(home / "elsewhere", ".").run_id == FIRST


@pytest.mark.parametrize("name", ["dddddd", "aaaaa", "", "last2", "/nowhere/at/all", THIRD])
def test_an_unknown_run_is_told(home: Path, name: str) -> None:
    with pytest.raises(DataError) as caught:
        open_run(home, name)
    assert (caught.value.code, caught.value.exit_code) == ("run_unknown", 3)


def test_a_run_that_is_nearly_meant_is_suggested(home: Path) -> None:
    with pytest.raises(DataError) as caught:
        open_run(home, "20260101T000000Z-aaaaab")
    assert FIRST in caught.value.do


def test_last_of_nothing_is_unknown_and_says_how_to_begin(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        open_run(tmp_path, "last")
    assert "blindcast demo" in caught.value.do


def test_a_folder_that_is_no_run_is_unknown(home: Path) -> None:
    with pytest.raises(DataError) as caught:
        open_run(home, str(home))
    assert caught.value.code == "run_unknown"


def test_digits_that_two_runs_share_are_ambiguous(home: Path) -> None:
    whole(home, "20260104T000000Z-aaaaaa")
    with pytest.raises(UsageError) as caught:
        open_run(home, "aaaaaa")
    assert (caught.value.code, caught.value.exit_code) == ("run_ambiguous", 2)
    assert FIRST in caught.value.do
    assert open_run(home, FIRST).run_id == FIRST


@pytest.mark.parametrize("status", ["success", "failed", "cancelled"])
def test_state_json_says_how_a_run_ended(tmp_path: Path, status: str) -> None:
    whole(tmp_path, FIRST, status, "run_deadline")
    run = open_run(tmp_path, FIRST)
    assert (run.status, run.reason, run.is_whole) == (status, "run_deadline", True)


@pytest.mark.parametrize("text", [None, "", "{", "[]", '{"status": "fine"}', '{"status": ["success"]}'])
def test_a_run_without_a_readable_state_is_interrupted(tmp_path: Path, text: str | None) -> None:
    """DESIGN 7: state.json is written last."""
    state = whole(tmp_path, FIRST) / "state.json"
    state.unlink()
    if text is not None:
        state.write_text(text)
    run = open_run(tmp_path, FIRST)
    assert (run.status, run.is_whole) == ("interrupted", False)


def test_a_run_at_work_is_shown_as_running_and_with_what_is_sealed(tmp_path: Path) -> None:
    """DESIGN 7."""
    aside = Aside.begin(tmp_path, THIRD, {"split": "train"})
    journal = Journal(aside.folder / "journal.bin")
    for window, anchor in ((0, 0), (0, 1), (1, 0)):
        journal.store(window, anchor, b"set:", bytes(8), bytes(32), bytes(32))
    (run,) = list_runs(tmp_path)
    assert (run.run_id, run.status, run.facts, run.sealed()) == (THIRD, "running", {"split": "train"}, (2, 3))
    journal.close()
    aside.release()
    assert open_run(tmp_path, "last").status == "interrupted"


HOLDER = """
import sys
from pathlib import Path
from blindcast.aside import Aside
from blindcast.journal import Journal
aside = Aside.begin(Path(sys.argv[1]), sys.argv[2], {"split": "test"})
Journal(aside.folder / "journal.bin").store(0, 0, b"set:", bytes(8), bytes(32), bytes(32))
print("held", flush=True)
sys.stdin.read()
"""


def test_a_killed_run_is_shown_as_interrupted_with_what_was_sealed(tmp_path: Path) -> None:
    """DESIGN 7: SIGKILL of the parent leaves a journal and no lock."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path), THIRD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    assert open_run(tmp_path, THIRD).status == "running"
    holder.kill()
    holder.communicate()
    run = open_run(tmp_path, "cccccc")
    assert (run.status, run.is_whole, run.sealed(), run.facts) == ("interrupted", False, (1, 1), {"split": "test"})


def test_a_run_that_is_only_begun_has_sealed_nothing(tmp_path: Path) -> None:
    aside = Aside.begin(tmp_path, THIRD, {})
    assert open_run(tmp_path, "last").sealed() == (0, 0)
    aside.release()
