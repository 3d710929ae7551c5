"""Plugin modules to offers: what is refused at registration, and how each hook is drained (P-11, P-12)."""

from __future__ import annotations

import importlib
import inspect
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from types import ModuleType
from typing import Literal, TypeAlias

import attrs
import pluggy
from attrs import frozen

from blindcast.discovery import Entry, Plugin
from blindcast.hookspecs import API, Hooks, Offer
from blindcast.kinds import KINDS, OBSERVERS
from blindcast.names import did_you_mean, name_key

__all__ = ["Broken", "Offered", "Refusal", "Stage", "drain", "hooks_of", "listed", "load", "quiet", "register"]

Stage: TypeAlias = Literal["import", "register", "offer", "resolve", "build", "observe"]
Hook: TypeAlias = Callable[[], Iterable[Offer] | None]

REMEDIES: Mapping[str, str] = {
    "import": "reinstall it or what it needs, or leave it out with BLINDCAST_DISABLE_PLUGINS",
    "register": "its author must mend its hooks (plugins.md P-11); install another version or leave it out",
    "offer": "its author must mend this hook (plugins.md P-12); its other hooks stand",
    "resolve": "install what it needs; blindcast plugins doctor resolves every offer",
    "build": "blindcast plugins doctor NAME shows which checks it fails",
    "observe": "it is not called again in this run; the result does not depend on it",
}


class Refusal(Exception):
    """A module that may not register, or a hook's answer that may not count; the text says why."""


@frozen
class Broken:
    """A plugin that failed, as data (P-23)."""

    plugin: str
    distribution: str
    stage: Stage
    error: BaseException
    version: str = ""
    hook: str = ""

    @property
    def message(self) -> str:
        """The error in one line."""
        words = " ".join(str(self.error).split())
        return words if isinstance(self.error, Refusal) else f"{type(self.error).__name__}: {words}".rstrip(": ")

    @property
    def do(self) -> str:
        """What the user can do."""
        return REMEDIES[self.stage]

    @property
    def line(self) -> str:
        """One line: who, which stage, what, and what to do."""
        hook = f" {self.hook}" if self.hook else ""
        return f"plugin {self.plugin} {self.version} is broken ({self.stage}{hook}): {self.message}; do: {self.do}"


@frozen
class Offered:
    """An offer with its kind and owner. `status` is `ambiguous` while several distributions offer the name."""

    kind: str
    offer: Offer
    entry: Entry
    status: Literal["ok", "ambiguous", "shadowed"] = "ok"
    why: str = ""

    @property
    def name(self) -> str:
        """The bare name."""
        return self.offer.name

    @property
    def protocol(self) -> str:
        """The kind's second Protocol, or ""."""
        return self.offer.protocol

    @property
    def summary(self) -> str:
        """One line for people."""
        return self.offer.summary

    @property
    def distribution(self) -> str:
        """The normalised distribution."""
        return self.entry.distribution

    @property
    def version(self) -> str:
        """The distribution's version."""
        return self.entry.version

    @property
    def qualified(self) -> str:
        """`distribution/name`, which always works."""
        return f"{self.entry.distribution}/{self.offer.name}"


@contextmanager
def quiet() -> Iterator[None]:
    """What a plugin prints to stdout goes to stderr (P-22)."""
    with redirect_stdout(sys.stderr):
        yield


def load(entry: Entry) -> object:
    """Import what an entry point names: a module, or (to be refused) an attribute of one."""
    module, _, attribute = entry.module.partition(":")
    found: object = importlib.import_module(module.strip())
    for part in attribute.split("[")[0].strip().split(".") if attribute else ():
        found = getattr(found, part)
    return found


def register(entry: Entry, module_of: Callable[[], object]) -> tuple[Plugin, tuple[Offered, ...], tuple[Broken, ...]]:
    """What became of one plugin: imported, registered and drained, every failure recorded where it belongs (P-22)."""
    stage: Stage = "import"
    started, loaded = time.perf_counter(), len(sys.modules)
    try:
        with quiet():
            module = module_of()
            import_ms, pulled = round(1e3 * (time.perf_counter() - started), 3), len(sys.modules) - loaded
            stage = "register"
            api, hooks = hooks_of(module)
    except (Exception, SystemExit) as error:
        refused = Broken(entry.key, entry.distribution, stage, error, entry.version)
        return Plugin(entry, "broken", f"{stage}: {refused.message}"), (), (refused,)
    offers: list[Offered] = []
    broken: list[Broken] = []
    for kind in (kind for kind in KINDS if kind in hooks):
        try:
            with quiet():
                offers += drain(kind, hooks[kind], entry)
        except (Exception, SystemExit) as error:
            broken.append(Broken(entry.key, entry.distribution, "offer", error, entry.version, kind))
    why = "; ".join(f"offer {one.hook}: {one.message}" for one in broken)
    return Plugin(entry, "broken" if broken else "loaded", why, api, import_ms, pulled), tuple(offers), tuple(broken)


