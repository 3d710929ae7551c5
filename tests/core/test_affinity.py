"""The core that a walker shares with its child (performance.md PF-25)."""

from __future__ import annotations

import os

import pytest

from blindcast.affinity import SharedCore, cpu_mask

pytestmark = pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="no affinity masks here")


def test_the_mask_is_that_of_the_thread() -> None:
    """I-80."""
    assert set(cpu_mask()) == os.sched_getaffinity(0)
    assert len(set(cpu_mask())) == len(cpu_mask())


def test_a_thread_joins_a_core_and_leaves_it() -> None:
    """PF-25: twice is once."""
    own = os.sched_getaffinity(0)
    core = SharedCore(max(own))
    core.join()
    core.join()
    assert os.sched_getaffinity(0) == {max(own)}
    assert cpu_mask() == (max(own),)
    core.leave()
    core.leave()
    assert os.sched_getaffinity(0) == own


def test_without_a_core_nothing_moves() -> None:
    own = os.sched_getaffinity(0)
    core = SharedCore(None)
    core.join()
    assert os.sched_getaffinity(0) == own
    core.leave()
