"""A session's workspace: the one folder that its code may write to, of a bounded size (isolation.md I-86)."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from attrs import frozen

from blindcast.printable import printable

__all__ = ["MAX_DEPTH", "MAX_NAMES", "OVER_MB", "Holding", "Room", "holding", "is_over", "remove"]

MAX_NAMES: Final = 10_000
MAX_DEPTH: Final = 64  # folders within folders: deeper ones are not looked into
OVER_MB: Final = 64  # beyond the limit before the code is killed: what is counted is a moment old
_MIB: Final = 1 << 20
_BLOCK: Final = 512  # bytes, of `st_blocks`
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_GONE: Final = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)  # moved or replaced since it was seen


@frozen
class Holding:
    """What lies in a workspace: bytes on disk, names of every kind, and the regular files as {path: (bytes, mtime_ns)}.

    `is_whole` is false where a folder could not be counted: it may not be read (mode 0300), or lies too deep.
    """

    disk_bytes: int
    names: int
    files: dict[str, tuple[int, int]]
    is_whole: bool = True

    def changed(self, before: Holding, most: int = 200) -> tuple[tuple[str, int], ...]:
        """(path, bytes) of files that are new or another since `before`, by path, at most `most`. The paths are printable."""
        new = sorted((path, size[0]) for path, size in self.files.items() if before.files.get(path) != size)
        return tuple((printable(path), size) for path, size in new[:most])


def holding(folder: Path) -> Holding:
    """Count a workspace without following a link or opening a file; it may be written meanwhile. Raises OSError without it."""
    disk_bytes = names = 0
    files: dict[str, tuple[int, int]] = {}
    is_whole = True
    top = os.open(folder, _FOLDER)
    try:
        for path, status in _entries(top, "", 1):
            if status is None:
                is_whole = False
                break
            names += 1
            disk_bytes += status.st_blocks * _BLOCK
            if stat.S_ISREG(status.st_mode):
                files[path] = (status.st_size, status.st_mtime_ns)
            if names > 2 * MAX_NAMES:
                break
    finally:
        os.close(top)
    return Holding(disk_bytes, names, files, is_whole)


def _entries(fd: int, place: str, depth: int) -> Iterator[tuple[str, os.stat_result | None]]:
    """(path, status) of all beneath an open folder; the status None where something cannot be counted."""
    with os.scandir(fd) as entries:
        for entry in entries:
            path = f"{place}{entry.name}"
            try:
                status = os.stat(entry.name, dir_fd=fd, follow_symlinks=False)
                yield path, status
                if not stat.S_ISDIR(status.st_mode):
                    continue
                inner = os.open(entry.name, _FOLDER, dir_fd=fd) if depth < MAX_DEPTH else None
            except OSError as error:
                if error.errno in _GONE:
                    continue
                inner = None
            if inner is None:
                yield path, None
                return
            try:
                yield from _entries(inner, f"{path}/", depth + 1)
            finally:
                os.close(inner)


def is_over(found: Holding, limit_mb: int) -> bool:
    """Whether a workspace holds so much, or hides so well what it holds, that its code is killed."""
    return not found.is_whole or found.disk_bytes > (limit_mb + OVER_MB) * _MIB or found.names > MAX_NAMES


@frozen
class Room:
    """What was free on a workspace's file system when its code began, and what it held then.

    A file that is open or mapped and has no name any more is counted nowhere else.
    """

    free_bytes: int
    held_bytes: int

    @classmethod
    def of(cls, folder: Path, found: Holding) -> Room:
        """The room around a workspace that holds `found`."""
        return cls(_free(folder), found.disk_bytes)

    def is_spent(self, folder: Path, found: Holding, limit_mb: int) -> bool:
        """Whether more has gone than the limit and a quarter of what was free, beyond what the workspace shows.

        Others write to the disk too: it takes a large part of it, so that they are seldom taken for the code.
        """
        unseen = self.free_bytes - _free(folder) - (found.disk_bytes - self.held_bytes)
        return unseen > max((limit_mb + OVER_MB) * _MIB, self.free_bytes // 4)


def _free(folder: Path) -> int:
    room = os.statvfs(folder)
    return room.f_bavail * room.f_frsize


def remove(folder: Path) -> None:
    """Remove a workspace whatever was made in it: folders nested beyond any recursion, folders that may not be read.

    What is inner is moved to the top first, so that depth does not matter. Only while no child of it lives. Raises OSError.
    """
    top = os.open(folder, _FOLDER)
    try:
        names = os.listdir(top)
        while names:
            name = names.pop()
            if not _is_folder(name, top):
                os.unlink(name, dir_fd=top)
                continue
            os.chmod(name, 0o700, dir_fd=top)
            inner = os.open(name, _FOLDER, dir_fd=top)
            try:
                for below in os.listdir(inner):
                    if _is_folder(below, inner):
                        os.chmod(below, 0o700, dir_fd=inner)  # the owner may move what it may write to
                        names.append(secrets.token_hex(16))
                        os.rename(below, names[-1], src_dir_fd=inner, dst_dir_fd=top)
                    else:
                        os.unlink(below, dir_fd=inner)
            finally:
                os.close(inner)
            os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)
    os.rmdir(folder)


def _is_folder(name: str, beside: int) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=beside, follow_symlinks=False).st_mode)
