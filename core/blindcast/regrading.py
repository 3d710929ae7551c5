"""Grading a stored run again: commitments and paths alone, no predictor runs (G-35)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from blindcast.aside import read_commits
from blindcast.documents import numbers
from blindcast.errors import DataError, IntegrityError, UsageError
from blindcast.host import Host
from blindcast.names import grade_id
from blindcast.protocol import link
from blindcast.records import F64
from blindcast.runs import Run, reading
from blindcast.walk import chain_head

__all__ = ["regrade_run", "sealed_head"]

TOLERANCE = 1e-9  # G-00


def sealed_head(path: Path, steps: int, state: str) -> str:
    """The chain's head, hex, from the rows of `commits.parquet`. Raises IntegrityError `chain_broken` at a row that does not check."""
    head, heads, window = bytes(32), [], -1
    for batch in pq.ParquetFile(path).iter_batches():
        for row in batch.to_pylist():
            if row["window"] != window and state == "fresh":
                head = bytes(32)
            if row["window"] != window:
                heads.append(head)
                window = row["window"]
            label = f"{row['kind']}:{row['code'] or ''}".encode()
            curve = np.array(row["curve"], dtype="<f8")
            head = link(head, window, row["anchor"], label, curve.tobytes(), bytes.fromhex(row["prefix_sha256"]))
            if head.hex() != row["link"] or len(curve) != steps - row["anchor"]:
                raise IntegrityError(
                    "chain_broken",
                    f"the link of window {window}, anchor {row['anchor']} does not check",
                    expected="each link the hash of the one before and of its row",
                    do="this run cannot be trusted: its commitments were changed",
                    window=window,
                    anchor=row["anchor"],
                )
            heads[-1] = head
    return chain_head(heads, "fresh" if state == "fresh" else "carry").hex()


def regrade_run(
    host: Host, run: Run, grader: str | None, options: Mapping[str, Any], *, home: Path, environ: Mapping[str, str]
) -> dict[str, Any]:
    """The grade object of a run, numbers made anew, with `from to same max_abs_diff_bps chain`.

    Raises IntegrityError `regrade_mismatch` where the same grader gives another number, UsageError `grid_fixed` for
    `steps`, DataError `run_not_whole`; another grader is `regrade_not_built` in this version.
    """
    if not run.is_whole:
        raise DataError(
            "run_not_whole", f"run {run.run_id} is {run.status}", expected="a whole run", do="`blindcast runs list` shows which are"
        )
    if "steps" in options:
        raise UsageError(
            "grid_fixed",
            "`steps` is fixed by the commitments",
            expected="options of the grader",
            do="build a task with another grid and run again",
        )
    with reading(run):
        stored: dict[str, Any] = dict(run.facts["grade"])
        spec, reward, trial = run.facts["spec"], stored["reward_bps"], stored["trial"]["index"]
        steps, own = spec["grid"]["steps"], dict(spec["grader"])
    if reward is None:
        raise DataError(
            "run_not_graded", f"run {run.run_id} was {run.status}: it has no number", expected="a graded run", do="run it again"
        )
    use = grader or own["use"]
    found = host.find("graders", use)
    told = {
        **({k: v for k, v in own.items() if k != "use"} if host.find("graders", own["use"]).qualified == found.qualified else {}),
        **options,
    }
    built = host.make(found, told, where="grader")
    identity = grade_id(found.name, found.distribution, built.version, steps, host.options("graders", use, told, where="grader"))
    if identity != stored["grader"]:
        raise UsageError(
            "regrade_not_built",
            f"regrading by another grader ({identity}) is not built yet",
            expected=stored["grader"],
            do="leave --grader and --set out; another number is new information and will cost a trial",
        )
    with reading(run):
        head = sealed_head(run.folder / "commits.parquet", steps, stored["state"])
        ys, rewards, curves = _stored(run.folder, steps)
        warmups = np.array(run.facts["warmup_ys"], dtype=np.float64)
    fresh = numbers(built, ys, curves, warmups, trial, shows_windows=True)
    gaps = np.abs(np.array(fresh["window_rewards_bps"]) - rewards)
    gap = float(gaps.max())
    same = abs(fresh["reward_bps"] - reward) <= TOLERANCE * max(1.0, abs(reward))
    same &= bool((gaps <= TOLERANCE * np.maximum(1.0, np.abs(rewards))).all())  # a NaN is no agreement
    if not same or head != stored["chain_head"]:
        raise IntegrityError(
            "regrade_mismatch",
            f"the stored reward is {stored['reward_bps']!r}, the commitments give {fresh['reward_bps']!r}",
            expected="the same number, and the chain head of the run",
            do="this run cannot be trusted: its files or its grader were changed",
            stored=stored["reward_bps"],
            found=fresh["reward_bps"],
        )
    if stored["task"]["split"] == "test":
        fresh["window_rewards_bps"] = None
    known = {"grader": stored["grader"], "reward_bps": stored["reward_bps"]}
    to = {"grader": identity, "reward_bps": fresh["reward_bps"]}
    return {**stored, **fresh, "from": known, "to": to, "same": True, "max_abs_diff_bps": gap, "chain": "ok"}


def _stored(folder: Path, steps: int) -> tuple[F64, F64, F64]:
    """(ys F64[W, G+1], rewards F64[W], curves F64[W, G, G+1]) of a run directory."""
    table = pq.read_table(folder / "windows.parquet", columns=["y", "reward_bps"])
    ys = np.array(table["y"].to_pylist(), dtype=np.float64)
    if ys.shape != (len(table), steps + 1):
        raise ValueError(f"windows.parquet holds paths of shape {ys.shape}, not {(len(table), steps + 1)}")
    return ys, np.array(table["reward_bps"].to_pylist(), dtype=np.float64), read_commits(folder / "commits.parquet", len(ys), steps)