def hooks_of(plugin: object) -> tuple[int, Mapping[str, Hook]]:
    """The API number and the registration hooks of a plugin module. Raises Refusal (P-11)."""
    if not isinstance(plugin, ModuleType):
        raise Refusal(f"an entry point must name a module, not a {type(plugin).__name__}")
    api = getattr(plugin, "blindcast_api", API)
    if type(api) is not int:
        raise Refusal(f"blindcast_api must be an int, got {api!r}")
    if api != API:
        raise Refusal(f"needs hook API {api}, this is {API}")
    manager = pluggy.PluginManager("blindcast")
    manager.add_hookspecs(Hooks)
    hooks: dict[str, Hook] = {}
    marked = 0
    for attribute in sorted(vars(plugin)):
        options = manager.parse_hookimpl_opts(plugin, attribute)
        if options is not None:
            marked += 1
            name = options.get("specname") or attribute
            function = getattr(plugin, attribute)
            _check_hook(name, function, wraps=bool(options.get("wrapper") or options.get("hookwrapper")))
            if name in hooks:
                raise Refusal(f"hook {name} is implemented twice")
            if name in KINDS:
                hooks[name] = function
    if not marked:
        raise Refusal("no function is marked @hookimpl")
    try:
        manager.register(plugin)
    except pluggy.PluginValidationError as error:
        raise Refusal(" ".join(str(error).split())) from error
    return api, hooks


def _check_hook(name: str, function: Callable[..., object], *, wraps: bool) -> None:
    if name not in KINDS and name not in OBSERVERS:
        raise Refusal(f"unknown hook {name!r}; " + did_you_mean(name, [*KINDS, *OBSERVERS], f"hooks: {', '.join(KINDS)}"))
    if wraps:
        raise Refusal(f"hook {name} is a wrapper; no hook may wrap another's")
    if name in KINDS and inspect.signature(function).parameters:
        raise Refusal(f"hook {name} takes parameters; a registration hook takes none")


def drain(kind: str, hook: Hook, entry: Entry) -> tuple[Offered, ...]:
    """Every offer of one hook, or none: raises what the hook raises, or Refusal for a bad or repeated offer (P-12)."""
    answer = hook()
    if answer is None:
        raise Refusal("returned None, not offers")
    offers: dict[tuple[str, str], Offered] = {}
    for offer in answer:
        if not isinstance(offer, Offer):
            raise Refusal(f"yielded {offer!r}, which is no Offer")
        whole = _checked_protocol(kind, offer)
        key = (whole.protocol, name_key(whole.name))
        if key in offers:
            raise Refusal(f"offers {offer.name!r} twice")
        offers[key] = Offered(kind, whole, entry)
    return tuple(offers.values())


def _checked_protocol(kind: str, offer: Offer) -> Offer:
    first, *others = KINDS[kind].protocols
    if offer.protocol == first:
        return attrs.evolve(offer, protocol="")
    if offer.protocol and offer.protocol not in others:
        raise Refusal(f"offer {offer.name!r} names protocol {offer.protocol!r}; {kind} has {', '.join(KINDS[kind].protocols)}")
    return offer


def listed(offers: Sequence[Offered]) -> tuple[Offered, ...]:
    """The offers of a kind by name, then distribution; a name that several distributions offer is `ambiguous` (P-24)."""
    marked = []
    for one in offers:
        same = [other for other in offers if other.protocol == one.protocol and name_key(other.name) == name_key(one.name)]
        why = f"several offer it: {', '.join(sorted(other.qualified for other in same))}"
        marked.append(attrs.evolve(one, status="ambiguous", why=why) if len(same) > 1 else one)
    return tuple(sorted(marked, key=lambda offered: (offered.name, offered.distribution, offered.protocol)))
