"""`userns`: namespaces for everyone who may make a user namespace (isolation.md section 2)."""

from __future__ import annotations

from blindcast_isolation.backend import LANDLOCK, NAMESPACES, Backend, Design
from blindcast_isolation.cgroup import CONTROLS as GROUP_CONTROLS

__all__ = ["UserNamespaces"]


class UserNamespaces(Backend):
    """Puts each child into a user namespace and the others behind it."""

    design = Design(
        name="userns",
        classed="kernel",
        required=("userns", *NAMESPACES, "caps", "no-new-privs", "undumpable", "fds", "env", "seccomp", "rlimits"),
        added=("utsns", *LANDLOCK, *GROUP_CONTROLS, "seals", "hook"),
    )
