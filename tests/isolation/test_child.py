"""How a child's end is told (isolation.md section 9), its supervisor played by the test."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest

from blindcast_isolation import child as children
from blindcast_isolation.child import LockedChild, reason_of
from blindcast_isolation.order import Ending, Order

CPU_S = 100
Given = Callable[..., "Played"]


class Played:
    """A child, its supervisor's end of the line, and what was called in what order."""

    def __init__(self, prints: bytes, output_bytes: int) -> None:
        ours, self.line = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        output, self.output = os.pipe()
        os.write(self.output, prints)
        self.called: list[str] = []
        request, answer, pidfd = (os.open(os.devnull, os.O_RDONLY) for _ in range(3))
        order = cast(Order, SimpleNamespace(entry="/submission/predictor.py", cpu=0, uid=None, cpu_s=CPU_S))
        self.child = LockedChild(order, request, answer, pidfd, ours, output, output_bytes, lambda: self.called.append("free"))
        self.child.quarantine = self.called.append

    def ends(self, status: int, cpu_s: float = 0.5) -> None:
        """The supervisor's last word; then it is gone, and so is whoever printed."""
        self.line.send(msgspec.msgpack.encode(Ending(status, cpu_s, 2048)))
        self.close()

    def close(self) -> None:
        self.line.close()
        if self.output >= 0:
            os.close(self.output)
        self.output = -1


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Iterator[Given]:
    monkeypatch.setattr(children, "NATURAL_S", 0.01)
    monkeypatch.setattr(children, "STUCK_S", 0.01)
    made: list[Played] = []

    def play(prints: bytes = b"", output_bytes: int = 1 << 20) -> Played:
        made.append(Played(prints, output_bytes))
        return made[-1]

    yield play
    for played in made:
        played.close()


@pytest.mark.parametrize(
    ("status", "reason"),
    [(0, "exit:0"), (3 << 8, "exit:3"), (signal.SIGKILL, "signal:9"), (signal.SIGSEGV, "signal:11"), (signal.SIGXCPU, "cpu")],
)
def test_a_status_is_a_reason_of_the_closed_list(status: int, reason: str) -> None:
    """I-73."""
    assert reason_of(status) == reason


def test_a_supervisor_that_ends_with_an_unread_order_is_not_lost(given: Given) -> None:
    """I-73: the kernel puts a reset in front of its last word; a child's end must not look like the host's fault."""
    played = given()
    played.child._ask_to_kill()
    played.ends(signal.SIGKILL)
    played.child.kill("step_deadline")
    assert played.child.usage().reason == "step_deadline"
    assert played.child.usage().cpu_s == 0.5


@pytest.mark.parametrize(
    ("asked", "status", "cpu_s", "told"),
    [
        ("", 0, 0.5, "exit:0"),
        ("", 7 << 8, 0.5, "exit:7"),
        ("", signal.SIGSEGV, 0.5, "signal:11"),
        ("", signal.SIGKILL, 0.5, "signal:9"),
        ("", signal.SIGKILL, CPU_S, "cpu"),
        ("ok", 0, 0.5, "ok"),
        ("ok", 7 << 8, 0.5, "exit:7"),
        ("step_deadline", signal.SIGKILL, 0.5, "step_deadline"),
        ("protocol.early", 0, 0.5, "protocol.early"),
    ],
)
def test_an_end_is_told_by_who_caused_it(
    given: Given, monkeypatch: pytest.MonkeyPatch, asked: str, status: int, cpu_s: float, told: str
) -> None:
    """I-73: the parent's reason, else the child's own."""
    monkeypatch.setattr(children, "NATURAL_S", 5.0)
    played = given()
    played.ends(status, cpu_s)
    played.child.kill(asked)
    usage = played.child.usage()
    assert (usage.reason, usage.cpu_s, usage.peak_mib) == (told, cpu_s, 2.0)
    assert played.called == ["free"]


def test_a_child_that_does_not_leave_after_bye_ended_well(given: Given, monkeypatch: pytest.MonkeyPatch) -> None:
    """I-38: killed after its moment; all it had to say was said."""
    played = given()
    monkeypatch.setattr(LockedChild, "_ask_to_kill", lambda self: played.ends(signal.SIGKILL))
    monkeypatch.setattr(children, "STUCK_S", 5.0)
    played.child.kill("ok")
    assert (played.child.usage().reason, played.called) == ("ok", ["free"])


def test_a_child_that_cannot_be_killed_is_stuck_and_its_uid_is_quarantined(given: Given) -> None:
    """I-71: whatever it was killed for, and though it still holds its output."""
    played = given()
    played.child.kill("step_deadline")
    assert played.child.usage().reason == "stuck"
    assert played.called == ["stuck: its child could not be killed", "free"]


def test_a_stuck_child_without_a_slot_is_told_all_the_same(given: Given) -> None:
    """I-71."""
    played = given()
    played.child.quarantine = None
    played.child.kill("")
    assert (played.child.usage().reason, played.called) == ("stuck", ["free"])


@pytest.mark.parametrize(("asked", "told"), [("", "zygote_lost"), ("ok", "zygote_lost"), ("run_deadline", "run_deadline")])
def test_a_supervisor_without_a_last_word_is_lost(given: Given, asked: str, told: str) -> None:
    """I-32."""
    played = given()
    played.close()
    played.child.kill(asked)
    assert (played.child.usage().reason, played.called) == (told, ["free"])


def test_a_second_kill_changes_nothing(given: Given) -> None:
    played = given()
    played.ends(0)
    played.child.kill("step_deadline")
    played.child.kill("cancelled")
    assert (played.child.usage().reason, played.called) == ("step_deadline", ["free"])


def test_too_much_output_is_the_reason_whatever_followed(given: Given, monkeypatch: pytest.MonkeyPatch) -> None:
    """I-73: `output`; the child is killed at once."""
    monkeypatch.setattr(children, "STUCK_S", 5.0)
    played = given(b"\x1b[31m" + b"x" * 2_000, output_bytes=1_000)
    assert played.line.recv(10) == b"k"
    played.ends(signal.SIGKILL)
    played.child.kill("")
    usage = played.child.usage()
    assert (usage.reason, usage.output) == ("output", "x" * 2_000)


def test_a_living_child_is_ok_so_far_and_tells_nothing_of_its_end(given: Given) -> None:
    """I-59, I-73."""
    usage = given(b"a\x1b]0;title\x07b\xe2\x80\xae\n").child.usage()
    assert (usage.reason, usage.cpu_s, usage.peak_mib) == ("ok", None, None)
    assert usage.output in ("", "ab\n")
