"""Submissions: what is taken in, under which digest, and where in it a failure lies. Never imported, compiled or parsed here."""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final, NoReturn

from attrs import frozen

from blindcast.errors import DataError

__all__ = ["ENTRY", "Submission", "digest", "judge", "locate", "take"]

ENTRY: Final = "predictor.py"
MAX_FILE_BYTES: Final = 1 << 20  # of a single .py (I-24)
MAX_BYTES: Final = 64 << 20
MAX_FILES: Final = 200
MAX_DEPTH: Final = 8
MAX_NAME_BYTES: Final = 200


@frozen
class Submission:
    """A private copy of what was handed in: `folder` holds `predictor.py`; `sha256` is FE-38's digest."""

    folder: Path
    sha256: str
    names: tuple[str, ...]


def _is_bad(name: str) -> bool:
    segments = name.split("/")
    try:
        encoded = name.encode()
    except UnicodeEncodeError:
        return True
    return (
        not 0 < len(encoded) <= MAX_NAME_BYTES
        or "\\" in name
        or re.match(r"[A-Za-z]:", name) is not None
        or any(unicodedata.category(c) == "Cc" for c in name)
        or any(s in ("", ".", "..") for s in segments)
        or len(segments) > MAX_DEPTH
        or unicodedata.normalize("NFC", name) != name
    )


def judge(names: Iterable[str]) -> tuple[str | None, str | None]:
    """(why refused or None, the single top folder to strip or None), of file names as stored (FE-36, FE-37).

    >>> judge(["model/predictor.py", "model/weights.bin"])
    (None, 'model')
    """
    files = [name for name in names if not name.endswith("/")]
    if any(_is_bad(name) for name in files):
        return "bad_path", None
    if len(files) > MAX_FILES:
        return "too_many", None
    folded = [name.casefold() for name in files]
    folders = {"/".join(f.split("/")[:depth]) for f in folded for depth in range(1, f.count("/") + 1)}
    if len(set(folded)) < len(folded) or folders & set(folded):
        return "duplicate", None
    if ENTRY in files:
        return None, None
    tops = {name.split("/")[0] for name in files}
    top = tops.pop() if len(tops) == 1 else None
    if top is not None and f"{top}/{ENTRY}" in files:
        return None, top
    return "no_predictor", None


def digest(files: Mapping[str, bytes]) -> str:
    """sha256 over the files in byte order of their names: name, NUL, hex sha256 of the content, LF (FE-38)."""
    whole = sha256()
    for name in sorted(files, key=str.encode):
        whole.update(name.encode() + b"\0" + sha256(files[name]).hexdigest().encode() + b"\n")
    return whole.hexdigest()


_HINTS: Final = {
    "missing": (
        "a .py file, or a folder that holds predictor.py",
        "check the path, or name a shipped predictor: `blindcast plugins list --kind predictors`",
    ),
    "bad_kind": ("regular files and folders only: no links, no devices", "copy what the links point to"),
    "too_large": ("at most 1 MiB for a .py, 64 MiB for a folder", "make it smaller"),
    "too_many": ("at most 200 files", "pack your model into fewer files"),
    "bad_path": ("plain relative names, at most 8 levels deep", "rename what it names"),
    "duplicate": ("names that differ by more than case", "rename one of them"),
    "no_predictor": ("predictor.py at the top", "name the file that holds `class Predictor` predictor.py"),
}


def _refuse(why: str, what: str) -> NoReturn:
    expected, do = _HINTS[why]
    raise DataError("submission_refused", f"the submission was refused: {what}", expected=expected, do=do, why=why)


def _read(path: Path, limit: int) -> bytes:
    """The bytes of a regular file, never through a link."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        is_missing = os.path.lexists(path) and stat.S_ISREG(path.lstat().st_mode)  # there, but not to be read
        _refuse("missing" if is_missing else "bad_kind", f"{path.name}: {error.strerror}")
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            _refuse("bad_kind", f"{path.name} is no regular file")
        data = file.read(limit + 1)
    if len(data) > limit:
        _refuse("too_large", f"{path.name} takes it over the limit")
    return data


def _unreadable(error: OSError) -> NoReturn:
    _refuse("missing", f"{Path(str(error.filename)).name}: {error.strerror}")


def _collect(path: Path) -> dict[str, bytes]:
    if not os.path.lexists(path):
        _refuse("missing", f"there is no {path}")
    if path.is_symlink():
        _refuse("bad_kind", f"{path.name} is a link")
    if not path.is_dir():
        return {ENTRY: _read(path, MAX_FILE_BYTES)}
    files: dict[str, bytes] = {}
    left = MAX_BYTES
    for root, folders, names in os.walk(path, onerror=_unreadable):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in [n for n in folders if (Path(root) / n).is_symlink()]:
            _refuse("bad_kind", f"{name} is a link")
        for name in sorted(names):
            relative = (Path(root) / name).relative_to(path).as_posix()
            if _is_bad(relative):
                _refuse("bad_path", f"{relative!r} is no acceptable name")
            files[relative] = _read(Path(root) / name, left)
            left -= len(files[relative])
            if len(files) > MAX_FILES:
                _refuse("too_many", f"more than {MAX_FILES} files")
    return files


def take(path: Path, into: Path) -> Submission:
    """Copy a `.py` or a folder into `into` and hash it. Raises DataError `submission_refused` (I-24)."""
    files = _collect(path)
    why, top = judge(files)
    if why is not None:
        _refuse(why, f"{path.name}: {why.replace('_', ' ')}")
    if top is not None:
        files = {name.removeprefix(f"{top}/"): data for name, data in files.items()}
    for name, data in files.items():
        place = into / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    return Submission(into, digest(files), tuple(sorted(files, key=str.encode)))


_FRAME: Final = re.compile(r'^ *File "([^"\n]{1,300})", line (\d{1,7})', re.MULTILINE)
_TYPE: Final = re.compile(r"^([A-Za-z_][\w.]{0,200})(?::|$)", re.MULTILINE)


def locate(trace: str, submission: Submission, known: frozenset[str]) -> tuple[str, str | None, int | None]:
    """(exception type, file, line) of a failure, from the child's hostile text (FE-29, G-54).

    The type is one of `known`, else `Exception`; file and line are those of the submission's last frame that exists in
    it, else None.
    """
    names = [name for name in _TYPE.findall(trace) if name != "Traceback"]
    kind = names[-1] if names and names[-1] in known else "Exception"
    for path, line in reversed(_FRAME.findall(trace)):
        name = next((n for n in sorted(submission.names, key=len, reverse=True) if path == n or path.endswith(f"/{n}")), None)
        if name is not None and 1 <= int(line) <= _lines(submission.folder / name):
            return kind, name, int(line)
    return kind, None, None


def _lines(path: Path) -> int:
    try:
        return path.read_bytes().count(b"\n") + 1
    except OSError:
        return 0
