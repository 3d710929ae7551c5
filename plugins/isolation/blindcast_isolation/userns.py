"""`userns`: namespaces for everyone who may make a user namespace (isolation.md section 2)."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

from blindcast_isolation.backend import LANDLOCK, NAMESPACES, Backend, Design
from blindcast_isolation.cgroup import CONTROLS as GROUP_CONTROLS

__all__ = ["UserNamespaces", "forbidden"]

LIMIT: Final = Path("/proc/sys/user/max_user_namespaces")


class UserNamespaces(Backend):
    """Puts each child into a user namespace and the others behind it."""

    design = Design(
        name="userns",
        classed="kernel",
        required=("userns", *NAMESPACES, "caps", "no-new-privs", "undumpable", "fds", "env", "seccomp", "rlimits"),
        added=("utsns", *LANDLOCK, *GROUP_CONTROLS, "seals", "hook"),
    )

    def lacks(self, *, is_root: bool) -> str:
        """Why there are no user namespaces here."""
        return forbidden()


def forbidden() -> str:
    """Why nobody may make a user namespace here; empty where somebody may, if nothing else refuses it."""
    with suppress(OSError):
        if LIMIT.read_text(encoding="ascii").strip() == "0":
            return f"user namespaces are forbidden here: {LIMIT} is 0"
    return ""
