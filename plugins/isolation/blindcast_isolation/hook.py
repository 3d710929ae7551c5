"""`hook`: an audit hook, limits, descriptors and environment. A tripwire: it stops accidents (isolation.md I-02, I-05)."""

from __future__ import annotations

import sys
from collections.abc import Collection
from typing import Final

from blindcast.contracts import Child
from blindcast.records import SpawnSpec
from blindcast_isolation.backend import Backend, Design

__all__ = ["WARNING", "Hook"]

WARNING: Final = "isolation hook: a tripwire; it does not stop a determined submission"


class Hook(Backend):
    """Refuses by an audit hook that hostile code can remove."""

    design = Design(
        name="hook",
        classed="tripwire",
        required=("fds", "env", "rlimits", "hook", "no-new-privs"),
        added=("seals",),
    )

    def __init__(self, without: Collection[str] = ()) -> None:
        super().__init__(without)
        self._is_warned = False

    def spawn(self, spec: SpawnSpec) -> Child:
        """A child with the tripwire set. Raises DeniedError `isolation_unavailable`, FaultError `zygote_lost`."""
        if not self._is_warned:
            self._is_warned = True
            sys.stderr.write(f"{WARNING}\n")
        return super().spawn(spec)
