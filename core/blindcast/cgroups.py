"""How much CPU the control groups of this process allow (isolation.md I-80)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

from attrs import frozen

__all__ = ["PERIOD_US", "cpu_quota"]

PERIOD_US: Final = 100_000  # the kernel's default
_ESCAPES: Final = {"\\040": " ", "\\011": "\t", "\\012": "\n", "\\134": "\\"}  # of mountinfo


@frozen
class _Mount:
    """One mounted hierarchy: which folder of it (`root`) stands where (`point`)."""

    root: str
    point: str
    kind: str  # cgroup | cgroup2
    controllers: frozenset[str]  # of v1


def cpu_quota(root: Path = Path("/")) -> tuple[int | None, int]:
    """(quota, period) in us of the tightest group that holds this process; quota None: no limit.

    v2 `cpu.max` of the own group and those above it; where the unified hierarchy has no CPU controller, or is not mounted,
    v1 `cpu.cfs_quota_us` (the hybrid layout has both). `root` stands in for `/` in tests.
    """
    mounts, groups = list(_mounts(root)), dict(_groups(root))
    for kind in ("cgroup2", "cgroup"):
        limits = [
            limit
            for mount in mounts
            if mount.kind == kind and (kind == "cgroup2" or "cpu" in mount.controllers)
            for folder in _folders(mount, groups.get("" if kind == "cgroup2" else "cpu", "/"))
            if (limit := _limit(root / folder.lstrip("/"), kind)) is not None
        ]
        if limits:
            known = [(quota, period) for quota, period in limits if quota is not None]
            return min(known, key=lambda limit: limit[0] / limit[1], default=(None, PERIOD_US))
    return None, PERIOD_US


def _mounts(root: Path) -> Iterator[_Mount]:
    for line in _lines(root / "proc/self/mountinfo"):
        before, _, after = line.partition(" - ")
        fields, source = before.split(), after.split()
        if len(fields) >= 5 and len(source) >= 3 and source[0] in ("cgroup", "cgroup2"):
            yield _Mount(_plain(fields[3]), _plain(fields[4]), source[0], frozenset(source[2].split(",")))


def _plain(text: str) -> str:
    for escape, character in _ESCAPES.items():
        text = text.replace(escape, character)
    return text


def _groups(root: Path) -> Iterator[tuple[str, str]]:
    """(controller, path of this process's group); the controller of v2 is empty."""
    for line in _lines(root / "proc/self/cgroup"):
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        for controller in controllers.split(","):
            yield controller, path


def _folders(mount: _Mount, group: str) -> Iterator[str]:
    """The group's folder and those above it, as far up as the mount shows."""
    path, top = PurePosixPath(group), PurePosixPath(mount.root)
    inner = path.relative_to(top) if path.is_relative_to(top) and ".." not in path.parts else PurePosixPath()
    for part in (inner, *inner.parents):
        yield str(PurePosixPath(mount.point) / part)


def _limit(folder: Path, kind: str) -> tuple[int | None, int] | None:
    """(quota or None for none, period) of one group; None where it has no such file."""
    try:
        if kind == "cgroup2":
            quota, period = (folder / "cpu.max").read_text().split()
        else:
            quota, period = ((folder / f"cpu.cfs_{name}_us").read_text().strip() for name in ("quota", "period"))
        return (None if quota == "max" or int(quota) < 0 else int(quota)), int(period) or PERIOD_US
    except (OSError, ValueError):
        return None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return []
