"""The lock-down of a child as one table of steps, in the order of I-10: child, probe and mutation all read it.

A control that fails ends the child: there is no weaker one (I-04).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from attrs import frozen

from blindcast.frames import Log, encode
from blindcast_isolation import linux, witness
from blindcast_isolation.measures import ANSWER, REQUEST, Locking
from blindcast_isolation.order import Order
from blindcast_isolation.selftest import prove
from blindcast_isolation.witness import Missed, Witness

__all__ = ["ANSWER", "DONE", "LANDLOCK", "REQUEST", "STEPS", "NotInForce", "Step", "lock"]

LANDLOCK: Final = ("landlock", "landlock-net", "landlock-scope")
DONE: Final = "done: "  # how a witness's word begins where it did the forbidden thing


class NotInForce(Exception):
    """A control that could not be put in force."""

    def __init__(self, control: str, errno: int, text: str) -> None:
        super().__init__(f"{control}: {text}")
        self.control = control
        self.errno = errno
        self.text = text


@frozen
class Step:
    """One control: how it is set up, what shows it to hold, and which others stop the same (off in both arms of I-93)."""

    control: str
    set_up: Callable[[Locking], None]
    witness: Witness | None = None
    stand_ins: tuple[str, ...] = ()
    is_always: bool = False


def _given(_locking: Locking) -> None:
    """It was set up before this process began."""


STEPS: Final = (
    Step("fds", Locking.close_descriptors, witness.descriptors),
    Step("env", Locking.clear_environment, witness.environment),
    Step("userns", _given, witness.user),
    Step("pidns", _given, witness.processes, ("seccomp", "landlock-scope")),
    Step("netns", lambda child: child.leave("netns")(), witness.network, ("seccomp", "landlock-net")),
    Step("ipcns", lambda child: child.leave("ipcns")(), witness.shared_memory, ("seccomp",)),
    Step("utsns", Locking.name_host, witness.host_name),
    Step("cgroup-kill", Locking.join_group),
    Step("mountns", Locking.enter_root, witness.disk, ("landlock", "seccomp")),
    Step("parents", Locking.open_parents, is_always=True),
    Step("seals", Locking.map_buffer, is_always=True),
    Step("rlimits", Locking.limit, witness.limits, ("cgroup-memory", "cgroup-pids")),
    Step("affinity", Locking.be_nice, is_always=True),
    Step("uid-drop", Locking.drop_uid, witness.uid, ("mountns", "landlock", "seccomp")),
    Step("uid-drop", Locking.refuse_root, is_always=True),
    Step("caps", Locking.drop_capabilities, witness.capabilities, ("seccomp", "uid-drop", "landlock")),
    Step("no-new-privs", lambda _child: linux.forbid_new_privileges(), witness.privileges, ("seccomp", "mountns", *LANDLOCK, "caps")),
    Step("undumpable", lambda _child: linux.forbid_dumps(), witness.dumps, ("seccomp", "mountns", "landlock", "pidns", "uid-drop")),
    Step("kill", Locking.die_with_parent, is_always=True),
    Step("workspace", Locking.enter_workspace, is_always=True),
    Step("landlock", Locking.confine_files, witness.files, ("mountns", "seccomp")),
    Step("landlock-net", Locking.refuse_ports, witness.ports, ("seccomp", "netns")),
    Step("landlock-scope", Locking.stay_in_scope, witness.scope, ("seccomp", "pidns", "netns")),
    Step("seccomp", Locking.filter_calls, witness.calls),
    Step("self-test", lambda child: prove(child), is_always=True),
    Step("hook", Locking.set_hook, witness.hook),
)


@contextmanager
def _as(control: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise NotInForce(control, getattr(error, "errno", None) or 0, f"{type(error).__name__}: {error}") from error


def lock(order: Order, output: int, request: int, answer: int, buffer: int) -> memoryview | None:
    """Lock this process down and return the reveal buffer, mapped read-only. Raises NotInForce.

    A probe says of each control what its witness saw, empty where it holds.
    """
    locking = Locking(order)
    with _as("fds"):
        locking.place(output, request, answer, buffer)
        if order.task == "probe" and os.path.isdir("/proc/self"):
            locking.proc = os.open("/proc/self", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            os.dup2(locking.proc, ANSWER + 2, inheritable=False)
            os.close(locking.proc)
            locking.proc = ANSWER + 2
    if order.task == "probe":
        _probe(locking)
    else:
        for step in STEPS:
            if step.is_always or step.control in order.controls:
                with _as(step.control):
                    step.set_up(locking)
    return linux.read_only_view(locking.mapped, order.buffer_bytes) if locking.mapped else None


def _probe(locking: Locking) -> None:
    """Set up step by step; each witness acts behind its own step, or the one that is asked for acts at the end."""
    order, late = locking.order, None
    for step in STEPS:
        is_in_force = step.is_always or step.control in order.controls
        acts = step.witness is not None and (step.control == order.act if order.act else is_in_force)
        watching = _Watch(step.control, step.witness, locking) if acts and step.witness is not None else None
        if is_in_force:
            with _as(step.control):
                step.set_up(locking)
        if watching is not None and order.act:
            late = watching
        elif watching is not None:
            watching.tell()
    (late or _Watch(witness.INTERPRETER, witness.interpreter, locking)).tell()


class _Watch:
    """A witness that has made ready."""

    def __init__(self, control: str, act: Witness, locking: Locking) -> None:
        self._control = control
        self._word = ""
        self._running = act(locking)
        self._step()

    def _step(self) -> None:
        try:
            next(self._running)
        except StopIteration:
            return
        except Missed as missed:
            self._word = f"{DONE}{missed}"
        except Exception as error:
            self._word = f"{type(error).__name__}: {error}"

    def tell(self) -> None:
        """Act, and say what was seen."""
        if not self._word:
            self._step()
        os.write(ANSWER, encode(Log(self._control, self._word[:500])))
