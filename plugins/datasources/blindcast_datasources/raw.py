"""Raw files: which ones a path stands for, and their bytes and lines, checked to the end (DI-01, DI-06)."""

from __future__ import annotations

import glob
import hashlib
import io
import os
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from attrs import frozen

from blindcast.errors import DataError, ImportDamaged

__all__ = ["RawFile", "found", "left_out", "sniffed"]

CHUNK_BYTES: Final = 1 << 18
_GZIP: Final = b"\x1f\x8b"


@frozen(order=True)
class RawFile:
    """One file to read: a path, or a member of a zip."""

    path: Path
    member: str = ""

    @property
    def name(self) -> str:
        """What the pool's `sources` and messages call it; never a path."""
        return f"{self.path.name}/{self.member}" if self.member else self.path.name

    @contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        """Its stored bytes. Raises ImportDamaged."""
        try:
            if self.member:
                with zipfile.ZipFile(self.path) as archive, _member(archive, self.member) as stream:
                    yield stream
            else:
                with self.path.open("rb") as stream:
                    yield stream
        except (zipfile.BadZipFile, EOFError, zlib.error, OSError) as error:
            raise ImportDamaged(self.name, str(error)) from error

    def seekable(self) -> Path | IO[bytes]:
        """What can be read at any place: the path, or a zip's member held in memory. Raises ImportDamaged."""
        if not self.member:
            return self.path
        with self.opened() as stream:
            return io.BytesIO(stream.read())

    def chunks(self) -> Iterator[bytes]:
        """Its content, unpacked if it is gzip: every member, every checksum, no byte after the last. Raises ImportDamaged."""
        with self.opened() as stream:
            first = stream.read(CHUNK_BYTES)
            if first[:2] == _GZIP:
                yield from _inflated(self.name, first, stream)
                return
            while first:
                yield first
                first = stream.read(CHUNK_BYTES)

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Its lines with their numbers from 1, without the line feed; the last needs none. Raises ImportDamaged."""
        number = 0
        rest = b""
        for chunk in self.chunks():
            pieces = (rest + chunk).split(b"\n")
            rest = pieces.pop()
            for piece in pieces:
                number += 1
                yield number, piece
        if rest:
            yield number + 1, rest

    def head(self, size: int = 4096) -> bytes:
        """The first bytes of its content; what cannot be read is empty."""
        try:
            return next(self.chunks(), b"")[:size]
        except (ImportDamaged, OSError):
            return b""

    def sha256(self) -> tuple[str, int]:
        """Hash and count of its stored bytes."""
        digest, size = hashlib.sha256(), 0
        with self.opened() as stream:
            while chunk := stream.read(CHUNK_BYTES):
                digest.update(chunk)
                size += len(chunk)
        return digest.hexdigest(), size


def _member(archive: zipfile.ZipFile, name: str) -> IO[bytes]:
    """A member's bytes. Raises BadZipFile for one that is encrypted, or packed in a way we cannot unpack."""
    try:
        return archive.open(name)
    except RuntimeError as error:
        raise zipfile.BadZipFile(str(error)) from error


def _inflated(name: str, chunk: bytes, stream: IO[bytes]) -> Iterator[bytes]:
    offset = 0  # of the first byte that no member has taken
    while True:
        member = zlib.decompressobj(wbits=31)
        if chunk[:2] != _GZIP[: len(chunk)]:
            raise ImportDamaged(name, f"byte {offset}: bytes after the last gzip member")
        try:
            while not member.eof:
                if not chunk:
                    raise ImportDamaged(name, f"byte {offset}: the gzip member is cut")
                unpacked = member.decompress(chunk, CHUNK_BYTES)
                if unpacked:
                    yield unpacked
                taken = len(chunk) - len(member.unconsumed_tail) - len(member.unused_data)
                offset += taken
                chunk = member.unused_data if member.eof else member.unconsumed_tail or stream.read(CHUNK_BYTES)
        except zlib.error as error:
            raise ImportDamaged(name, f"byte {offset}: {error}") from error
        chunk = chunk or stream.read(CHUNK_BYTES)
        if len(chunk) == 1:
            chunk += stream.read(1)
        if not chunk:
            return


def left_out(path: Path) -> bool:
    """Whether a folder's file is no data: hidden ones, `_*` and `*.md`."""
    return path.name.startswith((".", "_")) or path.suffix.lower() == ".md"


def _below(folder: Path) -> tuple[list[Path], list[Path]]:
    files: list[Path] = []
    passed: list[Path] = []
    for path in sorted(folder.rglob("*")):
        if path.is_dir():
            continue
        hidden = any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
        (passed if hidden or left_out(path) else files).append(path)
    return files, passed


def _unpacked(path: Path) -> list[RawFile]:
    """A zip as its members, anything else as itself. Raises ImportDamaged."""
    if not path.is_file():
        raise ImportDamaged(path.name, "its very start: it is no regular file")
    if path.suffix.lower() != ".zip":
        return [RawFile(path)]
    try:
        with zipfile.ZipFile(path) as archive:
            names = [info.filename for info in archive.infolist() if not info.is_dir()]
    except (zipfile.BadZipFile, OSError) as error:
        raise ImportDamaged(path.name, str(error)) from error
    return [RawFile(path, name) for name in sorted(names) if not left_out(Path(name)) and not name.startswith("__MACOSX/")]


def sniffed(path: Path) -> Sequence[RawFile]:
    """What a path holds for an importer to sniff at: itself, or a zip's members; nothing for a folder or what cannot be opened."""
    try:
        return _unpacked(path) if path.is_file() else ()
    except (ImportDamaged, OSError):
        return ()


def found(paths: Iterable[Path]) -> tuple[Sequence[RawFile], Sequence[Path]]:
    """The files that paths, folders, globs and zips stand for, and those of folders that are no data.

    Raises DataError `path_missing`, ImportDamaged for a zip that is none.
    """
    files: list[RawFile] = []
    passed: list[Path] = []
    for path in paths:
        matched = [path] if os.path.exists(path) else [Path(text) for text in sorted(glob.glob(str(path), recursive=True))]
        if not matched:
            raise DataError(
                "path_missing",
                f"there is nothing at {path}",
                expected="a file, a folder, a glob or a zip",
                do="check the path",
                path=str(path),
            )
        for one in matched:
            inside, aside = _below(one) if one.is_dir() else ([one], [])
            passed += aside
            for file in inside:
                files += _unpacked(file)
    if not files:
        raise DataError(
            "path_missing", "the paths hold no data file", expected="at least one file beside hidden ones, _* and *.md", do="check the path"
        )
    return list(dict.fromkeys(files)), passed
