"""Slots and their order (isolation.md section 10; FE-43, FE-85, FV-16)."""

from __future__ import annotations

import heapq
import os
import threading
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from blindcast.errors import UsageError
from blindcast.jobs import VARIABLE, Cancelled, Queue, Ticket, own_queue, pick, slots, sorted_by_turn

HISTORIES = st.lists(st.sampled_from("ABCDE"), max_size=12)


@pytest.mark.parametrize(
    ("affinity", "quota", "period", "variable", "found"),
    [
        (16, "250000", "100000", "8", 2),  # IV-06
        (4, "max", "100000", None, 4),  # IV-07
        (4, 250_000, 100_000, None, 2),
        (4, 50_000, 100_000, None, 1),
        (4, -1, 100_000, None, 4),
        (4, "-1", "100000", "", 4),
        (4, None, None, "3", 3),
        ({0, 2, 5}, None, None, None, 3),
        (8, "400000", "100000", "2", 2),
    ],
)
def test_slots_are_the_least_of_mask_quota_and_variable(
    affinity: int | set[int], quota: int | str | None, period: int | str | None, variable: str | None, found: int
) -> None:
    """I-80, IV-06, IV-07."""
    assert slots(affinity, quota, period, variable) == (found, None)


def test_more_than_the_cpus_is_cut_with_a_warning() -> None:
    """I-80."""
    count, warning = slots(4, None, None, "9")
    assert count == 4
    assert warning is not None
    assert "9" in warning


@pytest.mark.parametrize("variable", ["0", "-1", "2.5", "two", "1_0", "\u0663", "1e3", "9" * 19])
def test_the_variable_is_a_whole_number_from_one(variable: str) -> None:
    """I-80, IV-07."""
    with pytest.raises(UsageError) as caught:
        slots(4, None, None, variable)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("waiting", "served", "index"),
    [
        ("AAAB", "", 0),
        ("AAB", "A", 2),
        ("AB", "BA", 1),
        ("AB", "AB", 0),
        ("BA", "ABAB", 1),
        ("ABC", "AB", 2),
        ("CD", "AB", 0),
        ("A", "AAAA", 0),
        ("AB", "ABA", 1),
    ],
)
def test_the_session_served_longest_ago_goes_first(waiting: str, served: str, index: int) -> None:
    """I-81: never-served ones before all, ties by arrival."""
    assert pick(waiting, served) == index


def test_arrivals_at_once_start_in_turn() -> None:
    """IV-08."""
    assert sorted_by_turn("AAAB", "") == [0, 3, 1, 2]


@settings(deadline=None)
@given(HISTORIES, HISTORIES)
def test_the_whole_order_is_one_pick_after_another(waiting: list[str], served: list[str]) -> None:
    """I-81."""
    left, history, order = list(range(len(waiting))), list(served), []
    while left:
        index = left.pop(pick([waiting[k] for k in left], history))
        history.append(waiting[index])
        order.append(index)
    assert sorted_by_turn(waiting, served) == order


@settings(deadline=None)
@given(HISTORIES)
def test_within_a_session_requests_start_in_order_of_arrival(waiting: list[str]) -> None:
    """I-81."""
    order = sorted_by_turn(waiting, "")
    for session in set(waiting):
        own = [index for index in order if waiting[index] == session]
        assert own == sorted(own)


def played(
    count: int, arrivals: Sequence[tuple[float, str, float]], look_at: float
) -> tuple[dict[str, tuple[float, float]], dict[str, int]]:
    """A queue under a clock that is only a number: {session: (start, end)}, and the positions just after `look_at`."""
    queue, times = Queue(range(count)), {}
    events = [(at, 1, order, name, lasts) for order, (at, name, lasts) in enumerate(arrivals)]
    heapq.heapify(events)
    lengths = {name: lasts for _, name, lasts in arrivals}
    tickets: dict[str, Ticket] = {}
    positions: dict[str, int] = {}
    while events:
        at, kind, _, name, _ = heapq.heappop(events)
        if kind == 1:
            tickets[name] = queue.enter(name)
        else:
            tickets[name].release()
        for started, ticket in tickets.items():
            if ticket.state == "running" and started not in times:
                times[started] = (at, at + lengths[started])
                heapq.heappush(events, (times[started][1], 0, 0, started, 0.0))
        if at <= look_at:
            positions = {waiting: ticket.position or 0 for waiting, ticket in tickets.items() if ticket.state == "queued"}
    return times, positions


def test_five_sessions_on_two_slots() -> None:
    """FV-16."""
    times, positions = played(2, [(0, "A", 5), (0, "B", 3), (0, "C", 2), (1, "D", 1), (1, "E", 4)], look_at=1)
    assert [times[name][0] for name in "ABCDE"] == [0, 0, 3, 5, 5]
    assert [times[name][1] for name in "ABCDE"] == [5, 3, 5, 6, 9]
    assert positions == {"C": 1, "D": 2, "E": 3}


def test_each_slot_has_a_cpu_of_its_own() -> None:
    """I-61: one CPU per run."""
    queue = Queue((4, 6))
    first, second = queue.enter("A"), queue.enter("B")
    assert {first.wait(), second.wait()} == {4, 6}
    freed = first.wait()
    third = queue.enter("C")
    assert third.wait(0) is None
    first.release()
    assert third.wait() == freed


