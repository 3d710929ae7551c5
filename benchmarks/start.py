"""Start-up against the bare import of what the door stands on (P-63): `--help` and `plugins list`, A B A B, medians of the ratios."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

ROUNDS = 15
BARE = [sys.executable, "-c", "import click, pluggy, attrs, cattrs"]
OURS = {"--help": ["--help"], "plugins list": ["plugins", "list"]}
TARGET = 2.0


def seconds(argv: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - started


def main() -> None:
    for name, words in OURS.items():
        argv = [sys.executable, "-m", "blindcast", *words]
        seconds(argv), seconds(BARE)  # warm
        ratios = [seconds(argv) / seconds(BARE) for _ in range(ROUNDS)]
        print(f"{name:<14} ratio {statistics.median(ratios):.2f}  [{min(ratios):.2f}, {max(ratios):.2f}]  target <= {TARGET}")


if __name__ == "__main__":
    main()
