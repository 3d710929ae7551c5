"""What each step of the lock-down sets up in the child (isolation.md I-10). Each raises OSError or ValueError where it cannot."""

from __future__ import annotations

import fcntl
import os
import resource
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from attrs import define, field

from blindcast_isolation import linux, root, ruleset, seccomp
from blindcast_isolation.advice import advise
from blindcast_isolation.order import ENVIRONMENT, Order
from blindcast_isolation.tripwire import set_tripwire

__all__ = ["ANSWER", "BUFFER", "HOST_NAME", "REQUEST", "Locking"]

REQUEST: Final = 3
ANSWER: Final = 4
BUFFER: Final = 5
HOST_NAME: Final = "blindcast"
_ABOVE: Final = 64  # descriptors are moved here first, so that none is overwritten
_STACK: Final = 8 << 20  # bytes


@define(eq=False)
class Locking:
    """A child while it is locked down. `proc` is a probe's own entry of /proc, kept for its witnesses; -1 where there is none."""

    order: Order
    parent: int = field(factory=os.getppid)
    mapped: int = 0  # the buffer's address
    proc: int = -1

    def place(self, output: int, request: int, answer: int, buffer: int) -> None:
        """The table of I-11, with the buffer behind it until it is mapped. What else is open stays so."""
        null = os.open(os.devnull, os.O_RDONLY) if os.path.exists(os.devnull) else 0  # a zygote's 0 is one, but all its children share it
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, _ABOVE) for fd in (null, output, output, request, answer, buffer)]
        for target, fd in enumerate(high):
            os.dup2(fd, target)
            os.close(fd)
        os.set_inheritable(BUFFER, False)

    def close_descriptors(self) -> None:
        """Nothing but the table; a probe's own entry of /proc goes with the self-test."""
        os.closerange(max(BUFFER, self.proc) + 1, os.sysconf("SC_OPEN_MAX"))

    def clear_environment(self) -> None:
        """I-12, and a session of its own without a terminal."""
        os.environ.clear()
        os.environ.update(ENVIRONMENT)
        os.umask(0o077)
        os.setsid()

    def leave(self, control: str) -> Callable[[], None]:
        """Go into a namespace of its own, unless one stands around this child already."""
        return lambda: None if control in self.order.given else linux.unshare(linux.CLONE[control])

    def name_host(self) -> None:
        """A host name that is the same everywhere."""
        if "utsns" not in self.order.given:
            linux.unshare(linux.CLONE["utsns"])
            socket.sethostname(HOST_NAME)

    def join_group(self) -> None:
        """Go into the run's cgroup, from which nothing that is started here can get away."""
        if "cgroup-kill" not in self.order.given:
            with open(f"{self.order.cgroup}/cgroup.procs", "w") as procs:
                procs.write("0")

    def enter_root(self) -> None:
        """Step 5: the private root (I-20)."""
        if "mountns" not in self.order.given:
            linux.unshare(linux.CLONE["mountns"])
            os.umask(0o022)
            root.enter(self.order.binds, self.order.submission, self.order.entry, self.order.workspace, self.order.data)
            os.umask(0o077)

    def open_parents(self) -> None:
        """Without a root of its own: let a slot's uid through closed folders to interpreter and submission (I-22)."""
        if self.order.closed:
            linux.unshare(linux.CLONE["mountns"])
            os.umask(0o022)
            data = (self.order.data,) if self.order.data else ()
            root.open_parents(self.order.closed, (*self.order.binds, self.order.submission, *data), self.writable())
            os.umask(0o077)
            os.chdir("/")

    def map_buffer(self) -> None:
        """Step 6: the reveal buffer, read-only; its descriptor goes. Where there is none, the place is of standard error."""
        if self.order.task == "code":
            os.dup2(BUFFER, 2)
        elif self.order.buffer_bytes:
            self.mapped = linux.map_read_only(BUFFER, self.order.buffer_bytes)
        os.close(BUFFER)

    def limit(self) -> None:
        """Step 7: section 8, nice 10, the slot's CPU."""
        order = self.order
        limits = {
            resource.RLIMIT_AS: order.memory_mb << 20,
            resource.RLIMIT_CPU: order.cpu_s,
            resource.RLIMIT_NPROC: order.threads,
            resource.RLIMIT_NOFILE: order.open_files,
            resource.RLIMIT_FSIZE: order.file_mb << 20,
            resource.RLIMIT_CORE: 0,
            resource.RLIMIT_MEMLOCK: 0,
            resource.RLIMIT_MSGQUEUE: 0,
        }
        for kind, limit in limits.items():
            hard = resource.getrlimit(kind)[1]
            kept = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
            resource.setrlimit(kind, (kept, kept))
        soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
        if soft == resource.RLIM_INFINITY or soft > _STACK:
            resource.setrlimit(resource.RLIMIT_STACK, (_STACK, hard))

    def be_nice(self) -> None:
        """Nice to the server, on one CPU; not a limit, so it stands in every child."""
        os.nice(10)
        os.sched_setaffinity(0, {self.order.cpu})

    def drop_uid(self) -> None:
        """Step 8: the slot's uid, for good."""
        uid = self.order.uid
        if uid is None:
            raise ValueError("no uid was given to drop to")
        linux.drop_bounding_set()
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)

    def drop_capabilities(self) -> None:
        """Step 8: all sets, the bounding one too where the child may still take from it (with a slot it has gone with the uid)."""
        with suppress(PermissionError):
            linux.drop_bounding_set()
        linux.drop_capabilities()

    def refuse_root(self) -> None:
        """Here nobody is uid 0 any more (I-05); a probe of one control may be."""
        if 0 in os.getresuid() and not self.order.act:
            raise PermissionError("no predictor runs as uid 0 (I-05)")

    def die_with_parent(self) -> None:
        """Behind the change of uid, which clears the death signal. In a pid namespace of its own the parent reads 0 both times."""
        linux.die_with_parent()
        if os.getppid() != self.parent:
            raise ProcessLookupError("the parent is gone")

    def enter_workspace(self) -> None:
        """Stand where the code of `run_code` stands; later no folder can be changed to."""
        for folder in self.writable():
            os.chdir(folder)

    def confine_files(self) -> None:
        """Step 9: read what is bound or listed, and write nothing but the workspace."""
        ruleset.restrict(readable(self.order), self.writable(), refuses_net=False, scopes=False)

    def refuse_ports(self) -> None:
        """No TCP, in a layer of its own."""
        ruleset.restrict(None, self.writable(), refuses_net=True, scopes=False)

    def stay_in_scope(self) -> None:
        """Neither signals nor abstract sockets of outsiders, in a layer of its own."""
        ruleset.restrict(None, self.writable(), refuses_net=False, scopes=True)

    def writable(self) -> tuple[str, ...]:
        """The one folder that may be written, where there is one."""
        if not self.order.workspace:
            return ()
        return (root.WORKSPACE if "mountns" in self.order.controls else self.order.workspace,)

    def filter_calls(self) -> None:
        """Step 10: the allow-list of system calls."""
        seccomp.install(seccomp.program("code" if self.order.task == "code" else "predictor"))

    def set_hook(self) -> None:
        """The tripwire, which explains what the others refuse."""
        advise(writes=bool(self.order.workspace))
        set_tripwire(readable(self.order), self.writable())


def readable(order: Order) -> tuple[str, ...]:
    """What a child reads: the interpreter, the libraries, the submission and what it was shown."""
    if "mountns" in order.controls:
        extra = tuple(path for path, is_there in ((root.WORKSPACE, order.workspace), (root.DATA, order.data)) if is_there)
    else:
        extra = tuple(path for path in (order.workspace, order.data) if path)
    own = order.entry.rpartition("/")[0] if order.is_folder else order.entry
    return (*order.binds, *root.system_paths(), own, *extra)
