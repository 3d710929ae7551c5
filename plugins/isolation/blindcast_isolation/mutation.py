"""Each control switched off in turn: its witness must be stopped with it and get through without it (isolation.md I-93).

The witnesses do forbidden things, so this runs inside a throw-away namespace only.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from blindcast.buffer import RevealBuffer
from blindcast.records import Policy
from blindcast_isolation.backend import Backend
from blindcast_isolation.lockdown import DONE, STEPS, Step
from blindcast_isolation.probe import tried

__all__ = ["Mutation", "mutations"]


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

    @property
    def line(self) -> str:
        """What was seen, in words."""
        behind = f" ({', '.join(self.off)} off)" if self.off else ""
        return f"{self.control}{behind}: with it {self.with_it or 'stopped'}; without it {self.without_it or 'stopped'}"


def mutations(kind: type[Backend], policy: Policy) -> Iterator[Mutation]:
    """Both arms of every control that has a witness and is in force here. None where another program made the walls."""
    if kind.design.given:
        return
    backend = kind()
    try:
        backend.probe(policy)
        for step in STEPS:
            if step.witness is not None and step.control in backend.in_force:
                yield _both(backend, step, policy)
    finally:
        backend.close()


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
