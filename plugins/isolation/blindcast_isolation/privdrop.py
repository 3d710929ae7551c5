"""`privdrop`: a uid of its own per run, in namespaces of its own, with nothing left to gain (isolation.md section 2)."""

from __future__ import annotations

from blindcast_isolation.backend import LANDLOCK, Backend, Design
from blindcast_isolation.cgroup import CONTROLS as GROUP_CONTROLS

__all__ = ["PrivDrop"]


class PrivDrop(Backend):
    """Drops each child to a uid that nobody else has. Needs root."""

    design = Design(
        name="privdrop",
        classed="kernel",
        required=("uid-drop", "no-new-privs", "undumpable", "caps", "fds", "env", "seccomp", "rlimits"),
        either=("mountns", "landlock"),
        added=("netns", "pidns", "ipcns", "utsns", *LANDLOCK, *GROUP_CONTROLS, "seals", "hook"),
        needs_root=True,
    )
