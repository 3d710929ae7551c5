"""One run, start to finish: refuse early, charge at the first reveal, walk, grade, keep the evidence (grading.md section 6)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import numpy as np
from attrs import evolve

from blindcast.aside import Aside, new_run_id, not_written
from blindcast.backends import Backend
from blindcast.conduct import Conduct, Order
from blindcast.court import Court
from blindcast.errors import UsageError
from blindcast.journal import Journal
from blindcast.ledger import Charge, Ledger, query_refused
from blindcast.records import Outcome
from blindcast.reveal import Reveal
from blindcast.seats import Seats
from blindcast.submission import Submission, take
from blindcast.tasks import cap
from blindcast.walk import RunBroken, Walked, Walker

__all__ = ["Watch", "conduct"]

Watch = Callable[[Conduct, Walked, float | None], object]  # the run, the window, its reward (None on test)


def conduct(
    court: Court,
    order: Order,
    backend: Backend,
    *,
    environ: Mapping[str, str],
    keep: Callable[[Conduct, Aside, Ledger], Path],
    watch: Watch | None = None,
    turn: Callable[[], AbstractContextManager[int | None]] = nullcontext,
) -> tuple[Conduct, Path]:
    """Run one submission over one task and keep its run directory, which `keep` writes; returns both.

    `backend` is one that `appoint` chose for this court; several runs may share it. `turn` waits for a slot once the
    submission was taken, gives its CPU, and is left when the run's tree is gone; the wait is charged to nothing (I-81, I-82).
    Raises before anything is revealed or charged: UsageError, DataError (`load_failed`, `fit_failed`,
    `submission_refused`), DeniedError, BudgetError. After the first reveal the trial is spent, whatever follows (G-55).
    """
    task = court.task(order.split, order.index)
    capped = cap(environ.get("BLINDCAST_MAX_TARGETS"), len(task.targets))
    _check_seed(order)
    ledger = Ledger.of(court.home, environ)
    _refuse_spent(court, order, ledger)
    run_id = new_run_id()
    facts = {"run_id": run_id, "task_digest": court.identity(capped), "split": order.split, "index": order.index, "door": order.door}
    aside = Aside.begin(court.home, run_id, facts)
    try:
        submission = take(order.submission, aside.folder / "predictor")
        targets = tuple(task.targets)[:capped]
        with turn() as cpu:
            run = _open(court, order, run_id, capped, targets, task.warmups, backend, submission, cpu)
            _walk(run, aside, ledger, watch)
        return run, keep(run, aside, ledger)
    except OSError as error:
        raise not_written(error) from error
    finally:
        _settle(aside)


def _settle(aside: Aside) -> None:
    """Drop a folder aside in which nothing was revealed; one with sealed links stays, as interrupted."""
    journal = aside.folder / "journal.bin"
    if aside.folder.exists() and not journal.exists():
        aside.discard()
    aside.release()


def _check_seed(order: Order) -> None:
    if order.seed is not None and not 0 <= order.seed < 2**63:
        raise UsageError("bad_seed", f"seed is {order.seed}", expected="0 to 2^63 - 1", do="leave it out for the task's own")


def _refuse_spent(court: Court, order: Order, ledger: Ledger) -> None:
    """Refuse a test run whose queries are spent before anything is read; `charge` decides again, in its transaction."""
    if order.split == "test" and ledger.queries(court.pool_digest) >= court.spec.budget.holdout_queries:
        raise query_refused(court.spec.budget.holdout_queries)


def _open(
    court: Court,
    order: Order,
    run_id: str,
    capped: int | None,
    targets: tuple[int, ...],
    warmups: tuple[int, ...],
    backend: Backend,
    submission: Submission,
    cpu: int | None,
) -> Conduct:
    steps = court.grid.steps
    return Conduct(
        court,
        order,
        run_id,
        capped,
        targets,
        warmups,
        backend,
        submission,
        ys=np.zeros((len(targets), steps + 1)),
        curves=np.zeros((len(targets), steps, steps + 1)),
        warmup_ys=np.zeros((0, steps + 1)),
        started_at=time.monotonic(),
        cpu=cpu,
    )


def _walk(run: Conduct, aside: Aside, ledger: Ledger, watch: Watch | None) -> None:
    court = run.court
    warmups = [court.reveal(position) for position in run.warmup_positions]
    run.warmup_ys = np.array([y for y, _ in warmups])
    seats = Seats(run, [reveal for _, reveal in warmups])
    try:
        first = seats.first()
        try:
            run.fresh = seats.freshness(first)
            run.trial = ledger.charge(_charge(run), court.spec.budget.holdout_queries)
            journal = Journal(aside.folder / "journal.bin")
        except BaseException:
            first.leave()
            raise
        walker = Walker(seats, journal.store, court.grid.steps, court.spec.isolation.state, run.order.stops)
        try:
            _follow(run, walker.walk(first, _reveals(run)), watch)
        finally:
            journal.close()
    finally:
        run.output, run.trips = seats.output, seats.tally.trips
        run.restarts = max(0, seats.made - 1) if court.spec.isolation.state == "carry" else 0
        seats.buffer.close()
        run.wall_s = time.monotonic() - run.started_at


def _charge(run: Conduct) -> Charge:
    return Charge(
        run_id=run.run_id,
        task_digest=run.identity,
        split=run.order.split,
        pool_digest=run.court.pool_digest,
        holdout_set=run.holdout_set,
        predictor_sha256=run.submission.sha256,
        trial_family=run.court.pool_digest,
    )


def _reveals(run: Conduct) -> Iterator[Reveal]:
    """The targets, read one at a time; the first is audited for causality."""
    for ordinal, position in enumerate(run.targets):
        run.ys[ordinal], reveal = run.court.reveal(position, audited=ordinal == 0)
        yield reveal


def _follow(run: Conduct, walk: Iterator[Walked], watch: Watch | None) -> None:
    try:
        for walked in walk:
            run.curves[walked.ordinal] = walked.curves
            run.walked.append(evolve(walked, curves=run.curves[walked.ordinal]))  # a view: held once
            if watch is not None:
                watch(run, walked, _reward_so_far(run, walked))
        if run.order.stops and any(walked.failures for walked in run.walked):
            run.status, run.reason = "failed", "stopped_at_failure"
    except RunBroken as broken:
        run.status, run.reason, run.trace = "failed", broken.reason, broken.trace
    except KeyboardInterrupt:
        run.status, run.reason = "cancelled", "cancelled"
        return  # no number, so no truth is read for it (F-03)
    for ordinal in range(len(run.walked), len(run.targets)):
        run.ys[ordinal] = run.court.path(run.targets[ordinal])


def _reward_so_far(run: Conduct, walked: Walked) -> float | None:
    if run.order.split == "test":
        return None
    return float(run.court.grader.grade(Outcome(run.ys[walked.ordinal], run.outcome_scale_bps), walked.curves).reward)
