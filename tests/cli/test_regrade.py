"""`regrade` and `runs`: the number again from commitments alone (G-35)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from blindcast.testing.runner import Said

Cli = Callable[..., Said]


@pytest.fixture
def folder(blindcast_cli: Cli, blindcast_task: Path) -> Path:
    """The run directory of a submit."""
    return Path(blindcast_cli("submit", "imbalance", "--task", blindcast_task, "--json").data["folder"])


def test_a_regrade_gives_the_same_bits(blindcast_cli: Cli, folder: Path) -> None:
    """G-35, G-91."""
    said = blindcast_cli("regrade", "last", "--json")
    stored = json.loads((folder / "run.json").read_text())["grade"]
    assert said.exit_code == 0, said.stderr
    assert (said.data["same"], said.data["chain"], said.data["max_abs_diff_bps"]) == (True, "ok", 0.0)
    assert said.data["reward_bps"] == stored["reward_bps"]
    assert said.data["from"]["grader"] == said.data["to"]["grader"]


def test_a_regrade_spends_nothing(blindcast_cli: Cli, folder: Path, tmp_path: Path) -> None:
    """G-35."""
    from blindcast.ledger import Ledger

    before = Ledger(tmp_path / "home" / "ledger.sqlite").head()
    blindcast_cli("regrade", folder.name[-6:])
    assert Ledger(tmp_path / "home" / "ledger.sqlite").head() == before


def rewrite(path: Path, name: str, column: list[object]) -> None:
    table = pq.read_table(path)
    place = table.column_names.index(name)
    pq.write_table(table.set_column(place, table.schema.field(name), pa.array(column, table.schema.field(name).type)), path)


def test_a_changed_commitment_breaks_the_chain(blindcast_cli: Cli, folder: Path) -> None:
    """DESIGN 4: the chain names the row."""
    curves = pq.read_table(folder / "commits.parquet")["curve"].to_pylist()
    curves[3] = [1.0] * len(curves[3])
    rewrite(folder / "commits.parquet", "curve", curves)
    said = blindcast_cli("regrade", "last", "--json")
    assert (said.exit_code, said.document["error"]["code"]) == (4, "chain_broken")
    assert said.document["error"]["detail"].items() >= {"window": 0, "anchor": 3}.items()


def test_a_changed_path_is_a_mismatch(blindcast_cli: Cli, folder: Path) -> None:
    """G-35: exit 4."""
    paths = pq.read_table(folder / "windows.parquet")["y"].to_pylist()
    rewrite(folder / "windows.parquet", "y", [[2 * value for value in path] for path in paths])
    said = blindcast_cli("regrade", "last", "--json")
    assert (said.exit_code, said.document["error"]["code"]) == (4, "regrade_mismatch")


def test_another_grader_is_refused_by_name_for_now(blindcast_cli: Cli, folder: Path) -> None:
    said = blindcast_cli("regrade", "last", "--set", "alpha=2", "--json")
    assert (said.exit_code, said.document["error"]["code"]) == (2, "regrade_not_built")


def test_the_grid_is_fixed_by_the_commitments(blindcast_cli: Cli, folder: Path) -> None:
    """G-35."""
    said = blindcast_cli("regrade", "last", "--set", "steps=3", "--json")
    assert (said.exit_code, said.document["error"]["code"]) == (2, "grid_fixed")


def test_a_run_is_found_by_id_hex_last_and_path(blindcast_cli: Cli, folder: Path) -> None:
    """DESIGN 8."""
    shown = [blindcast_cli("runs", "show", name, "--json").data["run_id"] for name in (folder.name, folder.name[-6:], "last", folder)]
    assert set(shown) == {folder.name}


def test_an_unknown_run_says_where_to_look(blindcast_cli: Cli) -> None:
    said = blindcast_cli("runs", "show", "abcdef", "--json")
    assert (said.exit_code, said.document["error"]["code"]) == (3, "run_unknown")


def test_a_home_without_runs_is_an_honest_empty(blindcast_cli: Cli) -> None:
    said = blindcast_cli("runs", "list", "--json")
    assert (said.exit_code, said.data) == (0, {"runs": []})


def test_a_capped_number_says_so_wherever_it_is_printed(blindcast_cli: Cli, blindcast_task: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """G-94."""
    monkeypatch.setenv("BLINDCAST_MAX_TARGETS", "1")
    blindcast_cli("run", "imbalance", "--task", blindcast_task)
    for words in (("runs", "list"), ("runs", "show", "last"), ("regrade", "last")):
        assert any("capped at 1" in line and not line.startswith("task") for line in blindcast_cli(*words).stdout.splitlines())


BROKEN = ["{", "[]", "{}", '{"grade": 7}', '{"grade": {"reward_bps": "x"}, "spec": [], "split": ["train"]}', "[" * 100_000]


@pytest.mark.parametrize("text", BROKEN)
def test_a_damaged_run_is_told_as_such(blindcast_cli: Cli, folder: Path, text: str) -> None:
    """F-06: no traceback, exit 4; the list still lists it."""
    (folder / "run.json").write_text(text, encoding="utf-8")
    for words in (("runs", "show", "last"), ("regrade", "last")):
        said = blindcast_cli(*words, "--json")
        assert (said.exit_code, said.document["error"]["code"]) == (4, "run_damaged")
        assert "Traceback" not in said.stderr
    assert blindcast_cli("runs", "list").exit_code == 0


@pytest.mark.parametrize("name", ["commits.parquet", "windows.parquet"])
@pytest.mark.parametrize("content", [None, b"x"])
def test_a_lost_or_cut_table_is_damage(blindcast_cli: Cli, folder: Path, name: str, content: bytes | None) -> None:
    """F-06."""
    (folder / name).unlink() if content is None else (folder / name).write_bytes(content)
    said = blindcast_cli("regrade", "last", "--json")
    assert (said.exit_code, said.document["error"]["code"]) == (4, "run_damaged")


@pytest.mark.parametrize("shift", [1.0, None])
def test_a_changed_reward_of_one_window_is_a_mismatch(blindcast_cli: Cli, folder: Path, shift: float | None) -> None:
    """G-35: the windows agree too, not the total alone."""
    rewards = pq.read_table(folder / "windows.parquet")["reward_bps"].to_pylist()
    rewards[0] = None if shift is None else rewards[0] + shift
    rewrite(folder / "windows.parquet", "reward_bps", rewards)
    said = blindcast_cli("regrade", "last", "--json")
    assert (said.exit_code, said.document["error"]["code"]) == (4, "regrade_mismatch")


def test_a_name_longer_than_any_file_name_is_an_unknown_run(blindcast_cli: Cli) -> None:
    """F-07."""
    said = blindcast_cli("runs", "show", "a" * 5000, "--json")
    assert (said.exit_code, said.document["error"]["code"]) == (3, "run_unknown")
