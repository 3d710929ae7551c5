"""What is taken in as a submission, and under which digest (isolation.md I-24, frontends.md FE-36 to FE-38, FE-29)."""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blindcast import submission as submissions
from blindcast.errors import DataError
from blindcast.submission import MAX_BYTES, MAX_FILE_BYTES, Submission, digest, judge, locate, take

CODE = b"class Predictor:\n    def predict(self, view):\n        return 0.0\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "mine"
    (made / "model").mkdir(parents=True)
    (made / "predictor.py").write_bytes(CODE)
    (made / "model" / "weights.bin").write_bytes(b"\0w")
    return made


def refused(path: Path, into: Path) -> str:
    """Why it was refused; nothing of it is left."""
    with pytest.raises(DataError) as caught:
        take(path, into)
    assert (caught.value.code, caught.value.exit_code) == ("submission_refused", 3)
    assert not into.exists() or not list(into.iterdir())
    return str(caught.value.detail["why"])


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["predictor.py"], (None, None)),
        (["predictor.py", "model/w.bin"], (None, None)),
        (["m/predictor.py", "m/w.bin"], (None, "m")),
        (["m/", "m/predictor.py", "m/x/"], (None, "m")),  # folder entries are ignored
        (["m/predictor.py", "n/w.bin"], ("no_predictor", None)),
        (["m/predictor.py", "w.bin"], ("no_predictor", None)),
        (["a/b/predictor.py"], ("no_predictor", None)),
        (["Predictor.py"], ("no_predictor", None)),
        ([], ("no_predictor", None)),
        (["m/predictor.py", "predictor.py"], (None, None)),
        (["predictor.py", "a", "A"], ("duplicate", None)),
        (["predictor.py", "a", "a"], ("duplicate", None)),
        (["predictor.py", "stra\u00dfe", "STRASSE"], ("duplicate", None)),
        (["predictor.py", "a", "a/b"], ("duplicate", None)),
        (["predictor.py", "A/b/c", "a/B"], ("duplicate", None)),
        (["predictor.py", *map(str, range(199))], (None, None)),
        (["predictor.py", *map(str, range(200))], ("too_many", None)),
        (["predictor.py", "a/b/c/d/e/f/g/h"], (None, None)),
        (["predictor.py", "n" * 200], (None, None)),
        (["predictor.py", "\u00e9" * 100], (None, None)),
        (["predictor.py", "c:"], ("bad_path", None)),
        (["predictor.py", "cc:x"], (None, None)),
    ],
)
def test_names_are_judged_as_they_are_stored(names: list[str], expected: tuple[str | None, str | None]) -> None:
    """FE-36, FE-37."""
    assert judge(names) == expected


@pytest.mark.parametrize(
    "name",
    [
        "", "n" * 201, "\u00e9" * 101, "/a", "C:a", "c:/a", "a\\b", "a\nb", "a\0b", "a\x7fb", "a\x85b", "a//b", "./a", "a/.", "../a",
        "a/../b", "..", ".", "a/b/c/d/e/f/g/h/i", "e\u0301", "\udcff", "a/\ud800",
    ],
)  # fmt: skip
def test_a_name_that_is_no_plain_relative_path_is_refused(name: str) -> None:
    """FE-37: empty, long, absolute, a drive, a backslash, a control, odd segments, deep, not UTF-8, not NFC."""
    assert judge(["predictor.py", name]) == ("bad_path", None)


def test_the_digest_is_over_names_and_contents_in_byte_order() -> None:
    """FE-38: name, NUL, hex sha256 of the content, LF."""
    files = {"\u00e9.bin": b"2", "predictor.py": CODE, "Z": b"1"}
    lines = b"".join(
        name.encode() + b"\0" + sha256(files[name]).hexdigest().encode() + b"\n" for name in ("Z", "predictor.py", "\u00e9.bin")
    )
    assert digest(files) == sha256(lines).hexdigest()


@settings(deadline=None)
@given(st.dictionaries(st.text(st.characters(codec="utf-8"), min_size=1), st.binary(max_size=8), max_size=6), st.randoms())
def test_the_digest_does_not_know_the_order_of_files(files: dict[str, bytes], chance: random.Random) -> None:
    """FE-38."""
    items = list(files.items())
    chance.shuffle(items)
    assert digest(dict(items)) == digest(files)


