"""The server's end of a zygote: it starts one, asks it for children, and renews it (I-30, I-32)."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import Final

import msgspec

from blindcast.errors import FaultError
from blindcast_isolation.child import LockedChild
from blindcast_isolation.order import ENVIRONMENT, Order

__all__ = ["Launcher", "source_roots"]

FORKS: Final = 2_000  # children of one zygote
_NEEDED: Final = ("blindcast", "blindcast_isolation", "msgspec", "attrs", "numpy", "pandas")
_START_S: Final = 10.0
_PROGRAM: Final = """\
import sys
sys.path += [path for path in sys.argv[3:] if path not in sys.path]
from blindcast_isolation.zygote import serve
serve(int(sys.argv[1]), is_lone=sys.argv[2] == "lone")
"""


def source_roots() -> list[str]:
    """The folders that hold what a zygote imports: `-I` hears neither PYTHONPATH nor the user's folder."""
    specs = [find_spec(name) for name in _NEEDED]
    places = [place for spec in specs if spec is not None for place in spec.submodule_search_locations or ()]
    return list(dict.fromkeys(os.path.dirname(os.path.abspath(place)) for place in places))


class Launcher:
    """One zygote at a time, started by the first child; safe to use from several threads.

    `prefix` is a command that runs the zygote's in a world it has made; `environ` what it is exec'd with.
    """

    def __init__(self, prefix: Sequence[str] = (), environ: Mapping[str, str] = ENVIRONMENT) -> None:
        self._prefix = tuple(prefix)
        self._environ = dict(environ)
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._line: socket.socket | None = None
        self._forks = 0

    def start(self) -> None:
        """Start the zygote, if there is none: it imports while the caller does other things."""
        with self._lock:
            self._ready()

    def _ready(self) -> socket.socket:
        lost = self._process is not None and self._process.poll() is not None
        if self._line is not None and not lost and self._forks < FORKS:
            return self._line
        self._retire()
        kind = "lone" if self._prefix else "many"
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [*self._prefix, sys.executable, "-I", "-B", "-c", _PROGRAM, str(theirs.fileno()), kind, *source_roots()],
                env=self._environ,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL if "BLINDCAST_TRACE" not in os.environ else None,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        self._line, self._forks = ours, 0
        return ours

    def _retire(self) -> None:
        """Let the zygote go: at the end of its line it waits for its children, then exits."""
        if self._line is not None:
            self._line.close()
            self._line = None
        if self._process is not None and self._process.poll() is None:
            threading.Thread(target=self._process.wait, daemon=True).start()
        self._process = None

    def spawn(self, order: Order, buffer: int, output_bytes: int, free: Callable[[], None]) -> LockedChild:
        """Fork a child; `free` is called once it is gone. Raises FaultError `zygote_lost`."""
        output, output_in = os.pipe2(os.O_CLOEXEC)
        request_out, request = os.pipe2(os.O_CLOEXEC)
        answer, answer_in = os.pipe2(os.O_CLOEXEC)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            pidfd = self._ask(order, [output_in, request_out, answer_in, buffer, theirs.fileno()], theirs, ours)
        except BaseException:
            _close((output, request, answer))
            ours.close()
            raise
        finally:
            _close((output_in, request_out, answer_in))
            theirs.close()
        return LockedChild(order, request, answer, pidfd, ours, output, output_bytes, free)

    def _ask(self, order: Order, fds: list[int], theirs: socket.socket, ours: socket.socket) -> int:
        """The child's pidfd, once its supervisor has said that it started; -1 where no child could be forked."""
        with self._lock:
            for is_last in (False, True):
                line = self._ready()
                try:
                    socket.send_fds(line, [msgspec.msgpack.encode(order)], fds)
                    break
                except OSError as error:
                    self._retire()
                    if is_last:
                        raise _lost(str(error)) from error
            self._forks += 1
        theirs.close()
        ours.settimeout(_START_S)
        try:
            _, pidfds, _, _ = socket.recv_fds(ours, 4_096, 1)
        except OSError as error:
            raise _lost(str(error)) from error
        finally:
            ours.settimeout(None)
        return pidfds[0] if pidfds else -1

    def close(self) -> None:
        """End the zygote. Safe to repeat."""
        with self._lock:
            process = self._process
            self._retire()
        if process is not None:
            try:
                process.wait(0.05)
            except subprocess.TimeoutExpired:
                process.kill()  # it was still importing, or its child still lived
                process.wait()


def _close(fds: Iterable[int]) -> None:
    for fd in fds:
        os.close(fd)


def _lost(why: str) -> FaultError:
    return FaultError(
        "zygote_lost",
        f"the process that starts children is gone: {why}",
        expected="a zygote that lives as long as its server",
        do="run it again; BLINDCAST_TRACE=1 shows what the zygote says",
    )
