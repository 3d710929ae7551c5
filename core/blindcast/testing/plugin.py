"""Fixtures for tests of blindcast and of its plugins: none is autouse, every import stands inside (P-52)."""

from __future__ import annotations

import typing

import pytest

if typing.TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from blindcast.contracts import DataSource
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


@pytest.fixture
def blindcast_market(blindcast_installed: Host) -> DataSource:
    """A seeded market of twelve 60 s windows: the source of `blindcast_task`; nothing is downloaded."""
    return blindcast_installed.build("datasources", "synthetic", {"windows": 12, "every_s": 60})


@pytest.fixture
def blindcast_task(tmp_path: Path) -> Path:
    """The file of a small task over `blindcast_market`: G = 5, 2 warm-ups, 3 targets, 3 test windows."""
    from blindcast.testing.market import write_task

    return write_task(tmp_path)


@pytest.fixture
def blindcast_predictors(tmp_path: Path) -> dict[str, Path]:
    """Submissions by name: honest, late, crashing, hostile."""
    from blindcast.testing.market import write_submissions

    return write_submissions(tmp_path / "submissions")
