"""One run as it goes: what was ordered, and what is known so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal

from attrs import define, field, frozen

from blindcast.backends import Backend
from blindcast.court import Court
from blindcast.grade import rms_step
from blindcast.records import F64
from blindcast.submission import Submission
from blindcast.tasks import SplitKind
from blindcast.walk import Walked

__all__ = ["EXITS", "Conduct", "Order", "exit_of"]

EXITS: Final[Mapping[str, int]] = {  # of a run's reason (I-73, G-55)
    "stopped_at_failure": 1,
    "load_failed": 3,
    "fit_failed": 3,
    "protocol": 4,
    "setup": 5,
    "zygote_lost": 6,
    "spawn_deadline": 6,
    "run_deadline": 7,
    "refit_too_slow": 7,
    "cancelled": 130,
}


def exit_of(reason: str) -> int:
    """The exit code of a run's reason; 0 where it is no failure."""
    return EXITS.get(reason.partition(":")[0].partition(".")[0], 0)


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
    uid: int | None = None  # of the run's first child
    cpu: int | None = None  # of the slot that the run holds; None: none was asked for
    fresh: Literal["none", "state", "refit"] | None = None  # how fresh windows came to their state; None in carry
    trips: int = 0  # acts that children said their hook refused

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
    def endings(self) -> dict[str, int]:
        """How the predictor ended in windows that lost it: windows by reason of I-73, the first seen first."""
        return dict(Counter(walked.reason for walked in self.walked if walked.reason is not None))

    @property
    def exit_code(self) -> int:
        """What the process answers (DESIGN 8): crashed windows alone are no failure."""
        return exit_of(self.reason or "") if self.status != "success" else 0

    @property
    def outcome_scale_bps(self) -> float:
        """Root mean square step of the warm-ups."""
        return rms_step(self.warmup_ys)
