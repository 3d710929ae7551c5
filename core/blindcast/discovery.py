"""Entry points and the policy over them, read before any plugin is imported (P-20, P-21)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from typing import Literal

from attrs import frozen

from blindcast.names import distribution_key, name_key, nearest

__all__ = ["Entry", "Plugin", "Policy", "installed", "metadata_folders", "policy_of", "refusals", "unmatched"]

GROUP = "blindcast"


@frozen(order=True)
class Entry:
    """An entry point of the group `blindcast`; `distribution` is normalised, `module` the entry point's value."""

    distribution: str
    name: str
    module: str
    version: str = ""

    @property
    def key(self) -> str:
        """`<distribution>:<entry point>`."""
        return f"{self.distribution}:{self.name}"


@frozen
class Plugin:
    """What became of an entry point. `api` is known once it was imported; `why` is told for all but `loaded`.

    `import_ms` and `pulled` say what its import took: milliseconds, and modules that were not loaded before.
    """

    entry: Entry
    status: Literal["loaded", "broken", "refused"]
    why: str = ""
    api: int | None = None
    import_ms: float = 0.0
    pulled: int = 0


@frozen
class Policy:
    """What the environment lets load: `allow` None means all; `only_core` is `BLINDCAST_DISABLE_PLUGINS=1`."""

    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()
    only_core: bool = False


def installed() -> tuple[Entry, ...]:
    """Every entry point of the group, sorted by (distribution, entry point)."""
    entries = []
    owners: dict[int, tuple[str, str]] = {}  # reading metadata parses a whole file: once for each distribution
    for point in metadata.entry_points(group=GROUP):
        if id(point.dist) not in owners:
            told = point.dist.metadata if point.dist is not None else {"Name": "", "Version": ""}
            owners[id(point.dist)] = distribution_key(told["Name"] or ""), told["Version"] or ""
        distribution, version = owners[id(point.dist)]
        entries.append(Entry(distribution, point.name, point.value.strip(), version))
    return tuple(sorted(entries))


def metadata_folders() -> Mapping[str, tuple[str, ...]]:
    """The metadata folders of each distribution that has an entry point of the group, the one in use first (P-06)."""
    folders: dict[str, dict[str, None]] = {}
    for dist in metadata.distributions():
        if any(point.group == GROUP for point in dist.entry_points):
            place = str(getattr(dist, "_path", ""))  # the only attribute that tells where metadata was read
            folders.setdefault(distribution_key(dist.metadata["Name"] or ""), {})[place] = None
    return {name: tuple(places) for name, places in folders.items()}


def policy_of(environ: Mapping[str, str]) -> Policy:
    """The policy that the two variables state (P-21)."""
    disabled = environ.get("BLINDCAST_DISABLE_PLUGINS", "").strip()
    allowed = environ.get("BLINDCAST_PLUGINS")
    return Policy(
        allow=None if allowed is None else _items(allowed),
        deny=() if disabled == "1" else _items(disabled),
        only_core=disabled == "1",
    )


def _items(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",") if item.strip())


def _matches(item: str, entry: Entry) -> bool:
    """Whether a policy item (`dist`, `dist==version`, `dist:entry`) means this entry."""
    distribution, mark, rest = (part.strip() for part in re.match(r"([^=:]*)(==|:|)(.*)", item, re.DOTALL).groups())  # type: ignore[union-attr]  # matches any text
    if distribution_key(distribution) != entry.distribution:
        return False
    if mark == "==":
        return rest == entry.version
    return not rest or name_key(rest) == name_key(entry.name)


def refusals(entries: Sequence[Entry], policy: Policy) -> Mapping[Entry, str]:
    """Why each refused entry does not load: denials beat allowances; the second of one value is a duplicate."""
    refused: dict[Entry, str] = {}
    modules: dict[str, Entry] = {}
    for entry in entries:
        denied = [item for item in policy.deny if _matches(item, entry)]
        if policy.only_core and entry.distribution != GROUP:
            refused[entry] = "BLINDCAST_DISABLE_PLUGINS=1 lets only blindcast load"
        elif denied:
            refused[entry] = f"BLINDCAST_DISABLE_PLUGINS names {denied[0]}"
        elif policy.allow is not None and not any(_matches(item, entry) for item in policy.allow):
            refused[entry] = "BLINDCAST_PLUGINS does not name it"
        elif entry.module in modules:
            refused[entry] = f"duplicate: {modules[entry.module].key} already loads {entry.module}"
        else:
            modules[entry.module] = entry
    return refused


def unmatched(entries: Sequence[Entry], policy: Policy) -> Iterable[str]:
    """A warning for each policy item that matches nothing installed, with the nearest name."""
    known = [name for entry in entries for name in (entry.distribution, entry.key)]
    for variable, items in (("BLINDCAST_PLUGINS", policy.allow or ()), ("BLINDCAST_DISABLE_PLUGINS", policy.deny)):
        for item in items:
            if not any(_matches(item, entry) for entry in entries):
                near = nearest(item, known)
                yield f"{variable}: {item!r} matches nothing installed" + (f"; did you mean {near!r}?" if near else "")
