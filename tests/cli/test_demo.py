"""`demo`, `new` and `check`: the first ten minutes (face.md section 1)."""

from __future__ import annotations

from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

from blindcast.testing.runner import Said

Cli = Callable[..., Said]


class Cells(HTMLParser):
    """The text of each cell, and every address that would be loaded."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loads += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        self.words.append(data.strip())


def test_the_demo_walks_three_predictors_and_a_cheater(blindcast_cli: Cli) -> None:
    said = blindcast_cli("demo", "--json")
    assert said.exit_code == 0, said.stderr
    rows = {row["predictor"]: row for row in said.data["runs"]}
    assert list(rows) == ["flat", "persistence", "imbalance", "peek"]
    assert rows["flat"]["reward_bps"] == 0.0
    assert rows["peek"]["reward_bps"] == 0.0
    assert all(row["failures"] == 0 for row in rows.values())


def test_the_demo_is_repeatable_and_spends_no_holdout_query(blindcast_cli: Cli, tmp_path: Path) -> None:
    from blindcast.ledger import Ledger

    first, second = (blindcast_cli("demo", "--json").data["runs"] for _ in range(2))
    assert [row["reward_bps"] for row in first] == [row["reward_bps"] for row in second]
    assert "holdout_query" not in {entry.kind for entry in Ledger(tmp_path / "home" / "ledger.sqlite").entries()}


def test_the_report_of_the_demo_is_one_offline_table(blindcast_cli: Cli) -> None:
    said = blindcast_cli("demo", "--json")
    cells = Cells()
    cells.feed(Path(said.data["report"]).read_text(encoding="utf-8"))
    assert cells.loads == []
    assert f"{said.data['runs'][2]['reward_bps']:+.1f}" in cells.words


def test_the_demo_ends_with_a_report_and_one_next_line(blindcast_cli: Cli) -> None:
    said = blindcast_cli("demo")
    assert said.stdout.splitlines()[-1].startswith("report ")
    assert said.stderr.splitlines()[-1].startswith("next: ")


@pytest.mark.parametrize("scenario", ["before-market", "observe", "tiled"])
def test_each_scenario_of_the_brief_is_one_command(blindcast_cli: Cli, scenario: str) -> None:
    """FE-82."""
    said = blindcast_cli("demo", "--scenario", scenario, "--json")
    assert said.exit_code == 0, said.stderr
    assert [row["predictor"] for row in said.data["runs"]] == [scenario]


def test_the_template_passes_check_as_it_is(blindcast_cli: Cli, tmp_path: Path) -> None:
    """Face.md section 1."""
    path = tmp_path / "my_signal.py"
    assert blindcast_cli("new", "predictor", path).exit_code == 0
    said = blindcast_cli("check", path, "--json")
    assert said.exit_code == 0, said.data
    assert [row["id"] for row in said.data["checks"]] == [f"PR-0{n}" for n in range(1, 8)]
    assert {row["result"] for row in said.data["checks"]} == {"pass"}


def test_check_says_which_check_fails(blindcast_cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "short.py"
    path.write_text("class Predictor:\n    def predict(self, view):\n        return [0.5]\n")
    said = blindcast_cli("check", path, "--json")
    assert said.exit_code == 1
    assert {row["id"] for row in said.data["checks"] if row["result"] == "fail"} >= {"PR-01"}


def test_new_overwrites_only_by_force(blindcast_cli: Cli, tmp_path: Path) -> None:
    """F-09."""
    path = tmp_path / "my_signal.py"
    path.write_text("mine")
    said = blindcast_cli("new", "predictor", path, "--json")
    assert (said.exit_code, said.document["error"]["code"]) == (2, "file_exists")
    assert path.read_text() == "mine"
