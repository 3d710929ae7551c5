"""A backend of somebody else's, and what it looks like with one thing wrong: each mutant fails one isolation check."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from attrs import evolve

from blindcast import Offer, hookimpl
from blindcast.contracts import Child
from blindcast.errors import DeniedError
from blindcast.records import IsolationReport, Policy, SpawnSpec
from blindcast.testing.scene import POLICY
from blindcast_isolation import launcher
from blindcast_isolation.cgroup import make_group
from blindcast_isolation.hook import Hook
from blindcast_isolation.order import ENVIRONMENT
from blindcast_isolation.privdrop import PrivDrop
from blindcast_isolation.userns import UserNamespaces

Base = PrivDrop if os.geteuid() == 0 else UserNamespaces


class Cell(Base):  # type: ignore[valid-type,misc]  # whichever this user may have
    """The honest twin. A mutant switches controls `off` and says nothing of it, or patches the zygote that its children come from."""

    design = evolve(Base.design, name="cell")
    off: ClassVar[tuple[str, ...]] = ()
    patch: ClassVar[str] = ""

    def __init__(self) -> None:
        super().__init__(self.off)
        if self.patch not in launcher._PROGRAM:
            launcher._PROGRAM = launcher._PROGRAM.replace("serve(int", f"{self.patch}serve(int")  # type: ignore[misc]  # in a process of its own

    def probe(self, policy: Policy) -> IsolationReport:
        report: IsolationReport = super().probe(policy)
        return evolve(report, available=True, reason="") if self.off else report


class Leftover(Cell):
    """Forgets a temporary folder."""

    def probe(self, policy: Policy) -> IsolationReport:
        tempfile.mkdtemp(prefix="forgotten-")
        return super().probe(policy)


class Lingering(Cell):
    """Forgets a process."""

    def probe(self, policy: Policy) -> IsolationReport:
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        return super().probe(policy)


class Group(Cell):
    """Leaves its cgroup."""

    def probe(self, policy: Policy) -> IsolationReport:
        make_group()
        return super().probe(policy)


class Downgrade(Cell):
    """Falls back to the hook."""

    def __init__(self) -> None:
        super().__init__()
        self.weaker = Hook()

    def spawn(self, spec: SpawnSpec) -> Child:
        try:
            if spec.cpu is None or spec.cpu in os.sched_getaffinity(0):
                made: Child = super().spawn(spec)
                return made
        except DeniedError:
            pass
        return self.weaker.spawn(evolve(spec, cpu=None, policy=evolve(spec.policy, uid_range=POLICY.uid_range)))

    def close(self) -> None:
        super().close()
        self.weaker.close()


class Wishful(Cell):
    """Reports the wish."""

    off = ("pidns",)

    def probe(self, policy: Policy) -> IsolationReport:
        report = super().probe(policy)
        return evolve(report, controls=tuple(evolve(one, state="active") if one.id in self.off else one for one in report.controls))


class Crowded(Cell):
    """Gives a child the threads of the host."""

    def spawn(self, spec: SpawnSpec) -> Child:
        made: Child = super().spawn(spec)
        rows = Path(f"/proc/self/fdinfo/{made.pidfd}").read_text().splitlines()
        pid = next(int(row.split()[1]) for row in rows if row.startswith("Pid:"))
        deadline = time.monotonic() + 10
        with suppress(ProcessLookupError):
            while len(os.sched_getaffinity(pid)) > 1 and time.monotonic() < deadline:
                time.sleep(0.001)
            os.sched_setaffinity(pid, range(os.cpu_count() or 1))
        return made


class GroupKill(Cell):
    """Kills the group."""

    off = ("seccomp", "pidns", "cgroup-kill")
    patch = """
import os, signal
from blindcast_isolation import supervisor
def end(order, pid, pidfd, line):
    os.killpg(pid, signal.SIGKILL)
    _, status, usage = os.wait4(pid, 0)
    line.send(supervisor.msgspec.msgpack.encode(supervisor.Ending(status, 0.0, 0)))
supervisor._end = end
"""

    def probe(self, policy: Policy) -> IsolationReport:
        return evolve(super().probe(policy), kill="all of it")


class Polite(Cell):
    """SIGTERM, then waits."""

    patch = """
import select, signal
from blindcast_isolation import supervisor
final = supervisor._end
def end(order, pid, pidfd, line):
    signal.pidfd_send_signal(pidfd, signal.SIGTERM)
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    poll.poll(2_000)
    final(order, pid, pidfd, line)
supervisor._end = end
"""


class Inheriting(Cell):
    """Inherits the environment."""

    off = ("env",)
    patch = """
from blindcast_isolation import lockdown
lockdown.prove = lambda locking: None
"""

    def __init__(self) -> None:
        super().__init__()
        self._launcher = launcher.Launcher(environ={**os.environ, **ENVIRONMENT})


class Reader(Cell):
    """Reads the pipe to its end."""

    def spawn(self, spec: SpawnSpec) -> Child:
        limits = evolve(spec.policy.limits, output_bytes=1 << 34)
        made: Child = super().spawn(evolve(spec, policy=evolve(spec.policy, limits=limits)))
        return made


class OneFolder(Cell):
    """One temporary folder for all."""

    patch = """
from blindcast_isolation import seccomp
narrow = seccomp.program
seccomp.program = lambda profile="predictor": narrow("code")
"""

    def spawn(self, spec: SpawnSpec) -> Child:
        folder = Path(tempfile.gettempdir(), "for-all")
        folder.mkdir(exist_ok=True)
        made: Child = super().spawn(evolve(spec, workspace=folder))
        return made


class Open(Cell):
    """No seccomp."""

    off = ("seccomp",)


@hookimpl
def isolations() -> Iterator[Offer]:
    for kind in (Cell, *Cell.__subclasses__()):
        yield Offer(kind.__name__.lower(), f"acme_cells:{kind.__name__}", "a cell of somebody else's")
