"""The plugin lock of a run: which code was loaded and used, by digest (P-70, P-71)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from attrs import frozen

from blindcast import __version__
from blindcast.hookspecs import API
from blindcast.host import Host, Offered
from blindcast.targets import spec_of

__all__ = ["ModuleDigest", "digest", "lock"]

CHUNK = 1 << 20


@frozen
class ModuleDigest:
    """How many files a module has, and one sha256 over their digests and paths."""

    files: int
    sha256: str


def digest(module: Path) -> ModuleDigest:
    """The digest of a module file or a package folder, as in P-71.

    `find M -type f ! -name '*.pyc' | LC_ALL=C sort | xargs sha256sum | sha256sum`, run in the folder that holds it;
    a symbolic link counts by its link text.
    """
    lines = []
    for path in sorted(_files(module), key=lambda path: os.fsencode(path.relative_to(module.parent).as_posix())):
        lines.append(f"{_sha256(path)}  ".encode() + os.fsencode(path.relative_to(module.parent).as_posix()) + b"\n")
    return ModuleDigest(len(lines), hashlib.sha256(b"".join(lines)).hexdigest())


def _files(module: Path) -> Iterable[Path]:
    if not module.is_dir() or module.is_symlink():
        yield module
        return
    for folder, folders, names in os.walk(module):
        linked = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        for name in [*names, *linked]:
            path = Path(folder, name)
            if not name.endswith(".pyc") and (path.is_symlink() or path.is_file()):
                yield path


def _sha256(path: Path) -> str:
    if path.is_symlink():
        return hashlib.sha256(os.fsencode(os.readlink(path))).hexdigest()
    total = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(CHUNK):
            total.update(block)
    return total.hexdigest()


def _modules(names: Iterable[str]) -> Mapping[str, Mapping[str, object]]:
    """The digest of each top-level module that is on disk."""
    digests: dict[str, Mapping[str, object]] = {}
    for top in sorted({name.partition(":")[0].partition(".")[0] for name in names}):
        spec = spec_of(top)
        places = [Path(place) for place in spec.submodule_search_locations or ()] if spec else []
        if spec and not places and spec.origin and spec.has_location:
            places = [Path(spec.origin)]
        if places:
            found = digest(places[0])
            digests[top] = {"files": found.files, "sha256": found.sha256}
    return digests


def lock(host: Host, used: Sequence[Offered]) -> dict[str, object]:
    """`plugins` of `run.json` (P-70): plain JSON, taken before the first reveal."""
    loaded = []
    for plugin in host.plugins:
        if plugin.status != "refused" and plugin.api is not None:
            mine = [offered for offered in used if offered.entry == plugin.entry]
            targets = [offered.offer.target for offered in mine if isinstance(offered.offer.target, str)]
            loaded.append(
                {
                    "plugin": plugin.entry.key,
                    "distribution": plugin.entry.distribution,
                    "version": plugin.entry.version,
                    "modules": _modules([plugin.entry.module, *targets]),
                    "used": sorted(f"{offered.kind}/{offered.name}" for offered in mine),
                }
            )
    policy = host.policy
    return {
        "schema": "blindcast.lock/1",
        "api": API,
        "core": {"version": __version__, "modules": _modules(["blindcast"])},
        "loaded": loaded,
        "refused": [{"plugin": plugin.entry.key, "why": plugin.why} for plugin in host.plugins if plugin.status == "refused"],
        "broken": [{"plugin": one.plugin, "stage": one.stage, "hook": one.hook, "error": one.message} for one in host.broken],
        "policy": {
            "allow": None if policy.allow is None else list(policy.allow),
            "deny": ["*", *policy.deny] if policy.only_core else list(policy.deny),
        },
    }
