"""What a child may use."""

from __future__ import annotations

import pytest

from blindcast_isolation.limits import nproc, own_tasks


@pytest.mark.parametrize(("tasks", "limit"), [(None, 64), (0, 64), (250, 314)])
def test_a_shared_uid_gets_its_own_tasks_on_top(tasks: int | None, limit: int) -> None:
    """I-60."""
    assert nproc(tasks) == limit


def test_this_process_counts() -> None:
    """I-60."""
    assert own_tasks() >= 1
