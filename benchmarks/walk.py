"""The walk against a bare loop: bars B-W1 (in process), B-W2 (isolated) and B-W4 (9,000 rows), all sides in turn in one run.

    python benchmarks/walk.py [--backend privdrop|hook] [--windows 96] [--rows 900] [--rounds 5] [--json]

The bare loop does the same work with numpy alone and grades as it goes: at each of 15 anchors it predicts the sign of the
last move for every remaining knot. Ours walks the same paths blind, checks each curve and seals it. A round's figure is the
median over its windows, in us an origin; a bar's value is the median of the rounds' ratios, with the lowest and the highest.
Times are for people: no test judges them.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import numpy as np

from blindcast.buffer import RevealBuffer
from blindcast.local import LocalSeat
from blindcast.records import F64, Blinded, Grid, Policy
from blindcast.reveal import Reveal, ready
from blindcast.view import Context
from blindcast.walk import Seat, Walker
from blindcast.wire import ChildSeat, RunClock
from blindcast_isolation.hook import Hook
from blindcast_isolation.privdrop import PrivDrop

STEPS, COLUMNS = 15, tuple(f"c{i}" for i in range(82))
WARM_UP = 8  # windows that are walked before any is timed
SOURCE = """
import math

class Predictor:
    def __init__(self, context):
        self.steps = context.grid.steps

    def predict(self, view):
        y = view.y
        move = float(y[-1] - y[-2]) if view.anchor else 0.0
        return [math.copysign(1.0, move) if move else 0.0] * (self.steps - view.anchor)
"""


class LastMove:
    """What the bare loop asks."""

    def predict(self, past: F64, out: F64) -> None:
        out[:] = np.sign(past[-1] - past[-2]) if len(past) > 1 else 0.0


def bare(mids: F64) -> Iterator[float]:
    """us an origin of each window of the bare loop, graded inside it."""
    rows = mids.shape[1] - 1
    knots = [rows * k // STEPS for k in range(STEPS + 1)]
    early, far = 2 - np.arange(STEPS) / STEPS, np.arange(1, STEPS + 1) / STEPS
    predictor, out, total = LastMove(), np.empty(STEPS), 0.0
    for mid in mids:
        started = time.perf_counter()
        y = 1e4 * (mid / mid[0] - 1)
        at_knots = y[knots]
        for i in range(STEPS):
            curve = out[: STEPS - i]
            predictor.predict(y[: knots[i] + 1], curve)
            total += early[i] * float(np.dot(curve, (at_knots[i + 1 :] - at_knots[i]) * far[: STEPS - i]))
        yield (time.perf_counter() - started) / STEPS * 1e6


def walked(seats: Callable[[], Seat], reveals: list[Reveal]) -> Iterator[float]:
    """us an origin of each window of ours, checked and sealed."""
    kept: list[bytes] = []

    def store(_ordinal: int, _anchor: int, _label: bytes, _curve: bytes, _digest: bytes, link: bytes) -> None:
        kept.append(link)

    seat = seats()
    walk = Walker(seats, store, STEPS).walk(seat, iter([*reveals[:WARM_UP], *reveals]))
    for _ in range(WARM_UP):
        next(walk)
    for _ in reveals:
        started = time.perf_counter()
        target = next(walk)
        yield (time.perf_counter() - started) / STEPS * 1e6
        assert target.status == "ok"
    seat.leave()


def market(windows: int, rows: int) -> tuple[F64, list[Reveal]]:
    """(mids F64[W, rows + 1], the same windows ready to be revealed) of a seeded random walk."""
    random = np.random.default_rng(0)
    mids = np.cumsum(random.normal(0, 0.35, (windows, rows + 1)), axis=1) + 60_000.0
    until = np.array([rows * i // STEPS for i in range(STEPS + 1)])
    reveals = []
    for mid in mids:
        ladder = random.standard_normal((rows, len(COLUMNS)), dtype=np.float32)
        events = random.standard_normal((rows, 2), dtype=np.float32)
        reveals.append(ready(Blinded(COLUMNS, ladder, events, (1e4 * (mid / mid[0] - 1))[until], until, until)))
    return mids, reveals


def figure(per_window: Iterator[float]) -> float:
    return statistics.median(per_window)


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """The figures of every round, all sides in turn."""
    backend = PrivDrop() if args.backend == "privdrop" else Hook()
    context = Context(Grid(900, STEPS), 1.0, COLUMNS, 0)
    space: dict[str, Any] = {}
    exec(SOURCE, space)
    mids, reveals = market(args.windows, args.rows)
    buffer = RevealBuffer(COLUMNS, args.rows, args.rows, STEPS + 1)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "predictor.py").write_text(SOURCE)

        def local() -> Seat:
            return LocalSeat(space["Predictor"], context, [])

        def isolated() -> Seat:
            return ChildSeat(backend, Path(folder), Policy(), context, "carry", buffer, list, RunClock(900.0))

        figure(walked(isolated, reveals))  # the zygote goes on importing meanwhile
        time.sleep(args.settle_s)
        rounds = [
            {"bare": figure(bare(mids)), "local": figure(walked(local, reveals)), "isolated": figure(walked(isolated, reveals))}
            for _ in range(args.rounds)
        ]
    backend.close()
    buffer.close()
    return {"backend": args.backend, "windows": args.windows, "rows": args.rows, "rounds_us": rounds}


def ratios(rounds: list[dict[str, float]], side: str) -> tuple[float, float, float]:
    found = sorted(r[side] / r["bare"] for r in rounds)
    return statistics.median(found), found[0], found[-1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=("privdrop", "hook"), default="privdrop" if os.geteuid() == 0 else "hook")
    parser.add_argument("--windows", type=int, default=96)
    parser.add_argument("--rows", type=int, default=900)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--settle-s", type=float, default=4.0, help="seconds for the zygote to finish its imports")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    result = measure(args)
    bars = {"B-W1": ("local", 1.5), "B-W2": ("isolated", 8.0)}
    result["bars"] = {
        bar: dict(zip(("median", "low", "high"), ratios(result["rounds_us"], side), strict=True)) for bar, (side, _) in bars.items()
    }
    if args.json:
        print(json.dumps(result))
        return 0
    for bar, (side, limit) in bars.items():
        value = result["bars"][bar]
        us = statistics.median(r[side] for r in result["rounds_us"])
        base = statistics.median(r["bare"] for r in result["rounds_us"])
        words = f"{value['median']:.2f} x bare ({value['low']:.2f} to {value['high']:.2f}), at most {limit}"
        print(f"{bar} {side}: {words}; {us:.1f} us against {base:.1f} us")
    return 0


if __name__ == "__main__":
    sys.exit(main())
