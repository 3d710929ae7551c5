"""`task build|show`: splits, overlap and refusals before anything is run (grading.md section 2)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from blindcast.testing.runner import Said

Cli = Callable[..., Said]


def build(cli: Cli, tmp_path: Path, *settings: str) -> Said:
    words = [word for setting in settings for word in ("--set", setting)]
    return cli("task", "build", "--pool", "synthetic", "-o", tmp_path / "task.toml", *words, "--json")


def test_the_default_market_makes_93_train_tasks_and_one_test_task(blindcast_cli: Cli, tmp_path: Path) -> None:
    """GV-48, G-19."""
    said = build(blindcast_cli, tmp_path)
    assert said.data["tasks"] == {"train": 93, "test": 1}
    assert said.data["overlap"]["independent_sets"] == 1.96
    assert said.data["purged"] == 0


def test_the_overlap_meter_is_one_line_for_people(blindcast_cli: Cli, tmp_path: Path) -> None:
    """G-19."""
    said = blindcast_cli("task", "build", "--pool", "synthetic", "-o", tmp_path / "task.toml")
    line = "93 tasks = 1.96 independent target sets (188 distinct windows; neighbours share 95 of 96, two random ones 67 %)"
    assert line in said.stdout


def test_show_tells_what_build_told(blindcast_cli: Cli, tmp_path: Path) -> None:
    built = build(blindcast_cli, tmp_path, "source.windows=30", "split.targets=10", "split.test_windows=8")
    shown = blindcast_cli("task", "show", tmp_path / "task.toml", "--json")
    assert shown.data == built.data


def test_a_pool_too_short_is_refused_with_both_numbers_and_no_file(blindcast_cli: Cli, tmp_path: Path) -> None:
    """G-16: it says how many windows there are and how many are needed; nothing is half-written."""
    said = build(blindcast_cli, tmp_path, "source.windows=99")
    error = said.document["error"]
    assert (said.exit_code, error["code"]) == (3, "pool_too_small")
    assert "99 windows" in error["message"]
    assert "at least 100" in error["message"]
    assert list(tmp_path.glob("*.toml*")) == []


def test_a_test_task_without_a_train_task_is_a_warning(blindcast_cli: Cli, tmp_path: Path) -> None:
    """G-16, GV-51."""
    said = build(blindcast_cli, tmp_path, "source.windows=195")
    assert (said.exit_code, said.data["tasks"], said.data["overlap"]) == (0, {"train": 0, "test": 1}, None)
    assert said.data["warnings"][0].startswith("no_train_tasks")


def test_the_next_line_names_a_walk_that_the_task_has(blindcast_cli: Cli, tmp_path: Path) -> None:
    """F-01: without a train task, `run` would be refused."""
    build(blindcast_cli, tmp_path, "source.windows=195")
    assert "next: blindcast submit imbalance" in blindcast_cli("task", "show", tmp_path / "task.toml").stderr


def test_a_requirement_that_names_no_isolation_is_refused_before_a_run(blindcast_cli: Cli, tmp_path: Path) -> None:
    """DESIGN 5, I-03."""
    said = build(blindcast_cli, tmp_path, "isolation.require=kernal")
    error = said.document["error"]
    assert (said.exit_code, error["code"]) == (3, "isolation_word")
    assert "did you mean 'kernel'?" in error["hint"]
    assert list(tmp_path.glob("*.toml*")) == []


@pytest.mark.parametrize(
    ("setting", "code", "hint"),
    [
        ("split.targts=3", "config_unknown_key", "targets"),
        ('split.targets="3"', "config_wrong_type", ""),
        ("split.targets=0", "config_bad_value", ""),
        ("grader.alpah=2", "config_unknown_key", "alpha"),
        ("grader.alpha=-1", "config_bad_value", ""),
        ("grader.alpha=true", "config_wrong_type", ""),
        ("source.sede=3", "config_unknown_key", "seed"),
        ("grader.use=earliness", "plugin_unknown", "earliness_x_horizon"),
        ("isolation.state=sometimes", "config_bad_value", ""),
    ],
)
def test_a_bad_key_is_refused_with_path_and_suggestion(blindcast_cli: Cli, tmp_path: Path, setting: str, code: str, hint: str) -> None:
    """P-30, PV-12, PV-13."""
    said = build(blindcast_cli, tmp_path, setting)
    error = said.document["error"]
    assert (said.exit_code, error["code"]) == (3, code)
    assert hint in error["hint"] + error["message"]
    assert not (tmp_path / "task.toml").exists()


def test_an_existing_file_is_overwritten_only_by_force(blindcast_cli: Cli, tmp_path: Path) -> None:
    """F-09."""
    (tmp_path / "task.toml").write_text("mine")
    said = build(blindcast_cli, tmp_path)
    assert (said.exit_code, said.document["error"]["code"]) == (2, "task_exists")
    assert (tmp_path / "task.toml").read_text() == "mine"


def test_a_missing_pool_is_a_data_error(blindcast_cli: Cli, tmp_path: Path) -> None:
    said = blindcast_cli("task", "build", "--pool", tmp_path / "nowhere", "-o", tmp_path / "task.toml", "--json")
    assert said.exit_code == 3
    assert "nowhere" in said.document["error"]["message"]


def test_looking_at_a_task_makes_no_ledger(blindcast_cli: Cli, tmp_path: Path) -> None:
    """Reading writes nothing."""
    build(blindcast_cli, tmp_path)
    blindcast_cli("task", "show", tmp_path / "task.toml")
    assert not (tmp_path / "home").exists()
