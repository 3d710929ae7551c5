"""Every shipped importer passes all its checks on a recording of the kit's (plugins.md P-53)."""

from __future__ import annotations

from collections.abc import Callable

from blindcast.testing import conforms


@conforms("datasources", "lake", protocol="Importer")
def test_lake(check: Callable[[], None]) -> None:
    """IM-01 to IM-07."""
    check()


@conforms("datasources", "binance", protocol="Importer")
def test_binance(check: Callable[[], None]) -> None:
    """IM-01 to IM-07."""
    check()