def test_a_file_and_a_folder_of_equal_content_have_one_digest(tmp_path: Path) -> None:
    """FE-38: text, zip and folder; the file's own name has no say."""
    (tmp_path / "best.py").write_bytes(CODE)
    (tmp_path / "f").mkdir()
    (tmp_path / "f" / "predictor.py").write_bytes(CODE)
    (tmp_path / "g" / "top").mkdir(parents=True)
    (tmp_path / "g" / "top" / "predictor.py").write_bytes(CODE)
    taken = [take(tmp_path / name, tmp_path / f"into-{name}").sha256 for name in ("best.py", "f", "g")]
    assert taken == [digest({"predictor.py": CODE})] * 3


def test_a_folder_is_copied_and_hashed(folder: Path, tmp_path: Path) -> None:
    """I-24."""
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "predictor.cpython-311.pyc").write_bytes(b"\0")
    (folder / "model" / "__pycache__").symlink_to("/")
    taken = take(folder, tmp_path / "into")
    assert taken.names == ("model/weights.bin", "predictor.py")
    assert taken.sha256 == digest({"predictor.py": CODE, "model/weights.bin": b"\0w"})
    assert (taken.folder / "predictor.py").read_bytes() == CODE
    assert sorted(p.name for p in taken.folder.rglob("*")) == ["model", "predictor.py", "weights.bin"]


def test_nothing_is_compiled(tmp_path: Path) -> None:
    """I-24: what does not compile fails in the child, in no place before."""
    (tmp_path / "p.py").write_bytes(b"\xff\0 def ((((\n")
    assert take(tmp_path / "p.py", tmp_path / "into").names == ("predictor.py",)


def link_file(folder: Path) -> None:
    (folder / "x").symlink_to("predictor.py")


def link_out(folder: Path) -> None:
    (folder / "x").symlink_to("/etc/hostname")


def link_nowhere(folder: Path) -> None:
    (folder / "x").symlink_to("nowhere")


def link_folder(folder: Path) -> None:
    (folder / "x").symlink_to("model")


def fifo(folder: Path) -> None:
    os.mkfifo(folder / "x")


