"""`hook`: an audit hook, limits, descriptors and environment. A tripwire: it stops accidents (isolation.md I-02, I-05)."""

from __future__ import annotations

import os
import sys
from typing import Final

from blindcast.contracts import Child
from blindcast.records import IsolationReport, Policy, SpawnSpec
from blindcast_isolation.backend import Probed, probe, refuse_unavailable, report, spawn
from blindcast_isolation.launcher import Launcher

__all__ = ["WARNING", "Hook"]

WARNING: Final = "isolation hook: a tripwire; it does not stop a determined submission"

_REQUIRED: Final = ("fds", "env", "rlimits", "hook", "no-new-privs")
_ROOTS: Final = ("uid-drop", "caps")  # started by root no predictor runs as uid 0
_ORDER: Final = (
    "uid-drop",
    "no-new-privs",
    "undumpable",
    "caps",
    "fds",
    "env",
    "rlimits",
    "mountns",
    "netns",
    "pidns",
    "ipcns",
    "utsns",
    "seals",
    "hook",
)


class Hook:
    """Refuses by an audit hook that hostile code can remove."""

    def __init__(self) -> None:
        self._launcher = Launcher()
        self._probed: Probed | None = None
        self._is_warned = False

    def probe(self, policy: Policy) -> IsolationReport:
        """What is in force here, tried by doing the forbidden thing; leaves nothing behind."""
        required = (*_REQUIRED, *_ROOTS) if os.geteuid() == 0 else _REQUIRED
        self._probed = probed = probe(self._launcher, policy, (*required, "undumpable"), ())
        return report("hook", probed, _ORDER, required, "uid" if os.geteuid() == 0 else "orphans")

    def spawn(self, spec: SpawnSpec) -> Child:
        """A child with the tripwire set. Raises DeniedError `isolation_unavailable`, FaultError `zygote_lost`."""
        if not self._is_warned:
            self._is_warned = True
            sys.stderr.write(f"{WARNING}\n")
        if self._probed is None:
            said = self.probe(spec.policy)
            if self._probed is None or not said.available:
                raise refuse_unavailable("hook", said.reason)
        return spawn(self._launcher, spec, self._probed.in_force)

    def close(self) -> None:
        """End the zygote. Safe to repeat."""
        self._launcher.close()
