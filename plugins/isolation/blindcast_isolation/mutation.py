"""Each control switched off in turn: its witness must be stopped with it and get through without it (isolation.md I-93).

The witnesses do forbidden things, so this runs inside a throw-away namespace only.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, Final

from attrs import frozen

from blindcast.buffer import RevealBuffer
from blindcast.records import Policy
from blindcast_isolation.backend import Backend
from blindcast_isolation.landlock import Landlock
from blindcast_isolation.lockdown import DONE, STEPS, Step
from blindcast_isolation.privdrop import PrivDrop
from blindcast_isolation.probe import tried
from blindcast_isolation.userns import UserNamespaces

__all__ = ["Mutation", "column", "mutations", "text"]

KINDS: Final[Mapping[str, type[Backend]]] = {"privdrop": PrivDrop, "userns": UserNamespaces, "landlock": Landlock}


@frozen
class Mutation:
    """One control and its witness: `with_it` is empty where the act was stopped, `without_it` says what was done."""

    control: str
    off: tuple[str, ...]  # the stand-ins, in both arms
    with_it: str
    without_it: str

    @property
    def is_proved(self) -> bool:
        """Whether this control, and no other, is what stopped the act."""
        return not self.with_it and self.without_it.startswith(DONE)


def mutations(kind: type[Backend], policy: Policy) -> Iterator[Mutation]:
    """Both arms of every control that has a witness and is in force here."""
    backend = kind()
    try:
        backend.probe(policy)
        for step in STEPS:
            if step.witness is not None and step.control in backend.in_force and _can_be_missed(step.control):
                yield _both(backend, step, policy)
    finally:
        backend.close()


def _can_be_missed(control: str) -> bool:
    """Whether a child can be had without it: an ordinary user makes every other namespace inside a user namespace."""
    return control != "userns" or os.geteuid() == 0


def _both(backend: Backend, step: Step, policy: Policy) -> Mutation:
    stand_ins = (*step.stand_ins, "hook") if step.control != "hook" else step.stand_ins  # no test counts on the hook (I-02)
    off = tuple(name for name in stand_ins if name in backend.in_force)
    left = tuple(name for name in backend.in_force if name not in off)
    without = tuple(name for name in left if name != step.control)
    with_it = _word(backend, step.control, left, policy)
    if step.control != "env":
        return Mutation(step.control, off, with_it, _word(backend, step.control, without, policy))
    unclean = type(backend)(("env",))  # a zygote that was exec'd with the server's environment
    try:
        return Mutation(step.control, off, with_it, _word(unclean, step.control, without, policy))
    finally:
        unclean.close()


def _word(backend: Backend, control: str, controls: tuple[str, ...], policy: Policy) -> str:
    """What the control's witness says under these controls; how its child failed, where it said nothing."""
    buffer = RevealBuffer(("p",), 1, 1, 1)
    try:
        said = tried(backend.spawning(), policy, buffer, controls, control)
    finally:
        buffer.close()
    if said.failed is not None:
        return f"no child: {said.failed.control}: {said.failed.text}"
    return said.words.get(control, "the witness said nothing")


def column(name: str, uid_range: tuple[int, int]) -> dict[str, Any]:
    """One backend's mutations as a plain table; `available` is whether there are any."""
    if name not in KINDS:
        return {"available": False, "reason": "its walls are not of this table's making: none can be switched off", "mutations": []}
    found = list(mutations(KINDS[name], Policy(uid_range=uid_range)))
    rows = [{"control": one.control, "off": one.off, "with": one.with_it, "without": one.without_it, "ok": one.is_proved} for one in found]
    return {"available": bool(rows), "reason": "" if rows else "not available here", "mutations": rows}


def text(columns: Mapping[str, Mapping[str, Any]]) -> str:
    """What people read: each control, what was seen with it and without it."""
    lines = []
    for title, one in columns.items():
        lines.append(title if one["available"] else f"{title}: {one['reason']}")
        for row in one["mutations"]:
            off = f"  (off in both: {', '.join(row['off'])})" if row["off"] else ""
            seen = (
                f"stopped; without it {row['without']}"
                if row["ok"]
                else f"with it {row['with'] or 'stopped'}; without it {row['without'] or 'stopped'}"
            )
            lines.append(f"  {'ok ' if row['ok'] else 'NOT'} {row['control']:<15} {seen}{off}")
    return "\n".join(lines) + "\n"
