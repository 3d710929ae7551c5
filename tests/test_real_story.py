"""The main job on real recordings, as the README tells it. Needs the real data."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from blindcast.testing.runner import Said

Cli = Callable[..., Said]


def real_data() -> Path | None:
    """BLINDCAST_REAL_DATA, else `shared/data` beside the checkout or a folder above."""
    named = os.environ.get("BLINDCAST_REAL_DATA")
    if named:
        return Path(named)
    above = [*Path(__file__).resolve().parents, *Path.cwd().parents]
    return next((folder / "shared" / "data" for folder in above if (folder / "shared" / "data").is_dir()), None)


DATA = real_data()
pytestmark = pytest.mark.skipif(DATA is None or not DATA.is_dir(), reason="real data not found: set BLINDCAST_REAL_DATA")


def imported(cli: Cli, tmp_path: Path, importer: str, folder: str, *settings: str) -> Path:
    """A task over a pool made of a recording."""
    assert DATA is not None
    said = cli("data", "import", f"{importer}:{DATA / folder}", "-o", tmp_path / "pool")
    assert said.exit_code == 0, said.stderr
    words = [word for setting in settings for word in ("--set", setting)]
    built = cli("task", "build", "--pool", tmp_path / "pool", "-o", tmp_path / "task.toml", *words)
    assert built.exit_code == 0, built.stderr
    return tmp_path / "task.toml"


def test_bitstamp_2015_is_walked_graded_and_submitted(blindcast_cli: Cli, tmp_path: Path) -> None:
    """900 s windows, the last 5 are test; baselines, imbalance and LightGBM on train, one submit on test."""
    folder = "lake/bitstamp-btcusd-2015-05-01"
    task = imported(blindcast_cli, tmp_path, "lake", folder, "split.test_windows=5", "split.targets=8")
    shown = blindcast_cli("task", "show", task, "--json").data
    assert (shown["windows"]["valid"], shown["windows"]["dropped"]) == (19, 2)
    rewards = {}
    for name in ("flat", "always-long", "always-short", "persistence", "warmup-drift", "imbalance", "lightgbm"):
        said = blindcast_cli("run", name, "--task", task, "--json")
        assert (said.exit_code, said.data["failures_total"]) == (0, 0), said.stderr
        rewards[name] = said.data["reward_bps"]
        assert said.data["baselines"]["always_long"] == pytest.approx(
            rewards.get("always-long", said.data["baselines"]["always_long"]), abs=1e-9
        )
    assert rewards["flat"] == 0.0
    assert rewards["always-long"] == pytest.approx(-rewards["always-short"], abs=1e-9)
    said = blindcast_cli("submit", "imbalance", "--task", task, "--json")
    assert (said.exit_code, said.data["windows"]["ok"], said.data["trial"]["holdout_left"]) == (0, 5, 2)


def test_a_binance_recording_is_walked_in_windows_of_a_minute(blindcast_cli: Cli, tmp_path: Path) -> None:
    """Raw lines, the snapshot spliced: 10 of 12 slots are windows."""
    settings = ("grid.window_s=60", "split.test_windows=2", "split.targets=3", "split.warmups=2")
    task = imported(blindcast_cli, tmp_path, "binance", "raw/binance-spot-btcusdt-2024-08-08", *settings)
    shown = blindcast_cli("task", "show", task, "--json").data
    assert (shown["windows"]["valid"], shown["windows"]["dropped"]) == (10, 2)
    said = blindcast_cli("run", "imbalance", "--task", task, "--json")
    assert (said.exit_code, said.data["failures_total"]) == (0, 0), said.stderr


def test_a_recording_too_short_for_the_default_split_says_how_short(blindcast_cli: Cli, tmp_path: Path) -> None:
    """G-16."""
    assert DATA is not None
    blindcast_cli("data", "import", f"lake:{DATA / 'lake/bitstamp-btcusd-2015-05-01'}", "-o", tmp_path / "pool")
    said = blindcast_cli("task", "build", "--pool", tmp_path / "pool", "-o", tmp_path / "task.toml", "--json")
    assert (said.exit_code, said.document["error"]["code"]) == (3, "pool_too_small")
    assert "19 windows" in said.document["error"]["message"]
    assert "100" in said.document["error"]["message"]
