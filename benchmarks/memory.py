"""Peak memory of the walker's process over 96 and 2,000 targets of 60 s (B-M1): it must not grow with the number of windows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SIZES = (96, 2000)
TARGET = 1.10
CHILD = """
import sys
from blindcast.cli import main
code = main(sys.argv[1:])
print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")), file=sys.stderr)
sys.exit(code)
"""


def peak_kib(targets: int, folder: Path) -> int:
    """VmHWM of one whole `run`, in KiB."""
    environ = {**os.environ, "BLINDCAST_HOME": str(folder / "home")}
    task = folder / f"{targets}.toml"
    settings = [
        f"source.windows={targets + 8}",
        "source.every_s=60",
        "grid.window_s=60",
        f"split.targets={targets}",
        "split.test_windows=2",
    ]
    words = [word for setting in settings for word in ("--set", setting)]
    build = [sys.executable, "-m", "blindcast", "task", "build", "--pool", "synthetic", "-o", str(task), *words]
    subprocess.run(build, check=True, env=environ, capture_output=True)
    argv = [sys.executable, "-c", CHILD, "run", "persistence", "--task", str(task), "-q"]
    said = subprocess.run(argv, check=True, env=environ, capture_output=True, text=True)
    found = re.search(r"VmHWM:\s+(\d+) kB", said.stderr)
    assert found, said.stderr
    return int(found[1])


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        small, large = (peak_kib(targets, Path(name)) for targets in SIZES)
    print(f"walker's peak   {SIZES[0]} targets {small / 1024:.0f} MiB   {SIZES[1]} targets {large / 1024:.0f} MiB   "
          f"ratio {large / small:.3f}  target <= {TARGET}")  # fmt: skip


if __name__ == "__main__":
    main()
