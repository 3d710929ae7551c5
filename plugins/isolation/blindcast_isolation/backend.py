"""What every backend does: probe its controls in a throw-away child, then spawn children that have them in force."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import ClassVar, Literal

from attrs import asdict, evolve, frozen

from blindcast.contracts import Child
from blindcast.errors import DeniedError, FaultError
from blindcast.printable import printable
from blindcast.records import Control, IsolationReport, Policy, SpawnSpec
from blindcast_isolation.hazards import hazards
from blindcast_isolation.launcher import Launcher
from blindcast_isolation.lockdown import LANDLOCK
from blindcast_isolation.order import ENVIRONMENT
from blindcast_isolation.probe import Probed, describe, measure
from blindcast_isolation.slots import quarantined
from blindcast_isolation.spawning import Spawning

__all__ = ["LANDLOCK", "NAMESPACES", "Backend", "Design"]

NAMESPACES = ("mountns", "pidns", "netns", "ipcns")
_ROOTS = ("uid-drop", "caps")  # started by root no predictor runs as uid 0 (I-05)


@frozen
class Design:
    """One row of the table of backends (I-01): what it requires, of which one of `either`, and what it adds where it can be had."""

    name: str
    classed: Literal["kernel", "tripwire"]
    required: tuple[str, ...]
    added: tuple[str, ...] = ()
    either: tuple[str, ...] = ()
    given: tuple[str, ...] = ()  # what stands around its zygote already
    needs_root: bool = False

    def required_of(self, *, is_root: bool) -> tuple[str, ...]:
        """The controls required of who starts it."""
        return tuple(dict.fromkeys((*self.required, *(_ROOTS if is_root else ()))))


class Backend:
    """A zygote, and children locked down as `design` says. `without` switches controls off, to show what each of them stops (I-93)."""

    design: ClassVar[Design]

    def __init__(self, without: Collection[str] = ()) -> None:
        self._without = frozenset(without)
        self._launcher = Launcher(environ=os.environ if "env" in self._without else ENVIRONMENT)
        self._probed: Probed | None = None
        self._against = ""  # why no child may be had, by the last probe; empty where it may

    def probe(self, policy: Policy) -> IsolationReport:
        """What is in force here, tried by doing the forbidden thing; leaves nothing behind."""
        design, is_root = self.design, os.geteuid() == 0
        required = design.required_of(is_root=is_root)
        wanted = tuple(name for name in dict.fromkeys((*required, *design.either, *design.added)) if name not in self._without)
        against = self.lacks(is_root=is_root)
        if against:
            probed = _none(wanted, "unavailable", against)
        else:
            probed = self._measured(policy, wanted, required)
        off = {name: Control(name, "failed", "switched off, to see what then works") for name in self._without}
        self._probed = probed = probed.told(off)
        report = describe(design.name, design.classed, probed, (*required, *design.either, *design.added), required, design.either)
        self._against = report.reason
        spoilt = quarantined()
        warned = hazards(policy.raw_roots, os.environ, spoilt, is_root=is_root)
        return evolve(report, detail={**report.detail, "warnings": warned, "quarantined": [asdict(uid) for uid in spoilt]})

    def _measured(self, policy: Policy, wanted: tuple[str, ...], required: tuple[str, ...]) -> Probed:
        """What a child of ours has; nothing, with the reason, where none can be started."""
        try:
            return measure(self.spawning(), policy, wanted, frozenset(wanted) - set(required) - {"hook"}, self.design.given)
        except FaultError as fault:
            return _none(wanted, "failed", printable(fault.what))

    @property
    def in_force(self) -> tuple[str, ...]:
        """What the last probe found to hold, and every child has."""
        return () if self._probed is None else self._probed.in_force

    def lacks(self, *, is_root: bool) -> str:
        """Why this backend cannot be had here at all; empty where it may."""
        return "not started by root" if self.design.needs_root and not is_root else ""

    def spawning(self) -> Spawning:
        """How a child comes to be."""
        return Spawning(lambda _spec, _group: self._launcher, self.design.given)

    def spawn(self, spec: SpawnSpec) -> Child:
        """A locked-down child.

        Raises DeniedError `isolation_unavailable`, `raw_root_exposed`, `uid_slots_spent` or `setup:<control>`, FaultError `zygote_lost`.
        """
        if self._probed is None:
            self.probe(spec.policy)
        if self._against and not self._without:
            raise DeniedError(
                "isolation_unavailable",
                f"isolation {self.design.name} is not available here: {self._against}",
                expected="every control that the backend requires",
                do="`blindcast isolation show` says what each backend lacks here",
            )
        return self.spawning().spawn(spec, self.in_force)

    def close(self) -> None:
        """End the zygote. Safe to repeat."""
        self._launcher.close()


def _none(wanted: tuple[str, ...], state: Literal["unavailable", "failed"], why: str) -> Probed:
    """Nothing is in force, and why."""
    return Probed({name: Control(name, state, why) for name in wanted}, (), why)
