"""A small blind market and a few submissions, for tests: seeded, nothing downloaded (P-52)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

__all__ = ["SUBMISSIONS", "TASK", "write_submissions", "write_task"]

TASK = """\
schema = "blindcast.task/1"
name = "small"
[source]
use = "synthetic"
windows = 12
every_s = 60
[grid]
window_s = 60
steps = 5
[split]
test_windows = 3
targets = 3
warmups = 2
[budget]
step_wall_s = 2
"""

SUBMISSIONS: Mapping[str, str] = MappingProxyType(
    {
        "honest": '''"""Leans with the last move."""


class Predictor:
    def fit(self, warmups):
        self.size = 0.5 if warmups else 0.1

    def predict(self, view):
        return self.size if view.y[-1] > 0 else -self.size
''',
        "late": '''"""Never answers after the first window."""

import time


class Predictor:
    asked = 0

    def predict(self, view):
        self.asked += 1
        while self.asked > len(view.horizons) + view.anchor:
            time.sleep(3600)
        return 1.0
''',
        "crashing": '''"""Raises at every second anchor."""


class Predictor:
    def predict(self, view):
        if view.anchor % 2:
            raise RuntimeError("no idea")
        return 1.0
''',
        "hostile": '''"""Tries to reach out, then ends its own process."""

import os
import signal


class Predictor:
    def predict(self, view):
        for attempt in (lambda: open("/etc/passwd").read(), os.fork, lambda: os.kill(os.getppid(), signal.SIGKILL)):
            try:
                attempt()
            except BaseException:
                pass
        os._exit(9)
''',
    }
)


def write_task(folder: Path) -> Path:
    """The small task's file in `folder`."""
    path = folder / "small.toml"
    path.write_text(TASK, encoding="utf-8")
    return path


def write_submissions(folder: Path) -> dict[str, Path]:
    """The submissions by name, each a file in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = {name: folder / f"{name}.py" for name in SUBMISSIONS}
    for name, path in paths.items():
        path.write_text(SUBMISSIONS[name], encoding="utf-8")
    return paths
