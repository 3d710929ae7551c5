"""The host: which plugins there are, names to objects, and blame (P-20 to P-25)."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, NoReturn, overload

from blindcast import discovery
from blindcast.blame import ambiguous, broken_target, unknown
from blindcast.discovery import Entry, Plugin, Policy
from blindcast.errors import BlindcastError, FaultError
from blindcast.kinds import KINDS
from blindcast.names import distribution_key, name_key
from blindcast.options import options_of
from blindcast.plain import Plain
from blindcast.registration import Broken, Offered, Refusal, Stage, listed, load, quiet, register
from blindcast.targets import imported, located

if TYPE_CHECKING:
    import click

    from blindcast.contracts import Anonymizer, DataSource, Grader, Importer, Isolation

__all__ = ["Broken", "Host", "Offered", "Plugin"]


class Host:
    """The plugins of one process. `main()` and fixtures make one; discovery runs once, on first need."""

    def __init__(self, environ: Mapping[str, str] | None = None, *, discovers: bool = True) -> None:
        self._environ = os.environ if environ is None else environ
        self._discovers = discovers
        self._is_discovered = not discovers  # an empty host never goes looking by itself (P-52)
        self._plugins: list[Plugin] = []
        self._offers: list[Offered] = []
        self._broken: list[Broken] = []
        self._warnings: tuple[str, ...] = ()

    @property
    def policy(self) -> Policy:
        """What the environment lets load (P-21)."""
        return discovery.policy_of(self._environ)

    @property
    def plugins(self) -> tuple[Plugin, ...]:
        """Every entry point with what became of it, sorted by (distribution, entry point)."""
        self._need()
        return tuple(self._plugins)

    @property
    def broken(self) -> tuple[Broken, ...]:
        """What has failed so far, as data (P-23)."""
        self._need()
        return tuple(self._broken)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Policy items that match nothing installed."""
        self._need()
        return self._warnings

    def discover(self) -> None:
        """Import and register what the policy allows; a failure becomes a Broken and stops nothing. Once."""
        if not self._discovers:
            raise FaultError(
                "plugin_discovery_refused",
                "this host is for tests and discovers nothing",
                expected="plugins registered by `with host.plug(module):`",
                do="use the fixture blindcast_installed to see what is installed",
            )
        if self._is_discovered:
            return
        self._is_discovered = True
        entries = discovery.installed()
        refused = discovery.refusals(entries, self.policy)
        self._warnings = tuple(discovery.unmatched(entries, self.policy))
        for entry in entries:
            if entry in refused:
                self._plugins.append(Plugin(entry, "refused", refused[entry]))
            else:
                self._take(entry, partial(load, entry))

    @contextmanager
    def plug(self, module: ModuleType, distribution: str = "plugged") -> Iterator[None]:
        """Register a module for the block, as if `distribution` had an entry point for it."""
        kept = list(self._plugins), list(self._offers), list(self._broken)
        entry = Entry(distribution_key(distribution), module.__name__.rpartition(".")[2], module.__name__, "0")
        try:
            self._take(entry, lambda: module)
            yield
        finally:
            self._plugins, self._offers, self._broken = kept

    def offers(self, kind: str) -> tuple[Offered, ...]:
        """Every offer of a kind by name, then distribution; names of several distributions are `ambiguous`."""
        self._need()
        if kind not in KINDS:
            raise KeyError(f"no kind of plugin is called {kind!r}; kinds: {', '.join(KINDS)}")
        return listed([offered for offered in self._offers if offered.kind == kind])

    def find(self, kind: str, name: str, protocol: str = "", *, from_spec: bool = False) -> Offered:
        """The one offer that a bare or qualified name means (P-24).

        Raises UsageError `plugin_ambiguous`, `plugin_unknown` as UsageError, DataError (`from_spec`) or FaultError
        (something is broken), FaultError `plugin_none`.
        """
        protocol = "" if protocol == KINDS[kind].protocols[0] else protocol
        offers = [offered for offered in self.offers(kind) if offered.protocol == protocol]
        owner, slash, bare = name.rpartition("/")
        found = [
            offered
            for offered in offers
            if name_key(offered.name) == name_key(bare) and (not slash or offered.distribution == distribution_key(owner))
        ]
        if len(found) == 1:
            return found[0]
        if found:
            raise ambiguous(kind, name, [offered.qualified for offered in found])
        raise unknown(KINDS[kind], name, offers, self.plugins, self.broken, from_spec=from_spec)

    def resolve(self, offered: Offered) -> object:
        """What an offer's target names, imported. Raises FaultError `plugin_broken` naming `requires` (P-25)."""
        target = offered.offer.target
        if not isinstance(target, str):
            return target
        try:
            return imported(target)
        except (Exception, SystemExit) as error:
            self._blame(offered, "resolve", error)

    def options(
        self, kind: str, name: str, options: Mapping[str, object], *, where: str = "", from_spec: bool = False, protocol: str = ""
    ) -> dict[str, object]:
        """The options that `build` would use, defaults filled in, nothing built; Path values are those annotated `Path`."""
        offered = self.find(kind, name, protocol, from_spec=from_spec)
        return self._filled(offered, self._target(offered), options, where)

    @overload
    def build(
        self, kind: Literal["graders"], name: str, options: Mapping[str, object], *, where: str = "", from_spec: bool = False
    ) -> Grader: ...
    @overload
    def build(
        self, kind: Literal["anonymizers"], name: str, options: Mapping[str, object], *, where: str = "", from_spec: bool = False
    ) -> Anonymizer: ...
    @overload
    def build(
        self, kind: Literal["isolations"], name: str, options: Mapping[str, object], *, where: str = "", from_spec: bool = False
    ) -> Isolation: ...
    @overload
    def build(
        self, kind: Literal["datasources"], name: str, options: Mapping[str, object], *, where: str = "", from_spec: bool = False
    ) -> DataSource: ...
    @overload
    def build(
        self,
        kind: Literal["datasources"],
        name: str,
        options: Mapping[str, object],
        *,
        protocol: Literal["Importer"],
        where: str = "",
        from_spec: bool = False,
    ) -> Importer: ...
    @overload
    def build(
        self, kind: str, name: str, options: Mapping[str, object], *, where: str = "", from_spec: bool = False, protocol: str = ""
    ) -> Any: ...
    def build(
        self, kind: str, name: str, options: Mapping[str, object], *, where: str = "", from_spec: bool = False, protocol: str = ""
    ) -> Any:
        """The plugin object of that name with these options; `where` is the path in front of an option's fault.

        Raises DataError for the options (P-31), FaultError for a broken plugin, and what `find` raises.
        """
        return self.make(self.find(kind, name, protocol, from_spec=from_spec), options, where=where)

    def make(self, offered: Offered, options: Mapping[str, object], *, where: str = "") -> Any:
        """Build what an offer targets, as `build` does once the name is found."""
        target = self._target(offered)
        values = self._filled(offered, target, options, where)
        if not inspect.isclass(target):
            return Plain(KINDS[offered.kind], target, values)
        given = {name: value for name, value in values.items() if name in options}
        try:
            with quiet():
                return target(**given)
        except BlindcastError:  # a pool that is not there is the data's fault, not the plugin's
            raise
        except (ValueError, TypeError) as error:
            from blindcast.config import refusal_of

            raise refusal_of(error, target, given, where, where=offered.name) from error
        except (Exception, SystemExit) as error:
            self._blame(offered, "build", error)

    def locate(self, name: str) -> Path:
        """The file, or folder, that is the submission of a predictor offer; nothing of it is imported (P-25)."""
        offered = self.find("predictors", name)
        try:
            return located(str(offered.offer.target))
        except (Exception, SystemExit) as error:
            self._blame(offered, "resolve", error)

    def command(self, name: str) -> click.Command:
        """The command that an offer of kind `commands` targets (PV-19)."""
        import click

        offered = self.find("commands", name)
        found = self.resolve(offered)
        if not isinstance(found, click.Command):
            self._blame(offered, "build", Refusal(f"its target is a {type(found).__name__}, not a click.Command"))
        return found

    def _need(self) -> None:
        if not self._is_discovered:
            self.discover()

    def _take(self, entry: Entry, module_of: Callable[[], object]) -> None:
        plugin, offers, broken = register(entry, module_of)
        self._plugins.append(plugin)
        self._offers += offers
        self._broken += broken

    def _target(self, offered: Offered) -> Callable[..., Any]:
        """The class or plain function to build. Anything else is Broken (`build`)."""
        if offered.kind == "predictors":
            raise TypeError("a predictor is located, never imported or built in the parent (P-25)")
        target = self.resolve(offered)
        if not inspect.isclass(target) and not (inspect.isroutine(target) and KINDS[offered.kind].method):
            what = "a function" if inspect.isroutine(target) else f"a {type(target).__name__}"
            self._blame(offered, "build", Refusal(f"its target is {what}; an offer of {offered.kind} needs a class"))
        return target

    def _filled(self, offered: Offered, target: Callable[..., Any], options: Mapping[str, object], where: str) -> dict[str, object]:
        from blindcast.config import fill  # cattrs: a fifth of the start of a command that builds nothing

        try:
            options_of(target)
        except TypeError as error:
            self._blame(offered, "build", error)
        return fill(options, target, where, where=offered.name)

    def _blame(self, offered: Offered, stage: Stage, error: BaseException) -> NoReturn:
        """Record a Broken (once each) and raise `plugin_broken`."""
        broken = Broken(offered.entry.key, offered.distribution, stage, error, offered.version, offered.kind)
        if broken.line not in [known.line for known in self._broken]:
            self._broken.append(broken)
        raise broken_target(offered, broken) from error
