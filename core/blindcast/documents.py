"""The papers of a run: the grade object (G-90), `run.json` and the files beside it (DESIGN 7)."""

from __future__ import annotations

import builtins
import json
import platform
from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from blindcast.artifacts import YEAR_S, metrics, metrics_csv
from blindcast.aside import Aside, write_json
from blindcast.backends import isolation_record
from blindcast.conduct import Conduct
from blindcast.contracts import Grader
from blindcast.entries import now_utc
from blindcast.grade import NOT_BUILT, explanation, failure_counts, grade_task, rms_step, window_counts
from blindcast.ledger import Ledger
from blindcast.libraries import exception_names
from blindcast.records import F64
from blindcast.runs import SCHEMA
from blindcast.submission import locate
from blindcast.walk import Failure, chain_head

__all__ = ["Keeper", "grade_object", "numbers", "stage"]

LISTED: Final = 3  # failures that are located (G-54)
DISTRIBUTIONS: Final = tuple(
    "pluggy attrs cattrs click numpy pandas pyarrow scipy scikit-learn lightgbm msgspec rich SQLAlchemy jinja2 matplotlib blindcast".split()
)
BUILTIN_ERRORS: Final = frozenset(
    name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, BaseException)
)
WINDOWS: Final = pa.schema(
    [
        pa.field("window", pa.int32(), nullable=False),
        pa.field("start_ns", pa.int64(), nullable=False),
        pa.field("y", pa.list_(pa.float64())),  # null where a cancelled run did not get to it
        pa.field("status", pa.string(), nullable=False),
        pa.field("code", pa.string()),
        pa.field("reason", pa.string()),
        pa.field("reward_bps", pa.float64()),
    ]
)


def stage(split: str) -> str:
    """What the run's evidence would rest on."""
    return "holdout" if split == "test" else "backtest"


def numbers(grader: Grader, ys: F64, curves: F64, warmup_ys: F64, trials: int, *, shows_windows: bool) -> dict[str, Any]:
    """Every key of the grade object that follows from paths and curves by a grader (G-30 to G-45)."""
    graded = grade_task(grader, ys, curves, rms_step(warmup_ys))
    return {
        "reward_bps": graded.total,
        "mean_reward_per_market_bps": graded.total if grader.total == "mean" else graded.total / len(ys),
        "window_rewards_bps": graded.rewards.tolist() if shows_windows else None,
        "diagnostics": dict(graded.diagnostics),
        **explanation(grader, ys, curves, warmup_ys, trials),
    }


def _no_numbers() -> dict[str, Any]:
    keys = "reward_bps reward_wmean_bps mean_reward_per_market_bps window_rewards_bps diagnostics baselines concentration waterfall"
    return dict.fromkeys(keys.split())


def _located(run: Conduct, failures: Sequence[Failure]) -> list[dict[str, Any]]:
    """The first failures with a type of the fixed list: builtins, bare, and the libraries' own, as `module.name` (FE-29)."""
    known, rows = BUILTIN_ERRORS | exception_names(), []
    for failure in failures[:LISTED]:
        kind, file, line = locate(failure.trace, run.submission, known) if failure.trace else (None, None, None)
        rows.append({"target": failure.target, "anchor": failure.anchor, "code": failure.code, "type": kind, "file": file, "line": line})
    return rows


def grade_object(run: Conduct) -> dict[str, Any]:
    """The whole grade object, every key present; what is undefined or not built yet is null (G-90)."""
    court, test = run.court, run.order.split == "test"
    failures = [failure for walked in run.walked for failure in walked.failures]
    refused, by_code = failure_counts(failures)
    statuses = [walked.status for walked in run.walked] + ["not_run"] * (len(run.targets) - len(run.walked))
    trial, query, left = run.trial
    scored = run.status != "cancelled"
    found = numbers(court.grader, run.ys, run.curves, run.warmup_ys, trial, shows_windows=not test) if scored else _no_numbers()
    return {
        "run_id": run.run_id,
        "dry": False,
        "task": {
            "name": court.spec.name,
            "digest": run.identity,
            "split": run.order.split,
            "index": run.order.index,
            "targets": len(run.targets),
            "warmups": len(run.warmup_positions),
            "capped": run.capped,
        },
        "grader": court.grader_id,
        "predictor_sha256": run.submission.sha256,
        "stage": stage(run.order.split),
        "state": court.spec.isolation.state,
        "seed": run.seed,
        "status": run.status,
        "reason": run.reason,
        "complete": run.status == "success",
        "wall_s": run.wall_s,
        "chain_head": chain_head([walked.head for walked in run.walked], court.spec.isolation.state).hex(),
        "report": None,
        **found,
        "targets": len(run.targets),
        "verdict": None,
        "probe_verdict": None,
        "overlap": None if test else court.overlap(),
        "warnings": [NOT_BUILT, *court.warnings],
        "interval": None,
        "windows": window_counts(statuses, run.restarts),
        "refused": refused,
        "failures_total": len(failures),
        "failures_by_code": by_code,
        "failures": _located(run, failures),
        "companion": None,
        "inference": None,
        "trial": {"index": trial, "holdout_query": query, "holdout_left": left},
        "isolation": {"backend": run.backend.report.backend, "class": run.backend.report.classed},
    }


def _versions() -> tuple[dict[str, str | None], str]:
    found: dict[str, str | None] = {"python": platform.python_version()}
    for name in DISTRIBUTIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    lines = "".join(f"{name}=={found[name]}\n" for name in sorted(found))
    return found, sha256(lines.encode()).hexdigest()


