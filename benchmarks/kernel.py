"""Grading against the memory: bars B-K1, B-K2, B-K4 and B-K5 of the kernel, both sides timed in turn in one run.

    python benchmarks/kernel.py [--windows 10000] [--rounds 5] [--json]

A B A B: one warm-up round, then `--rounds` rounds; a round's figure is the median of its repeats (the limit's: its best),
a bar's value the median of the rounds' ratios, printed with the lowest and the highest. One thread. No bar is judged here
in a test: times are for people.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # one thread a side

import numpy as np  # noqa: E402  # the thread limits have to be set first

from blindcast.records import F64  # noqa: E402
from blindcast_graders import EarlinessHorizon, diagnostics  # noqa: E402
from blindcast_graders.kernel import paid, priced  # noqa: E402

Work = Callable[[], float]


def market(windows: int, steps: int) -> tuple[F64, F64]:
    """(ys F64[W, G+1], curves F64[W, G, G+1]) of a seeded random walk and random convictions."""
    rng = np.random.default_rng(0)
    ys = np.concatenate([np.zeros((windows, 1)), np.cumsum(rng.normal(0, 5, (windows, steps)), axis=1)], axis=1)
    curves = np.zeros((windows, steps, steps + 1))
    i, j = np.triu_indices(steps, 1, steps + 1)
    curves[:, i, j] = rng.uniform(-1, 1, (windows, len(i)))
    return ys, curves


def limit(ys: F64, curves: F64) -> Work:
    """Each conviction and each weighted move of the packed triangles read once."""
    steps = curves.shape[1]
    i, j = np.triu_indices(steps, 1, steps + 1)
    convictions, moves = np.ascontiguousarray(curves[:, i, j]), priced(ys, 1.0, "window_bps")
    return lambda: float(convictions.sum() + moves.sum())


def loop(ys: F64, curves: F64) -> Work:
    """The plain Python loop over the cells."""
    steps = curves.shape[1]
    cells = [(i, j, (2 - i / steps) * (j - i) / steps) for i in range(steps) for j in range(i + 1, steps + 1)]
    paths, tables = ys.tolist(), curves.tolist()

    def grade() -> float:
        total = 0.0
        for y, c in zip(paths, tables, strict=True):
            for i, j, w in cells:
                total += c[i][j] * (y[j] - y[i]) * w
        return total

    return grade


def timed(work: Work, best: bool) -> float:
    """Seconds a call: the median of the repeats, or the best of them for a limit."""
    started = time.perf_counter()
    work()
    loops = max(1, int(0.002 / max(time.perf_counter() - started, 1e-9)))
    samples = []
    for _ in range(9):
        started = time.perf_counter()
        for _ in range(loops):
            work()
        samples.append((time.perf_counter() - started) / loops)
    return min(samples) if best else statistics.median(samples)


def bar(name: str, label: str, above: Work, below: Work, target: float, op: str, rounds: int, limited: bool) -> dict[str, object]:
    """Time `above` and `below` in turn and give the ratio; `limited` marks a bar whose lower side is a limit."""
    ratios = []
    for turn in range(rounds + 1):
        one, other = timed(above, best=False), timed(below, best=limited)
        if turn:
            ratios.append(one / other)
    middle = statistics.median(ratios)
    passed = middle <= target if op == "<=" else middle >= target
    return {
        "id": name,
        "label": label,
        "ratio": middle,
        "low": min(ratios),
        "high": max(ratios),
        "op": op,
        "target": target,
        "pass": passed,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="Bars of the grading kernel (B-K1, B-K2, B-K4, B-K5)")
    parser.add_argument("--windows", type=int, default=10_000)
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    grader = EarlinessHorizon()
    ys, curves = market(args.windows, args.steps)
    moves, floor = priced(ys, 1.0, "window_bps"), limit(ys, curves)
    some = min(args.windows, 2_000)
    few = min(args.windows, 96)
    plain = loop(ys[:few], curves[:few])
    official = float(grader.grade_all(ys[:few], curves[:few]).sum())
    if abs(plain() - official) > 1e-9 * abs(official):
        print("error[bench_work_differs]: the plain loop and the grader disagree", file=sys.stderr)
        return 4

    def everything() -> float:
        told = grader.explain(ys[:some], curves[:some], ys[:4], 3)  # the reward is told as reward_wmean_bps
        diagnostics(ys[:some], curves[:some])
        return float(told["reward_wmean_bps"])

    bars = [
        bar("B-K1", "r*w cached / limit", lambda: float(paid(moves, curves).sum()), floor, 7, "<=", args.rounds, True),
        bar("B-K2", "from y / limit", lambda: float(grader.grade_all(ys, curves).sum()), floor, 16, "<=", args.rounds, True),
        bar("B-K4", "reward and G-40 to G-45 / limit", everything, limit(ys[:some], curves[:some]), 40, "<=", args.rounds, True),
        bar(
            "B-K5",
            "plain Python loop / from y",
            plain,
            lambda: float(grader.grade_all(ys[:few], curves[:few]).sum()),
            8,
            ">=",
            args.rounds,
            False,
        ),
    ]
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    if args.json:
        print(json.dumps({"name": "kernel", "work": {"windows": args.windows, "steps": args.steps}, "load_per_cpu": load, "bars": bars}))
    else:
        for b in bars:
            print(f"{b['id']}  {b['label']:<34} {b['ratio']:7.2f}  ({b['low']:.2f} to {b['high']:.2f})  {b['op']} {b['target']}")
        print(f"load per CPU {load:.2f}" + ("  noisy: judge nothing by this run" if load >= 0.5 else ""))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
