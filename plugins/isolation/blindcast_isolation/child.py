"""A locked-down child as the server holds it: its pipes, its end, and what it took."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from blindcast.output import Output
from blindcast.records import Usage
from blindcast_isolation.order import Ending, Order, ending_of

__all__ = ["LockedChild", "reason_of"]

STUCK_S: Final = 5.0  # after this a tree that still lives is `stuck` (I-71)
NATURAL_S: Final = 0.2  # what a child that closed its pipe has to end by itself


def reason_of(status: int) -> str:
    """The reason of I-73 for a status of `wait`.

    >>> reason_of(9), reason_of(0)
    ('signal:9', 'exit:0')
    """
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return "cpu" if number == signal.SIGXCPU else f"signal:{number}"
    return f"exit:{os.WEXITSTATUS(status)}"


def _received(line: socket.socket) -> bytes:
    """The next word. A supervisor that ended with an unread order leaves a reset in front of its last word."""
    try:
        return line.recv(4_096)
    except ConnectionResetError:
        return line.recv(4_096)


class LockedChild:
    """One child with its pipes; `cpu` is the one it is bound to, `uid` the user it runs as.

    Once it is gone `free` is called; before that `quarantine`, where its spawner has set one, if it is `stuck`.
    """

    quarantine: Callable[[str], object] | None = None
    starved: Callable[[], bool] | None = None  # whether its cgroup ran out of memory

    def __init__(
        self,
        order: Order,
        request: int,
        answer: int,
        pidfd: int,
        line: socket.socket,
        output: int,
        output_bytes: int,
        free: Callable[[], None],
    ) -> None:
        self.entry = order.entry
        self.cpu = order.cpu
        self.uid = os.geteuid() if order.uid is None else order.uid
        self.request = request
        self.answer = answer
        self.pidfd = pidfd
        self._line = line
        self._free = free
        self._cpu_s = order.cpu_s
        self._lock = threading.Lock()
        self._reason: str | None = None
        self._is_lost = False
        self._ending: Ending | None = None
        self._output = Output(output, output_bytes, self._ask_to_kill)

    def _ask_to_kill(self) -> None:
        try:
            self._line.send(b"k")
        except OSError:
            return

    def kill(self, reason: str) -> None:
        """End it with everything it started, and wait until it is gone. Safe to repeat.

        `reason` is kept unless the child ended by itself before, which is told only where `reason` is empty or `ok`.
        """
        with self._lock:
            if self._reason is not None:
                return
            is_natural = reason in ("", "ok") and self._wait_ending(NATURAL_S)
            if not is_natural:
                self._ask_to_kill()
                self._wait_ending(STUCK_S)
            self._reason = self._judge(reason, is_natural)
            self._line.close()
            for fd in {self.request, self.answer, self.pidfd} - {-1}:
                os.close(fd)
            if self._is_stuck:
                if self.quarantine is not None:
                    self.quarantine("stuck: its child could not be killed")
            else:
                self._output.join(STUCK_S)
            self._free()

    @property
    def _is_stuck(self) -> bool:
        return self._ending is None and not self._is_lost

    def _wait_ending(self, timeout_s: float) -> bool:
        """Whether word of the end came in time; an empty word means that the supervisor is lost."""
        self._line.settimeout(timeout_s)
        try:
            word = _received(self._line)
        except TimeoutError:
            return False
        except OSError:
            word = b""
        self._ending = ending_of(word) if word else None
        self._is_lost = not word
        if word:
            with suppress(OSError):
                self._line.recv(1)  # the end of the line: the supervisor is gone too
        return True

    def _judge(self, reason: str, is_natural: bool) -> str:
        if self._is_stuck:
            return "stuck"
        if self._output.is_over:
            return "output"
        if reason not in ("", "ok"):
            return reason
        if self._ending is None:
            return "zygote_lost"
        if reason == "ok" and not is_natural:
            return "ok"  # it said all it had to say, and did not leave in time (I-38)
        own = reason_of(self._ending.status)
        if own == "signal:9" and self.starved is not None and self.starved():
            return "memory"
        if own == "signal:9" and self._ending.cpu_s >= self._cpu_s - 1:
            return "cpu"  # the hard limit, counted in ticks; SIGXCPU is of the soft one
        return "ok" if reason == "ok" and own == "exit:0" else own

    def usage(self) -> Usage:
        """How it ended and what it took; while it lives, what it printed so far."""
        ending = self._ending
        return Usage(
            reason=self._reason or "ok",
            cpu_s=ending.cpu_s if ending else None,
            peak_mib=ending.peak_kib / 1024 if ending else None,
            output=self._output.text(),
        )
