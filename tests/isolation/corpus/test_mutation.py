"""The strongest backend's controls, each switched off in turn; `blindcast isolation test --mutate` tries them all."""

from __future__ import annotations

import os

import pytest

from blindcast.errors import DeniedError
from blindcast_isolation.corpus.launch import arms, mutate
from blindcast_isolation.lockdown import STEPS
from blindcast_isolation.mutation import Mutation, column, text

STRONGEST = "privdrop" if os.geteuid() == 0 else "userns"
DECIDE = {"no-new-privs", "fds", "env", "seccomp", "landlock", "mountns", "netns", "pidns"}


def test_each_control_alone_stops_its_witness_and_without_it_that_gets_through() -> None:
    """I-93: in a throw-away namespace, with the stand-ins off in both arms."""
    arm = next(arm for arm in arms((STRONGEST,)) if arm.uid is None)
    try:
        found = mutate((arm,))[arm]
    except DeniedError as refusal:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(f"{refusal.code}: {refusal.what}")
    assert [row for row in found["mutations"] if not row["ok"]] == []
    assert {row["control"] for row in found["mutations"]} >= DECIDE


def test_a_control_that_stops_nothing_is_not_proved() -> None:
    """I-93: stopped in both arms, it is another that stops it."""
    assert not Mutation("netns", (), "", "").is_proved
    assert not Mutation("netns", (), "", "Otherwise: refused by another error").is_proved
    assert not Mutation("netns", (), "done: reached", "done: reached").is_proved
    assert Mutation("netns", ("seccomp",), "", "done: reached").is_proved


def test_what_bubblewrap_made_is_not_claimed() -> None:
    """I-93: a control that cannot be switched off has no row."""
    found = column("bwrap", (61_000, 61_009))
    assert not found["available"]
    assert text({"bwrap": found}) == "bwrap: its walls are not of this table's making: none can be switched off\n"


def test_every_control_with_a_set_up_of_its_own_has_a_witness() -> None:
    """I-90: but for what holds in every child, and the group, whose witness is the kill itself."""
    silent = {step.control for step in STEPS if step.witness is None and not step.is_always}
    assert silent == {"cgroup-kill"}
