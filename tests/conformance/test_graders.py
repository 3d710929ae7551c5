"""Every shipped grader passes all its checks (plugins.md P-53)."""

from __future__ import annotations

from collections.abc import Callable

from blindcast.testing import conforms


@conforms("graders", "earliness_x_horizon")
def test_the_official_grader(check: Callable[[], None]) -> None:
    """GR-01 to GR-12."""
    check()


@conforms("graders", "earliness_x_horizon", options={"alpha": 0.5, "returns": "simple_bps"})
def test_the_official_grader_with_simple_returns(check: Callable[[], None]) -> None:
    """GR-01 to GR-12."""
    check()


@conforms("graders", "earliness_x_horizon", options={"alpha": 0, "returns": "log_bps"})
def test_the_official_grader_with_log_returns_and_no_earliness(check: Callable[[], None]) -> None:
    """GR-01 to GR-12."""
    check()
