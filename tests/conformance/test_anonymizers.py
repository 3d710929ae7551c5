"""Every shipped anonymizer passes all its checks (plugins.md P-53)."""

from __future__ import annotations

from collections.abc import Callable

from blindcast.testing import conforms


@conforms("anonymizers", "bps")
def test_bps(check: Callable[[], None]) -> None:
    """AN-01 to AN-10."""
    check()
