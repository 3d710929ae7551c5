"""One run, start to finish: refuse early, charge at the first reveal, walk, grade, keep the evidence (grading.md section 6)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from attrs import define, field, frozen

from blindcast.backends import Backend, appoint, close
from blindcast.buffer import RevealBuffer
from blindcast.court import Court
from blindcast.errors import BudgetError, DataError, UsageError
from blindcast.grade import rms_step
from blindcast.host import Host
from blindcast.journal import Journal
from blindcast.ledger import Charge, Ledger, query_refused
from blindcast.records import F64, Outcome
from blindcast.reveal import Reveal
from blindcast.runs import Aside, new_run_id, not_written
from blindcast.submission import Submission, take
from blindcast.tasks import SplitKind, cap
from blindcast.view import Context
from blindcast.walk import RunBroken, Walked, Walker
from blindcast.wire import ChildSeat, RunClock

__all__ = ["EXITS", "Conduct", "Order", "conduct"]

EXITS: Final[Mapping[str, int]] = {  # of a run's reason (I-73, G-55)
    "stopped_at_failure": 1,
    "load_failed": 3,
    "fit_failed": 3,
    "protocol": 4,
    "setup": 5,
    "zygote_lost": 6,
    "run_deadline": 7,
    "refit_too_slow": 7,
    "cancelled": 130,
}


@frozen
class Order:
    """What to run: a submission over one task. `stops` ends it at the first failure; `seed` None is the task's."""

    submission: Path
    split: SplitKind
    index: int
    door: Literal["run", "submit"]
    stops: bool = False
    seed: int | None = None


@define(eq=False)
class Conduct:
    """A run as it goes: what is known of it, filled in as it is walked. Arrays cover every target, walked or not."""

    court: Court
    order: Order
    run_id: str
    capped: int | None
    targets: tuple[int, ...]  # window positions
    warmup_positions: tuple[int, ...]
    backend: Backend
    submission: Submission
    ys: F64
    curves: F64
    warmup_ys: F64
    started_at: float
    walked: list[Walked] = field(factory=list)
    trial: tuple[int, int | None, int | None] = (0, None, None)
    status: Literal["success", "failed", "cancelled"] = "success"
    reason: str | None = None
    trace: str = ""
    output: str = ""
    wall_s: float = 0.0
    restarts: int = 0
    charged: bool = False

    @property
    def seed(self) -> int:
        """The seed that the predictor is told."""
        return self.court.spec.seed if self.order.seed is None else self.order.seed

    @property
    def identity(self) -> str:
        """The task's identity, cap included."""
        return self.court.identity(self.capped)

    @property
    def starts_ns(self) -> list[int]:
        """Start of each target."""
        return [self.court.refs[position].start_ns for position in self.targets]

    @property
    def holdout_set(self) -> str:
        """sha256 of the target windows' ids and the pool's digest (evidence.md section 10)."""
        ids = [self.court.refs[position].ref for position in self.targets]
        return sha256("\n".join([*ids, self.court.pool_digest]).encode()).hexdigest()

    @property
    def is_complete(self) -> bool:
        """Whether every target was reached."""
        return len(self.walked) == len(self.targets)

    @property
    def exit_code(self) -> int:
        """What the process answers (DESIGN 8): crashed windows alone are no failure."""
        return EXITS.get((self.reason or "").partition(":")[0].partition(".")[0], 0) if self.status != "success" else 0

    @property
    def outcome_scale_bps(self) -> float:
        """Root mean square step of the warm-ups."""
        return rms_step(self.warmup_ys)


Watch = Callable[[Conduct, Walked, float | None], object]  # the run, the window, its reward (None on test)