class Keeper:
    """Writes a run's directory: called once the walk has ended, whatever the end. `plugins` is the lock of P-70."""

    def __init__(self, plugins: Mapping[str, Any]) -> None:
        self.plugins = plugins
        self.grade: dict[str, Any] = {}

    def __call__(self, run: Conduct, aside: Aside, ledger: Ledger) -> Path:
        """Grade, write every file, put the score into the ledger, then `state.json`, then the rename."""
        self.grade = grade_object(run)
        folder = aside.folder
        aside.write_commits()
        _write_windows(run, self.grade, folder / "windows.parquet")
        _write_artifacts(run, self.grade, folder / "artifacts")
        _write_log(run, folder / "log.jsonl")
        write_json(folder / "run.json", self._run_json(run, ledger.head()))
        body = {"run_id": run.run_id, "task_digest": run.identity, "split": run.order.split, "files": aside.digests()}
        body |= {"reward_bps": self.grade["reward_bps"], "grader": run.court.grader_id, "status": run.status}
        ledger.record("score", body)
        write_json(folder / "state.json", {"schema": "blindcast.state/1", "status": run.status, "reason": run.reason})
        return aside.finish()

    def _run_json(self, run: Conduct, ledger_head: str) -> dict[str, Any]:
        court = run.court
        versions, environment = _versions()
        last = court.refs[run.targets[-1]]
        return {
            "schema": SCHEMA,
            "run_id": run.run_id,
            "stage": stage(run.order.split),
            "split": run.order.split,
            "index": run.order.index,
            "task_digest": run.identity,
            "pool_digest": court.pool_digest,
            "predictor_sha256": run.submission.sha256,
            "holdout_set": run.holdout_set,
            "trial_family": court.pool_digest,
            "trial_index": run.trial[0],
            "window_start": _iso(run.starts_ns[0]),
            "window_end": _iso(last.start_ns + court.grid.window_ns),
            "bar_spacing_s": court.grid.window_s / court.grid.steps,
            "calendar": "24x7",
            "periods_per_year": YEAR_S * court.grid.steps / court.grid.window_s,
            "cost_bps_charged": 0,
            "sizing_model": "proportional",
            "max_leverage": 1,
            "embargo_s": court.spec.split.embargo_windows * court.grid.window_s,
            "sleeves": None,
            "grader": court.grader_id,
            "state": court.spec.isolation.state,
            "seed": run.seed,
            "capped": run.capped,
            "dry_runs": 0,
            "isolation": isolation_record(
                run.backend.report, court.spec.isolation.require, court.policy, uid=run.uid, fresh=run.fresh, trips=run.trips
            ),
            "plugins": self.plugins,
            "versions": versions,
            "environment_digest": environment,
            "chain_head": self.grade["chain_head"],
            "ledger_head": ledger_head,
            "spec": dict(court.form),
            "warmup_ys": run.warmup_ys.tolist(),
            "grade": self.grade,
        }


def _iso(at_ns: int) -> str:
    return str(np.datetime_as_string(np.datetime64(at_ns, "ns"), unit="us")) + "Z"


def _write_windows(run: Conduct, grade: Mapping[str, Any], path: Path) -> None:
    rewards: Sequence[float | None] = grade["window_rewards_bps"] or _rewards(run)
    walked = [*run.walked, *[None] * (len(run.targets) - len(run.walked))]
    columns = {
        "window": range(len(run.targets)),
        "start_ns": run.starts_ns,
        "y": [None if w is None and run.status == "cancelled" else y for w, y in zip(walked, run.ys, strict=True)],
        "status": [w.status if w else "not_run" for w in walked],
        "code": [w.code if w else None for w in walked],
        "reason": [w.reason if w else None for w in walked],
        "reward_bps": rewards,
    }
    arrays = [pa.array(columns[entry.name], type=entry.type) for entry in WINDOWS]
    pq.write_table(pa.Table.from_arrays(arrays, schema=WINDOWS), path, compression="zstd")


def _rewards(run: Conduct) -> Sequence[float | None]:
    """Each window's reward for the owner's file; none of a cancelled run."""
    if run.status == "cancelled":
        return [None] * len(run.targets)
    return list(grade_task(run.court.grader, run.ys, run.curves, rms_step(run.warmup_ys)).rewards.tolist())


def _write_artifacts(run: Conduct, grade: Mapping[str, Any], folder: Path) -> None:
    folder.mkdir()
    if grade["reward_bps"] is not None:
        row = metrics(run.ys, run.curves, run.starts_ns, run.court.grid, grade["reward_bps"], grade["windows"]["crashed"])
        (folder / "metrics.csv").write_text(metrics_csv(row), encoding="utf-8")


def _write_log(run: Conduct, path: Path) -> None:
    """What happened, one JSON object a line; full texts of failures and output stay here (I-75)."""
    lines: list[dict[str, Any]] = [{"event": "run", "run_id": run.run_id, "door": run.order.door, "at": now_utc().isoformat()}]
    for walked in run.walked:
        lines.append({"event": "window", "window": walked.ordinal, "status": walked.status, "code": walked.code, "reason": walked.reason})
        lines += [
            {"event": "failure", "window": f.target, "anchor": f.anchor, "code": f.code, "knot": f.knot, "text": f.trace}
            for f in walked.failures
        ]
    lines.append({"event": "output", "text": run.output})
    lines.append({"event": "end", "status": run.status, "reason": run.reason, "text": run.trace, "wall_s": run.wall_s})
    path.write_text("".join(json.dumps(line, ensure_ascii=True) + "\n" for line in lines), encoding="utf-8")
