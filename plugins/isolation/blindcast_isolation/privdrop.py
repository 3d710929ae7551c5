"""`privdrop`: a uid of its own per run, in namespaces of its own, with nothing left to gain (isolation.md section 2)."""

from __future__ import annotations

import os
from typing import Final

from blindcast.contracts import Child
from blindcast.records import Control, IsolationReport, Policy, SpawnSpec
from blindcast_isolation.backend import Probed, probe, refuse_unavailable, report, spawn
from blindcast_isolation.launcher import Launcher

__all__ = ["PrivDrop"]

_REQUIRED: Final = ("uid-drop", "no-new-privs", "undumpable", "caps", "fds", "env", "rlimits")
_NAMESPACES: Final = ("netns", "mountns", "pidns", "ipcns", "utsns")  # wherever they can be had
_ORDER: Final = (*_REQUIRED, *_NAMESPACES, "seals", "hook")


class PrivDrop:
    """Drops each child to a uid that nobody else has. Needs root."""

    def __init__(self) -> None:
        self._launcher = Launcher()
        self._probed: Probed | None = None

    def probe(self, policy: Policy) -> IsolationReport:
        """What is in force here, tried by doing the forbidden thing; leaves nothing behind."""
        if os.geteuid() != 0:
            why = "not started by root"
            missing = {name: Control(name, "unavailable", why) for name in _ORDER}
            return report("privdrop", Probed(missing, (), why), _ORDER, _REQUIRED, "uid")
        wanted = (*_REQUIRED, *_NAMESPACES, "hook")
        self._probed = probed = probe(self._launcher, policy, wanted, _NAMESPACES)
        return report("privdrop", probed, _ORDER, _REQUIRED, "pidns" if "pidns" in probed.in_force else "uid")

    def spawn(self, spec: SpawnSpec) -> Child:
        """A locked-down child. Raises DeniedError `isolation_unavailable` or `uid_slots_spent`, FaultError `zygote_lost`."""
        if self._probed is None:
            said = self.probe(spec.policy)
            if self._probed is None or not said.available:
                raise refuse_unavailable("privdrop", said.reason)
        return spawn(self._launcher, spec, self._probed.in_force)

    def close(self) -> None:
        """End the zygote. Safe to repeat."""
        self._launcher.close()
