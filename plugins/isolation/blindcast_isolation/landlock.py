"""`landlock`: for an ordinary uid where no namespace can be had (isolation.md section 2)."""

from __future__ import annotations

from blindcast_isolation.backend import Backend, Design
from blindcast_isolation.cgroup import CONTROLS as GROUP_CONTROLS

__all__ = ["Landlock"]


class Landlock(Backend):
    """Takes files, ports and neighbours away from each child by Landlock, calls by seccomp; names can still be asked for (I-21)."""

    design = Design(
        name="landlock",
        classed="kernel",
        required=("landlock", "no-new-privs", "undumpable", "fds", "env", "seccomp", "rlimits"),
        added=("landlock-net", "landlock-scope", *GROUP_CONTROLS, "seals", "hook"),
    )