def test_a_cancelled_request_leaves_at_once_and_frees_nothing() -> None:
    """I-81."""
    queue = Queue((0,))
    running, second, third = (queue.enter(name) for name in "ABC")
    assert (second.position, second.ahead, third.position, third.ahead) == (1, 0, 2, 1)
    assert second.cancel()
    assert not second.cancel()
    assert (second.state, second.position, third.position) == ("gone", None, 1)
    second.release()
    assert third.state == "queued"
    with pytest.raises(Cancelled):
        second.wait()
    assert not running.cancel()
    assert (running.state, running.position, running.ahead) == ("running", 0, 0)


def test_a_slot_is_given_back_once() -> None:
    """I-82: by the holder alone."""
    queue = Queue((0,))
    first, second, third = (queue.enter(name) for name in "ABC")
    first.release()
    first.release()
    assert (first.state, second.state, third.state) == ("gone", "running", "queued")


def test_a_ticket_holds_its_slot_as_long_as_its_block() -> None:
    """I-82: whatever ends it."""
    queue = Queue((3,))
    ticket = queue.enter("A")
    waiting = queue.enter("B")
    with pytest.raises(ZeroDivisionError), ticket as cpu:
        raise ZeroDivisionError(cpu)
    assert waiting.state == "running"
    waiting.release()


def test_a_session_that_is_forgotten_counts_as_new() -> None:
    queue = Queue((0,))
    for name in "AB":
        with queue.enter(name):
            pass
    running, newest, oldest = queue.enter("X"), queue.enter("B"), queue.enter("A")
    assert (newest.position, oldest.position) == (2, 1)
    queue.forget("B")
    assert (newest.position, oldest.position) == (1, 2)
    running.release()


def test_tickets_are_numbered_from_one() -> None:
    """FE-43."""
    queue = Queue((0,))
    assert [queue.enter(name).number for name in "ABA"] == [1, 2, 3]


def test_runs_of_one_process_share_a_queue() -> None:
    """I-80."""
    first, second = own_queue({})[0], own_queue({VARIABLE: ""})[0]
    assert first is second
    assert own_queue({VARIABLE: "1"})[0].slots == 1
    with pytest.raises(UsageError):
        own_queue({VARIABLE: "0"})


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="no affinity masks here")
def test_slots_lie_on_cpus_of_the_mask() -> None:
    """I-61."""
    with own_queue({})[0].enter("A") as cpu:
        assert cpu in os.sched_getaffinity(0)


def test_fifty_sessions_on_two_slots_lose_nothing_and_start_nothing_twice() -> None:
    """FE-85."""
    queue, lock = Queue((0, 1)), threading.Lock()
    at_once: Counter[int] = Counter()
    done: Counter[int] = Counter()
    crowded: list[int] = []
    barrier = threading.Barrier(50)

    def session(name: int) -> None:
        barrier.wait()
        for job in range(6):
            ticket = queue.enter(name)
            if job % 3 == 2 and ticket.cancel():
                done[name] += 1
                continue
            with ticket as cpu:
                with lock:
                    at_once[cpu] += 1
                    crowded.extend([cpu] * (at_once[cpu] > 1))
                queue.position(ticket)
                with lock:
                    at_once[cpu] -= 1
                    done[name] += 1

    threads = [threading.Thread(target=session, args=(name,)) for name in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert not crowded
    assert done == Counter(dict.fromkeys(range(50), 6))
    assert sorted(queue._free) == [0, 1]


class Fair(RuleBasedStateMachine):
    """A queue beside a list that obeys the rules one by one."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = Queue((7, 8))
        self.waiting: list[Ticket] = []
        self.running: list[Ticket] = []
        self.served: list[str] = []
        self.gone: list[Ticket] = []

    def settle(self) -> None:
        while self.waiting and len(self.running) < 2:
            ticket = self.waiting.pop(pick([str(one.session) for one in self.waiting], self.served))
            self.served.append(str(ticket.session))
            self.running.append(ticket)

    @rule(session=st.sampled_from("ABC"))
    def enter(self, session: str) -> None:
        self.waiting.append(self.queue.enter(session))
        self.settle()

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        ticket = data.draw(st.sampled_from(self.running))
        ticket.release()
        self.running.remove(ticket)
        self.gone.append(ticket)
        self.settle()

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        ticket = data.draw(st.sampled_from(self.waiting))
        assert ticket.cancel()
        self.waiting.remove(ticket)
        self.gone.append(ticket)

    @precondition(lambda self: self.gone or self.running)
    @rule(data=st.data())
    def meddle(self, data: st.DataObject) -> None:
        ticket = data.draw(st.sampled_from([*self.gone, *self.running]))
        assert not ticket.cancel()
        if ticket in self.gone:
            ticket.release()

    @invariant()
    def every_ticket_is_where_the_rules_put_it(self) -> None:
        assert all(ticket.state == "running" and ticket.position == 0 for ticket in self.running)
        assert all(ticket.state == "gone" and ticket.position is None for ticket in self.gone)
        order = sorted_by_turn([str(one.session) for one in self.waiting], self.served)
        assert [self.waiting[index].position for index in order] == list(range(1, len(order) + 1))
        cpus = [ticket.wait(0) for ticket in self.running]
        assert len(set(cpus)) == len(cpus)
        assert set(cpus) <= {7, 8}


TestFair = Fair.TestCase
TestFair.settings = settings(deadline=None, max_examples=60, stateful_step_count=40)