def listening(folder: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        old = Path.cwd()
        os.chdir(folder)  # a socket's path is short
        try:
            listener.bind("x")
        finally:
            os.chdir(old)


def null_device(folder: Path) -> None:
    (folder / "predictor.py").unlink()
    (folder / "predictor.py").symlink_to("/dev/null")


@pytest.mark.parametrize("bend", [link_file, link_out, link_nowhere, link_folder, fifo, listening, null_device])
def test_only_regular_files_and_folders_are_taken(folder: Path, tmp_path: Path, bend: Callable[[Path], None]) -> None:
    """I-24: links and devices are refused, and a FIFO hangs nothing."""
    bend(folder)
    assert refused(folder, tmp_path / "into") == "bad_kind"


def test_a_submission_is_no_link_itself(folder: Path, tmp_path: Path) -> None:
    """I-24."""
    (tmp_path / "a").symlink_to(folder)
    (tmp_path / "b.py").symlink_to(folder / "predictor.py")
    os.mkfifo(tmp_path / "c.py")
    assert [refused(tmp_path / name, tmp_path / "into") for name in ("a", "b.py", "c.py")] == ["bad_kind"] * 3
    assert refused(Path("/dev/zero"), tmp_path / "into") == "bad_kind"


def test_a_submission_that_is_not_there_is_told(tmp_path: Path) -> None:
    assert refused(tmp_path / "none.py", tmp_path / "into") == "missing"


def test_a_file_has_a_limit(tmp_path: Path) -> None:
    """I-24: one `.py` up to 1 MiB."""
    for size, name in ((MAX_FILE_BYTES, "most.py"), (MAX_FILE_BYTES + 1, "more.py")):
        (tmp_path / name).write_bytes(b"#" * size)
    take(tmp_path / "most.py", tmp_path / "into")
    assert refused(tmp_path / "more.py", tmp_path / "other") == "too_large"


def test_a_folder_has_a_limit(folder: Path, tmp_path: Path) -> None:
    """I-24: 64 MiB over all files, whatever each one has."""
    for name in ("a", "b"):
        with (folder / name).open("wb") as file:
            file.truncate(MAX_BYTES // 2)
    assert refused(folder, tmp_path / "into") == "too_large"


def test_a_folder_has_at_most_200_files(folder: Path, tmp_path: Path) -> None:
    """I-24."""
    for k in range(199):
        (folder / f"{k}.bin").write_bytes(b"")
    assert refused(folder, tmp_path / "into") == "too_many"


@pytest.mark.parametrize("name", ["a\\b", "a\nb", "e\u0301", "a/b/c/d/e/f/g/h/i", os.fsdecode(b"\xff")])
def test_a_folder_with_a_bad_name_is_refused(folder: Path, tmp_path: Path, name: str) -> None:
    """I-24, FE-37."""
    place = folder / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(b"")
    assert refused(folder, tmp_path / "into") == "bad_path"


@pytest.mark.parametrize("depth", [8, 9])
def test_a_folder_is_at_most_8_levels_deep(folder: Path, tmp_path: Path, depth: int) -> None:
    """I-24: a file's own name is the last level; empty folders count as what they could hold."""
    (folder / Path(*"abcdefghi"[: depth - 1])).mkdir(parents=True)
    (folder / Path(*"abcdefghi"[:depth])).touch()
    if depth == 8:
        assert "a/b/c/d/e/f/g/h" in take(folder, tmp_path / "into").names
    else:
        assert refused(folder, tmp_path / "into") == "bad_path"


def test_empty_folders_are_bounded_and_not_copied(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """I-24: a tree of folders without files ends too."""
    monkeypatch.setattr(submissions, "MAX_FOLDERS", 20)
    for k in range(19):  # and model
        (folder / f"empty-{k}").mkdir()
    assert take(folder, tmp_path / "into").names == ("model/weights.bin", "predictor.py")
    assert not list((tmp_path / "into").glob("empty-*"))
    (folder / "one-more").mkdir()
    assert refused(folder, tmp_path / "other") == "too_many"


def test_exactly_200_files_and_64_mib_are_taken(folder: Path, tmp_path: Path) -> None:
    """I-24."""
    for k in range(197):
        (folder / f"{k}.bin").touch()
    rest = MAX_BYTES - len(CODE) - 2
    with (folder / "zeros").open("wb") as file:
        file.truncate(rest)
    assert len(take(folder, tmp_path / "into").names) == 200
    with (folder / "zeros").open("wb") as file:
        file.truncate(rest + 1)
    assert refused(folder, tmp_path / "other") == "too_large"


def become_link(place: Path) -> None:
    place.rename(place.with_name("moved"))
    place.symlink_to(place.parent.parent / "secret")


def become_fifo(place: Path) -> None:
    place.rename(place.with_name("moved"))
    os.mkfifo(place)


def vanish(place: Path) -> None:
    place.rename(place.parent.parent / "moved")


@pytest.mark.parametrize("name", ["model", "predictor.py"])
@pytest.mark.parametrize(("change", "why"), [(become_link, "bad_kind"), (become_fifo, "bad_kind"), (vanish, "missing")])
def test_a_name_that_changes_between_the_look_and_the_opening_is_refused(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, change: Callable[[Path], None], why: str
) -> None:
    """I-17: whatever stands there is opened without following, and looked at again."""
    (tmp_path / "secret").mkdir()
    looked = os.stat

    def stat_then_change(path: str, **how: Any) -> os.stat_result:
        found = looked(path, **how)
        if path == name and how.get("dir_fd") is not None:
            change(folder / name)
        return found

    monkeypatch.setattr(os, "stat", stat_then_change)
    with pytest.raises(DataError) as caught:
        take(folder, tmp_path / "into")
    monkeypatch.undo()
    assert caught.value.detail["why"] == why
    assert not (tmp_path / "into").exists()


def test_a_folder_that_is_swapped_while_it_is_read_is_read_to_its_end(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I-17: names are opened beside the open folder, not by path."""
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "weights.bin").write_bytes(b"truth")
    opened = os.open

    def open_then_swap(path: str, flags: int, *rest: Any, **how: Any) -> int:
        fd = opened(path, flags, *rest, **how)
        if path == "model":
            become_link(folder / "model")
        return fd

    monkeypatch.setattr(os, "open", open_then_swap)
    taken = take(folder, tmp_path / "into")
    monkeypatch.undo()
    assert (taken.folder / "model" / "weights.bin").read_bytes() == b"\0w"


@pytest.mark.parametrize("path", ["mine", "mine/predictor.py", "mine/model/../predictor.py", "..", "/etc/hostname", "mine/\u202e\n", "."])
def test_a_path_in_a_workspace_is_relative_and_never_upwards(folder: Path, tmp_path: Path, path: str) -> None:
    """I-24, I-87, FE-35: absolute and `..` names are refused; the whole workspace may be one."""
    workspace = folder.parent
    if path in ("mine", "mine/predictor.py", "."):
        assert "predictor.py" in take(Path(path), tmp_path.parent / f"{tmp_path.name}-into", beneath=workspace).names
    else:
        with pytest.raises(DataError) as caught:
            take(Path(path), tmp_path / "into", beneath=workspace)
        assert (caught.value.code, caught.value.detail["why"]) == ("submission_refused", "bad_path")


def test_no_link_is_followed_on_the_way_through_a_workspace(folder: Path, tmp_path: Path) -> None:
    """I-17, I-87: soft ones, at any step; nor a hard one, that may be a file of another."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "way").symlink_to(tmp_path)
    (workspace / "mine").symlink_to(folder)
    (workspace / "one.py").symlink_to(folder / "predictor.py")
    (workspace / "two.py").hardlink_to(folder / "predictor.py")
    for path in ("way/mine", "mine", "mine/predictor.py", "one.py", "two.py"):
        with pytest.raises(DataError) as caught:
            take(Path(path), tmp_path / "into", beneath=workspace)
        assert caught.value.detail["why"] == "bad_kind"
    with pytest.raises(DataError) as missing:
        take(Path("none/x"), tmp_path / "into", beneath=workspace)
    assert missing.value.detail["why"] == "missing"
    assert take(workspace / "two.py", tmp_path / "into").names == ("predictor.py",)  # a user's own hard links are files


def test_a_folder_needs_its_predictor(folder: Path, tmp_path: Path) -> None:
    (folder / "predictor.py").rename(folder / "main.py")
    assert refused(folder, tmp_path / "into") == "no_predictor"


TRACE = """Traceback (most recent call last):
  File "/host/shim.py", line 80, in step
    answer = predictor.predict(view)
  File "/submission/predictor.py", line 2, in predict
    return helper(view)
  File "/submission/model/net.py", line 1, in helper
    1 / 0
  File "/usr/lib/python3.11/site-packages/numpy/core.py", line 9, in divide
    raise
{error}: secret 123
"""
KNOWN = frozenset({"ZeroDivisionError", "numpy.linalg.LinAlgError"})


@pytest.fixture
def submission(tmp_path: Path) -> Submission:
    (tmp_path / "model").mkdir()
    (tmp_path / "predictor.py").write_bytes(CODE)
    (tmp_path / "model" / "net.py").write_bytes(b"x\n")
    return Submission(tmp_path, "", ("model/net.py", "predictor.py"))


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ("ZeroDivisionError", "ZeroDivisionError"),
        ("numpy.linalg.LinAlgError", "numpy.linalg.LinAlgError"),
        ("Price_41234", "Exception"),
        ("ZeroDivisionError\nPrice_41234", "Exception"),
    ],
)
def test_a_failure_has_a_type_of_the_list_and_a_place_in_the_submission(submission: Submission, error: str, expected: str) -> None:
    """FE-29, G-54: a class name can spell data, so it is one of the parent's list."""
    assert locate(TRACE.format(error=error), submission, KNOWN) == (expected, "model/net.py", 1)


@pytest.mark.parametrize(
    "trace",
    [
        "",
        "no traceback at all",
        '  File "/submission/predictor.py", line 99, in predict\nZeroDivisionError: x',
        '  File "/submission/predictor.py", line 0, in predict\nZeroDivisionError: x',
        '  File "/submission/price_41234.py", line 1, in predict\nZeroDivisionError: x',
        '  File "/submission/mypredictor.py", line 1, in predict\nZeroDivisionError: x',
        '  File "/submission/predictor.py", line 99999999999, in predict',
    ],
)
def test_a_place_that_does_not_exist_in_the_submission_is_null(submission: Submission, trace: str) -> None:
    """FE-29: file and line must exist in it."""
    assert locate(trace, submission, KNOWN)[1:] == (None, None)
