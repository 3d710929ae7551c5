"""Which run goes next: slots, their order, and the queue of this process (isolation.md section 10)."""

from __future__ import annotations

import heapq
import threading
from collections import deque
from collections.abc import Collection, Hashable, Mapping, Sequence
from functools import lru_cache
from types import TracebackType
from typing import Final, Literal

from blindcast.affinity import cpu_mask
from blindcast.cgroups import PERIOD_US, cpu_quota
from blindcast.errors import UsageError

__all__ = ["VARIABLE", "Cancelled", "Queue", "Ticket", "own_queue", "pick", "slots", "sorted_by_turn"]

VARIABLE: Final = "BLINDCAST_MAX_CONCURRENT_RUNS"
_making = threading.Lock()  # two threads that come first must not make two queues


class Cancelled(Exception):
    """The request was cancelled while it waited."""


def slots(
    affinity: int | Collection[int], quota: float | str | None, period: float | str | None, variable: str | int | None
) -> tuple[int, str | None]:
    """How many runs may go at once, and a warning or None (I-80).

    `affinity` is the CPUs of the mask or their number; `quota` and `period` are the words of `cpu.max` or of the v1 files
    (None, `max` and below 0: no quota); `variable` is BLINDCAST_MAX_CONCURRENT_RUNS, None or empty where it is not set.
    Raises UsageError `max_concurrent_runs_invalid` for anything but a whole number >= 1.

    >>> slots(16, "250000", "100000", "8"), slots(4, "max", "100000", None)
    ((2, None), (4, None))
    """
    cpus = max(1, affinity if isinstance(affinity, int) else len(affinity))
    wanted = _wanted(variable)
    warning = f"{VARIABLE} is {wanted}, this process has {cpus} CPUs: {cpus} is used" if wanted is not None and wanted > cpus else None
    bounds = [cpus, cpus if wanted is None else wanted]
    share = None if quota is None or quota == "max" else float(quota)
    if share is not None and share >= 0:
        bounds.append(max(1, int(share // (float(period or 0) or PERIOD_US))))
    return min(bounds), warning


def _wanted(variable: str | int | None) -> int | None:
    text = "" if variable is None else str(variable).strip()
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 18 or int(text) < 1:
        raise UsageError(
            "max_concurrent_runs_invalid",
            f"{VARIABLE} is {variable!r}",
            expected="a whole number >= 1, or empty",
            do="unset it for one run per CPU, or set it to how many runs may go at once",
        )
    return int(text)


def pick(waiting: Sequence[Hashable], served: Sequence[Hashable]) -> int:
    """Which of `waiting` starts next (I-81): its index.

    `waiting` are sessions in order of arrival, one entry a request; `served` sessions in order of service, the newest last.
    A session never served goes first, then the one served longest ago; ties by arrival, and FIFO within a session.

    >>> pick(["A", "A", "B"], ["A"])
    2
    """
    last = {session: turn for turn, session in enumerate(served)}
    return min(range(len(waiting)), key=lambda index: (last.get(waiting[index], -1), index))


def sorted_by_turn(waiting: Sequence[Hashable], served: Sequence[Hashable]) -> list[int]:
    """Indices of `waiting` in the order in which they start if nobody else comes: `pick` until none is left (IV-08).

    >>> sorted_by_turn(["A", "A", "A", "B"], [])
    [0, 3, 1, 2]
    """
    last = {session: turn for turn, session in enumerate(served)}
    requests: dict[Hashable, deque[int]] = {}
    for index, session in enumerate(waiting):
        requests.setdefault(session, deque()).append(index)
    turns = [(last.get(session, -1), own[0], own) for session, own in requests.items()]  # no two first indices are equal
    heapq.heapify(turns)
    order: list[int] = []
    while turns:
        own = turns[0][2]
        order.append(own.popleft())
        if own:
            heapq.heapreplace(turns, (len(served) + len(order), own[0], own))
        else:
            heapq.heappop(turns)
    return order


class Ticket:
    """One request for a slot. A context manager too: entering waits and gives the slot's CPU, leaving gives it back.

    `number` counts the requests of its queue from 1 (FE-43).
    """

    def __init__(self, queue: Queue, session: Hashable, number: int) -> None:
        self.session = session
        self.number = number
        self._queue = queue
        self._moved = threading.Event()  # it holds a slot, or never will
        self._cpu: int | None = None
        self._state: Literal["queued", "running", "gone"] = "queued"

    @property
    def state(self) -> Literal["queued", "running", "gone"]:
        """queued, running (it holds a slot) or gone (cancelled, or released)."""
        return self._state

    @property
    def position(self) -> int | None:
        """0 running, 1 next to start; None once gone (FE-21)."""
        return self._queue.position(self)

    @property
    def ahead(self) -> int:
        """How many requests start before this one, if nobody else comes."""
        return max(0, (self.position or 0) - 1)

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Wait for the slot and return its CPU; None after `timeout_s`. Raises Cancelled."""
        if not self._moved.wait(timeout_s):
            return None
        if self._state == "gone":
            raise Cancelled
        return self._cpu

    def cancel(self) -> bool:
        """Leave the queue at once; False where it does not wait: what runs is ended by whoever runs it."""
        return self._queue.cancel(self)

    def release(self) -> None:
        """Give the slot back: called once, when the run's tree is gone (I-82). A request that waits leaves the queue."""
        self._queue.release(self)

    def __enter__(self) -> int:
        try:
            cpu = self.wait()
        except BaseException:  # Ctrl-C too: nothing waits on
            self.release()
            raise
        assert cpu is not None, "without a timeout it waits until it has one"
        return cpu

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.release()


class Queue:
    """Slots, one CPU each, given out by I-81. Safe to use from any thread; a waiting thread sleeps until its turn."""

    def __init__(self, cpus: Sequence[int]) -> None:
        self.slots = len(cpus)
        self._lock = threading.Lock()
        self._free = list(reversed(cpus))
        self._waiting: dict[Ticket, None] = {}  # in order of arrival
        self._served: dict[Hashable, None] = {}  # in order of newest service
        self._order: dict[Ticket, int] | None = None  # positions; None: to be found out
        self._tickets = 0

    def enter(self, session: Hashable) -> Ticket:
        """Ask for a slot; it is held at once where one is free."""
        with self._lock:
            self._tickets += 1
            ticket = Ticket(self, session, self._tickets)
            self._waiting[ticket] = None
            self._start()
        return ticket

    def position(self, ticket: Ticket) -> int | None:
        """0 running, 1 next to start; None once gone."""
        with self._lock:
            if ticket._state != "queued":
                return 0 if ticket._state == "running" else None
            if self._order is None:
                waiting = list(self._waiting)
                turns = sorted_by_turn([one.session for one in waiting], list(self._served))
                self._order = {waiting[index]: place for place, index in enumerate(turns, start=1)}
            return self._order[ticket]

    def cancel(self, ticket: Ticket) -> bool:
        """Take a request that waits out of the queue."""
        with self._lock:
            if ticket._state != "queued":
                return False
            del self._waiting[ticket]
            self._move(ticket, "gone")
            return True

    def release(self, ticket: Ticket) -> None:
        """Take back the slot of a ticket that holds one; no other ticket frees anything."""
        if self.cancel(ticket):
            return
        with self._lock:
            if ticket._state == "running" and ticket._cpu is not None:
                self._free.append(ticket._cpu)
                self._move(ticket, "gone")
                self._start()

    def forget(self, session: Hashable) -> None:
        """Drop a closed session's place in the history of service."""
        with self._lock:
            self._served.pop(session, None)
            self._order = None

    def _start(self) -> None:
        """Give free slots to whoever's turn it is. The lock is held."""
        self._order = None
        while self._free and self._waiting:
            waiting = list(self._waiting)
            ticket = waiting[pick([one.session for one in waiting], list(self._served))]
            del self._waiting[ticket]
            self._served.pop(ticket.session, None)
            self._served[ticket.session] = None
            ticket._cpu = self._free.pop()
            self._move(ticket, "running")

    def _move(self, ticket: Ticket, state: Literal["running", "gone"]) -> None:
        self._order = None
        ticket._state = state
        ticket._moved.set()


def own_queue(environ: Mapping[str, str]) -> tuple[Queue, str | None]:
    """The queue that all runs of this process share, and a warning or None. Raises UsageError (I-80).

    Other processes of the host have queues of their own.
    """
    mask = cpu_mask()
    count, warning = slots(mask, *cpu_quota(), environ.get(VARIABLE))
    with _making:
        return _queue(frozenset(mask), count), warning


@lru_cache
def _queue(mask: frozenset[int], count: int) -> Queue:
    """One queue per mask and number of slots: neither changes while a server runs."""
    return Queue([cpu for cpu in cpu_mask() if cpu in mask][:count])
