"""Submissions: what is taken in, under which digest, and where in it a failure lies. Never imported, compiled or parsed here."""

from __future__ import annotations

import errno
import os
import re
import stat
import unicodedata
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Final, NoReturn

from attrs import define, field, frozen

from blindcast.errors import DataError

__all__ = ["ENTRY", "Submission", "digest", "judge", "locate", "take"]

ENTRY: Final = "predictor.py"
MAX_FILE_BYTES: Final = 1 << 20  # of a single .py (I-24)
MAX_BYTES: Final = 64 << 20
MAX_FILES: Final = 200
MAX_DEPTH: Final = 8
MAX_FOLDERS: Final = MAX_FILES * MAX_DEPTH  # more hold nothing
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


def _opened(name: str | Path, beside: int | None, *, is_folder: bool = False) -> int:
    """A descriptor of a regular file, or of a folder, by its last name beside an open folder: never through a link (I-17).

    It is looked at first, so that no device is opened, and again once open, since names can be changed meanwhile.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | (os.O_DIRECTORY if is_folder else 0)
    wanted = stat.S_ISDIR if is_folder else stat.S_ISREG
    shown, kind = os.path.basename(name), "folder" if is_folder else "regular file"
    try:
        found = os.stat(name, dir_fd=beside, follow_symlinks=False).st_mode
        fd = os.open(name, flags, dir_fd=beside) if wanted(found) else None
    except FileNotFoundError:
        _refuse("missing", f"there is no {name}")
    except OSError as error:
        _refuse("bad_kind" if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.ENXIO) else "missing", f"{shown}: {error.strerror}")
    if fd is None:
        _refuse("bad_kind", f"{shown} is {'a link' if stat.S_ISLNK(found) else f'no {kind}'}")
    if not wanted(os.fstat(fd).st_mode):
        os.close(fd)
        _refuse("bad_kind", f"{shown} is no {kind}")
    return fd


def _read(name: str | Path, beside: int | None, limit: int, *, is_lone: bool) -> bytes:
    """The bytes of a regular file; `is_lone` refuses one that has a further name, elsewhere perhaps."""
    with open(_opened(name, beside), "rb") as file:
        if is_lone and os.fstat(file.fileno()).st_nlink > 1:
            _refuse("bad_kind", f"{os.path.basename(name)} is a hard link")
        data = file.read(limit + 1)
    if len(data) > limit:
        _refuse("too_large", f"{os.path.basename(name)} takes it over the limit")
    return data


@define
class _Collector:
    """Reads a folder whose names may change meanwhile, within the limits of I-24."""

    is_lone: bool
    files: dict[str, bytes] = field(factory=dict)
    _left: int = MAX_BYTES
    _folders: int = 0

    def folder(self, fd: int, prefix: str = "") -> None:
        """Read all that lies below an open folder, in order of names; `__pycache__` is left out."""
        with os.scandir(fd) as entries:
            some = islice(entries, MAX_FILES + MAX_FOLDERS + 2)  # as many as one limit or the other will refuse
            found = sorted((e.name, e.is_dir(follow_symlinks=False), e.is_file(follow_symlinks=False)) for e in some)
        for name, is_folder, is_file in found:
            if name == "__pycache__" and not is_file:
                continue
            if _is_bad(prefix + name):
                _refuse("bad_path", f"{prefix + name!r} is no acceptable name")
            if is_folder:
                self._folders += 1
                self._limit(self._folders, MAX_FOLDERS, "folders")
                inner = _opened(name, fd, is_folder=True)
                try:
                    self.folder(inner, f"{prefix}{name}/")
                finally:
                    os.close(inner)
                continue
            self._limit(len(self.files) + 1, MAX_FILES, "files")
            self.files[prefix + name] = _read(name, fd, self._left, is_lone=self.is_lone)
            self._left -= len(self.files[prefix + name])

    @staticmethod
    def _limit(count: int, most: int, what: str) -> None:
        if count > most:
            _refuse("too_many", f"more than {most} {what}")


def _collect(path: Path, beneath: Path | None) -> dict[str, bytes]:
    """Names and contents of a `.py`, as `predictor.py`, or of a folder; beneath a folder no link is followed on the way there."""
    with ExitStack() as opened:
        beside: int | None = None
        name: str | Path = path
        if beneath is not None:
            *parents, name = _steps(path)
            places: list[str | Path] = [beneath, *parents]
            for place in places:
                beside = _opened(place, beside, is_folder=True)
                opened.callback(os.close, beside)
        try:
            mode = os.stat(name, dir_fd=beside, follow_symlinks=False).st_mode
        except OSError as error:
            _refuse("missing", f"there is no {path}" if error.errno in (errno.ENOENT, errno.ENOTDIR) else f"{path}: {error.strerror}")
        if not stat.S_ISDIR(mode):
            return {ENTRY: _read(name, beside, MAX_FILE_BYTES, is_lone=beneath is not None)}
        folder = _opened(name, beside, is_folder=True)
        opened.callback(os.close, folder)
        collector = _Collector(is_lone=beneath is not None)
        collector.folder(folder)
        return collector.files


def _steps(path: Path) -> tuple[str, ...]:
    """The names on the way to a path beneath a folder: relative, and never upwards."""
    if path.parts and _is_bad(path.as_posix()):
        _refuse("bad_path", f"{str(path)!r} is no acceptable name")
    return path.parts or (".",)


def take(path: Path, into: Path, *, beneath: Path | None = None) -> Submission:
    """Copy a `.py` or a folder into `into` and hash it. Raises DataError `submission_refused` (I-24).

    With `beneath`, a folder that hostile code wrote to (I-87), `path` is a name in it: relative, and no link, soft or hard,
    is followed anywhere below.
    """
    files = _collect(path, beneath)
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
