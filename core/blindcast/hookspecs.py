"""Every hook of blindcast, and the record that they yield. See `contracts.py` for what each kind must do."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import pluggy
from attrs import field, frozen

if TYPE_CHECKING:
    from attrs import Attribute

    from blindcast.records import RunFacts, WindowFacts

__all__ = ["API", "Hooks", "Offer", "hookimpl", "hookspec"]

API = 1  # raised when a hook is removed or changes its meaning (P-15)

hookspec = pluggy.HookspecMarker("blindcast")
hookimpl = pluggy.HookimplMarker("blindcast")

NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")
TARGET = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


def _check_name(_offer: Offer, _attribute: Attribute[str], value: str) -> None:
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise ValueError(f"an offer's name must match {NAME.pattern}, got {value!r}")


def _check_target(_offer: Offer, _attribute: Attribute[object], value: object) -> None:
    if isinstance(value, str) and not TARGET.fullmatch(value):
        raise ValueError(f"an offer's target must read pkg.mod:attr, got {value!r}")


def _check_summary(_offer: Offer, _attribute: Attribute[str], value: str) -> None:
    if not isinstance(value, str) or not 1 <= len(value) <= 72 or "\n" in value:
        raise ValueError(f"an offer's summary must be one line of 1 to 72 characters, got {value!r}")


def _requirements(items: Iterable[str]) -> tuple[str, ...]:
    if isinstance(items, str):
        raise ValueError(f"an offer's requires must be several requirements, got the one text {items!r}")
    return tuple(items)


@frozen
class Offer:
    """One thing a plugin offers under a name (P-10).

    `target` is `pkg.mod:attr`, imported on first use; an object only in tests. `protocol` names a kind's second
    Protocol (`Importer`). `requires` lists the pip requirements to name when the import fails.
    """

    name: str = field(validator=_check_name)
    target: str | object = field(validator=_check_target)
    summary: str = field(validator=_check_summary)
    protocol: str = field(default="", kw_only=True)
    requires: tuple[str, ...] = field(default=(), kw_only=True, converter=_requirements)


class Hooks:
    """The thirteen registration hooks, which take no argument and yield offers, and the three observers."""

    @hookspec
    def datasources(self) -> Iterable[Offer]:
        """Sources of windows; with `protocol="Importer"`, readers of raw recordings."""
        raise NotImplementedError

    @hookspec
    def anonymizers(self) -> Iterable[Offer]:
        """What turns a window into something nameless."""
        raise NotImplementedError

    @hookspec
    def graders(self) -> Iterable[Offer]:
        """What pays a window's curves."""
        raise NotImplementedError

    @hookspec
    def isolations(self) -> Iterable[Offer]:
        """What runs hostile code in a child."""
        raise NotImplementedError

    @hookspec
    def executors(self) -> Iterable[Offer]:
        """What runs many jobs at once."""
        raise NotImplementedError

    @hookspec
    def evidence_stores(self) -> Iterable[Offer]:
        """Where evidence rows are kept."""
        raise NotImplementedError

    @hookspec
    def catalogues(self) -> Iterable[Offer]:
        """What lists the strategies that exist."""
        raise NotImplementedError

    @hookspec
    def authorities(self) -> Iterable[Offer]:
        """Who decides who may do what."""
        raise NotImplementedError

    @hookspec
    def probes(self) -> Iterable[Offer]:
        """What looks for leaks and luck in a predictor."""
        raise NotImplementedError

    @hookspec
    def predictors(self) -> Iterable[Offer]:
        """Shipped submissions, by name. Located, never imported in the parent (P-25)."""
        raise NotImplementedError

    @hookspec
    def frontends(self) -> Iterable[Offer]:
        """Doors through which agents meet a task."""
        raise NotImplementedError

    @hookspec
    def reports(self) -> Iterable[Offer]:
        """What renders runs for people."""
        raise NotImplementedError

    @hookspec
    def commands(self) -> Iterable[Offer]:
        """Further commands of the command line."""
        raise NotImplementedError

    @hookspec
    def run_started(self, run: RunFacts) -> None:
        """A run's first target is about to be revealed. Cannot change a result."""

    @hookspec
    def window_scored(self, run: RunFacts, window: WindowFacts) -> None:
        """A window's status is fixed. Cannot change a result."""

    @hookspec
    def run_finished(self, run: RunFacts) -> None:
        """A run's directory is in place. Cannot change a result."""