def conduct(
    court: Court,
    host: Host,
    order: Order,
    *,
    environ: Mapping[str, str],
    keep: Callable[[Conduct, Aside, Ledger], Path],
    watch: Watch | None = None,
) -> tuple[Conduct, Path]:
    """Run one submission over one task and keep its run directory, which `keep` writes; returns both.

    Raises before anything is revealed or charged: UsageError, DataError (`load_failed`, `fit_failed`,
    `submission_refused`), DeniedError, BudgetError. After the first reveal the trial is spent, whatever follows (G-55).
    """
    task = court.task(order.split, order.index)
    capped = cap(environ.get("BLINDCAST_MAX_TARGETS"), len(task.targets))
    _check_seed(order)
    ledger = Ledger.of(court.home, environ)
    _refuse_spent(court, order, ledger)
    backend = appoint(host, court.spec.isolation.require, court.spec.policy, environ, root=os.geteuid() == 0)
    try:
        run_id = new_run_id()
        facts = {"run_id": run_id, "task_digest": court.identity(capped), "split": order.split, "index": order.index, "door": order.door}
        aside = Aside.begin(court.home, run_id, facts)
        try:
            submission = take(order.submission, aside.folder / "predictor")
            targets = tuple(task.targets)[:capped]
            run = _open(court, order, run_id, capped, targets, task.warmups, backend, submission)
            _walk(run, aside, ledger, watch)
            return run, keep(run, aside, ledger)
        except OSError as error:
            raise not_written(error) from error
        finally:
            _settle(aside)
    finally:
        close(backend.isolation)


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
    )


def _walk(run: Conduct, aside: Aside, ledger: Ledger, watch: Watch | None) -> None:
    court, limits = run.court, run.court.spec.policy.limits
    warmups = [court.reveal(position) for position in run.warmup_positions]
    run.warmup_ys = np.array([y for y, _ in warmups])
    reveals = [reveal for _, reveal in warmups]
    context = Context(court.grid, court.alpha, reveals[0].columns, run.seed)
    buffer = RevealBuffer(reveals[0].columns, *court.caps(), court.grid.steps + 1)
    clock = RunClock(limits.run_wall_s)
    try:

        def seat() -> ChildSeat:
            run.restarts += run.charged
            return ChildSeat(
                run.backend.isolation, run.submission.folder, court.spec.policy, context, court.spec.isolation.state, buffer, lambda: reveals, clock
            )

        first = _first_seat(run, seat)
        try:
            run.trial = ledger.charge(_charge(run), court.spec.budget.holdout_queries)
            run.charged = True
            journal = Journal(aside.folder / "journal.bin")
        except BaseException:
            first.leave()
            raise
        walker = Walker(seat, journal.store, court.grid.steps, court.spec.isolation.state, run.order.stops)
        try:
            _follow(run, walker.walk(first, _reveals(run)), watch)
        finally:
            journal.close()
    finally:
        buffer.close()
        run.wall_s = time.monotonic() - run.started_at


def _first_seat(run: Conduct, seat: Callable[[], ChildSeat]) -> ChildSeat:
    """A predictor that loads and fits, or a refusal that costs nothing (G-55)."""
    try:
        return seat()
    except RunBroken as broken:
        shown = broken.trace.strip() if run.order.door == "run" else ""
        hints = {
            "load_failed": (
                "a file that defines `class Predictor` with `predict(view)`",
                "`blindcast check FILE` shows the whole traceback",
            ),
            "fit_failed": ("a `fit(warmups)` that ends without raising", "`blindcast check FILE` shows the whole traceback"),
        }
        expected, do = hints.get(broken.reason, ("a child that starts and answers", "`blindcast doctor` says what this machine offers"))
        words = f"the predictor could not be started: {broken.reason}" + (f"\n{shown}" if shown else "")
        raise _failure(broken.reason)(broken.reason, words, expected=expected, do=do) from broken


def _failure(reason: str) -> Any:
    from blindcast.errors import DeniedError, FaultError, IntegrityError

    classes = {3: DataError, 4: IntegrityError, 5: DeniedError, 6: FaultError, 7: BudgetError}
    return classes.get(EXITS.get(reason.partition(":")[0].partition(".")[0], 3), DataError)


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
            run.walked.append(walked)
            run.curves[walked.ordinal] = walked.curves
            if watch is not None:
                watch(run, walked, _reward_so_far(run, walked))
        if run.order.stops and any(walked.failures for walked in run.walked):
            run.status, run.reason = "failed", "stopped_at_failure"
    except RunBroken as broken:
        run.status, run.reason, run.trace = "failed", broken.reason, broken.trace
    except KeyboardInterrupt:
        run.status, run.reason = "cancelled", "cancelled"
    for ordinal in range(len(run.walked), len(run.targets)):
        run.ys[ordinal] = run.court.path(run.targets[ordinal])


def _reward_so_far(run: Conduct, walked: Walked) -> float | None:
    if run.order.split == "test":
        return None
    return float(run.court.grader.grade(Outcome(run.ys[walked.ordinal], run.outcome_scale_bps), walked.curves).reward)
