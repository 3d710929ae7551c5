"""Copies of files for the checks: under other names and times, damaged, and what a folder holds."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path

__all__ = ["contents", "copied", "flipped"]

LONG_AGO_S = 1_000_000_000


def copied(paths: Mapping[str, Path], into: Path) -> dict[str, Path]:
    """Copies of files and folders in a new folder `into`, under other names and with times of long ago."""
    into.mkdir(parents=True)
    copies = {}
    for k, (key, path) in enumerate(paths.items()):
        copies[key] = into / f"copy-{k}{path.suffix}"
        shutil.copytree(path, copies[key]) if path.is_dir() else shutil.copyfile(path, copies[key])
        for file in (copies[key], *copies[key].rglob("*")):
            os.utime(file, (LONG_AGO_S + k, LONG_AGO_S + k))
    return copies


def flipped(places: Iterable[Path]) -> str:
    """Change one bit in the first quarter of the largest file at or below some places; its name."""
    files = [file for place in places for file in (place, *place.rglob("*")) if file.is_file()]
    largest = max(files, key=lambda file: file.stat().st_size)
    data = bytearray(largest.read_bytes())
    data[len(data) // 4] ^= 0x10
    largest.write_bytes(data)
    return largest.name


def contents(places: Iterable[Path]) -> dict[str, tuple[int, str]]:
    """Time of the last change, in ns, and sha256 of everything at and below some places."""
    facts = {}
    for place in places:
        for path in (place, *place.rglob("*")):
            digest = sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
            facts[str(path.relative_to(place.parent))] = (path.stat().st_mtime_ns, digest)
    return facts
