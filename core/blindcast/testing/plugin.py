"""Fixtures for tests of blindcast and of its plugins: none is autouse, every import stands inside (P-52)."""

from __future__ import annotations

import typing

import pytest

if typing.TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from blindcast.host import Host
    from blindcast.testing.runner import Said


@pytest.fixture
def blindcast_host() -> Host:
    """An empty host: `with blindcast_host.plug(module):` registers, `discover()` raises `plugin_discovery_refused`."""
    from blindcast.host import Host

    return Host({}, discovers=False)


@pytest.fixture
def blindcast_installed() -> Host:
    """A host over everything installed, whatever the environment's policy."""
    from blindcast.host import Host

    return Host({})


@pytest.fixture
def blindcast_cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Said]:
    """Run the command line: `blindcast_cli("plugins", "list", "--json")`, with a home of its own and a clean environment."""
    import os

    from blindcast.testing.runner import say

    for name in [name for name in os.environ if name.startswith("BLINDCAST_") and name != "BLINDCAST_REAL_DATA"]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("BLINDCAST_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NO_COLOR", "1")
    return say
