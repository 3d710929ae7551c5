"""What a child may use."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from blindcast_isolation import limits
from blindcast_isolation.limits import nproc, own_tasks


@pytest.mark.parametrize(("tasks", "limit"), [(None, 64), (0, 64), (250, 314)])
def test_a_shared_uid_gets_its_own_tasks_on_top(tasks: int | None, limit: int) -> None:
    """I-60."""
    assert nproc(tasks) == limit


def test_this_process_counts() -> None:
    """I-60."""
    assert own_tasks() >= 1


def test_a_process_that_is_not_dumpable_counts() -> None:
    """I-60: every child of ours is such a one, and its entry of /proc seems to be root's."""
    sleeper = "import ctypes, sys; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); print(1, flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", sleeper], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert limits._tasks_of(str(process.pid), os.getuid()) == 1
        process.communicate()


def test_what_a_container_hides_is_counted_by_what_the_kernel_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    """I-60: as root nothing is refused, so nothing is hidden."""
    limits._hidden_tasks.cache_clear()
    seen = limits._seen_tasks()
    monkeypatch.setattr(limits, "_seen_tasks", lambda: max(0, seen - 30))
    hidden = limits._hidden_tasks()
    limits._hidden_tasks.cache_clear()
    assert hidden == 0 if os.geteuid() == 0 else hidden > 0
