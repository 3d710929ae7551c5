"""The dry run: each warm-up walked by a new predictor fitted on the others; counts nothing, opens no target (G-53)."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np

from blindcast.backends import Backend
from blindcast.buffer import RevealBuffer
from blindcast.contracts import Isolation
from blindcast.court import Court
from blindcast.grade import grade_task, rms_step
from blindcast.judge import Tally
from blindcast.protocol import Standing
from blindcast.records import F64
from blindcast.reveal import Reveal
from blindcast.submission import take
from blindcast.view import Context
from blindcast.walk import Failure, RunBroken, Walked, Walker
from blindcast.wire import ChildSeat, RunClock

__all__ = ["rehearse"]

SHOWN: Final = 20  # failures shown
TEXT: Final = 4096  # bytes of each
OPTIMISTIC: Final = "a dry run is optimistic: fit may see windows later than the one it is asked about"
_DIAGNOSTICS: Final = ("direction_accuracy", "skill_score_vs_flat", "skill_vs_persistence_bps")


def rehearse(
    court: Court,
    backend: Backend,
    submission: Path,
    index: int,
    seed: int,
    turn: Callable[[], AbstractContextManager[int | None]] = nullcontext,
) -> dict[str, Any]:
    """The document of a dry run (frontends.md section 2, run_predictor), with `dry: true`.

    A predictor that does not load or fit fails its fold with that code. `turn` waits for a slot and gives its CPU (I-81).
    """
    task = court.task("train", index)
    with TemporaryDirectory(prefix="blindcast-") as folder:
        taken = take(submission, Path(folder) / "predictor")
        windows = [court.reveal(position) for position in task.warmups]
        with turn() as cpu:
            folds = _Folds(court, backend.isolation, taken.folder, windows, seed, cpu)
            walked = [folds.walk(k) for k in range(len(windows))]
    return _document(court, windows, walked, folds)


class _Folds:
    """One child a fold, all over one buffer."""

    def __init__(
        self, court: Court, isolation: Isolation, folder: Path, windows: Sequence[tuple[F64, Reveal]], seed: int, cpu: int | None
    ) -> None:
        self.court, self.isolation, self.folder, self.windows, self.cpu = court, isolation, folder, windows, cpu
        self.context = Context(court.grid, court.alpha, windows[0][1].columns, seed)
        self.tally = Tally.of(court.grid.steps, len(windows))
        self.output: list[str] = []
        self.fit_s: list[float] = []
        self.walk_s: list[float] = []
        self.links: list[int] = []

    def walk(self, k: int) -> Walked:
        """Fold k: fit on the others in time order, walk window k as if it were a target."""
        court, others = self.court, [reveal for j, (_, reveal) in enumerate(self.windows) if j != k]
        links, started = 0, time.monotonic()

        def count(*_sealed: object) -> None:
            nonlocal links
            links += 1

        buffer = RevealBuffer(self.context.columns, *court.caps(), court.grid.steps + 1)
        fitted = started
        try:
            clock = RunClock(court.spec.budget.run_wall_s)
            seat = ChildSeat(
                self.isolation,
                self.folder,
                court.policy,
                self.context,
                "carry",
                buffer,
                lambda: others,
                clock,
                cpu=self.cpu,
                tally=self.tally,
            )
            fitted = time.monotonic()
            (walked,) = list(Walker(lambda: seat, count, court.grid.steps).walk(seat, [self.windows[k][1]]))
            self.output.append(seat.output)
        except RunBroken as broken:
            failure = Failure(k, None, broken.reason, None, broken.trace)
            curves = Standing(court.grid.steps).curves()
            walked = Walked(k, curves, "crashed", broken.reason, broken.reason, (failure,), bytes(32))
        finally:
            buffer.close()
        self.fit_s.append(fitted - started)
        self.walk_s.append(time.monotonic() - fitted)
        self.links.append(links)
        return walked


def _document(court: Court, windows: Sequence[tuple[F64, Reveal]], walked: Sequence[Walked], folds: _Folds) -> dict[str, Any]:
    ys, curves = np.array([y for y, _ in windows]), np.array([w.curves for w in walked])
    graded = grade_task(court.grader, ys, curves, rms_step(ys))
    failures = [(k, failure) for k, w in enumerate(walked) for failure in w.failures]
    targets = court.spec.split.targets
    wall_s = max(folds.fit_s) + targets * float(np.mean(folds.walk_s))
    limit_s = court.spec.budget.run_wall_s
    return {
        "dry": True,
        "run": "d1",
        "folds": [
            {
                "window": f"w{k}",
                "reward_bps": float(graded.rewards[k]),
                "code": w.code,
                "answered": folds.links[k],
                "refused": dict(sorted(Counter(failure.code for failure in w.failures).items())),
                "fit_s": folds.fit_s[k],
                "walk_s": folds.walk_s[k],
                "step_p95_ms": None,
            }
            for k, w in enumerate(walked)
        ],
        "reward_bps": graded.total,
        "mean_reward_per_market_bps": graded.total / len(windows),
        "diagnostics": {name: graded.diagnostics[name] for name in _DIAGNOSTICS},
        "failures": [_failure(k, failure) for k, failure in failures[:SHOWN]],
        "stdout": "".join(folds.output),
        "stderr": "",
        "projection": {
            "wall_s": wall_s,
            "limit_s": limit_s,
            "verdict": "over" if wall_s > limit_s else "tight" if 2 * wall_s > limit_s else "fits",
        },
        "warnings": [OPTIMISTIC],
    }


def _failure(k: int, failure: Failure) -> dict[str, Any]:
    text = failure.trace.encode()[-TEXT:].decode(errors="ignore")
    return {"window": f"w{k}", "anchor": failure.anchor, "code": failure.code, "text": text}
