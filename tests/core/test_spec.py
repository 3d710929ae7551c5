"""The task spec (DESIGN 5)."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blindcast.errors import DataError, UsageError
from blindcast.records import Grid
from blindcast.spec import SCHEMA, apply_settings, parse_spec, read_spec, spec_text
from blindcast.tasks import Split

LEAST = {"schema": SCHEMA, "source": {"use": "synthetic"}}
WHOLE = """
schema = "blindcast.task/1"
name = "btc-spot"
seed = 7
[source]
use = "orderbook"
pool = "pools/btcusdt"
[anonymizer]
use = "bps"
[grader]
use = "earliness_x_horizon"
alpha = 1.0
[grid]
window_s = 60
steps = 4
[split]
test_windows = 5
targets = 6
warmups = 2
embargo_windows = 1
[budget]
holdout_queries = 2
run_wall_s = 90
step_wall_s = 1.5
train_wall_s = 30
[isolation]
require = "kernel"
state = "fresh"
uid_range = [62000, 62009]
memory_mb = 2048
workspace_mb = 64
"""


def refusal(table: dict[str, Any]) -> DataError:
    with pytest.raises(DataError) as caught:
        parse_spec(table)
    assert caught.value.exit_code == 3
    return caught.value


def test_a_spec_says_all_of_it() -> None:
    """DESIGN 5."""
    spec = parse_spec(tomllib.loads(WHOLE))
    assert (spec.name, spec.seed, spec.grid, spec.split) == ("btc-spot", 7, Grid(60, 4), Split(5, 6, 2, 1))
    assert (spec.source.use, dict(spec.source.options)) == ("orderbook", {"pool": "pools/btcusdt"})
    assert (spec.grader.use, dict(spec.grader.options)) == ("earliness_x_horizon", {"alpha": 1.0})
    assert (spec.budget.holdout_queries, spec.isolation.require, spec.isolation.state) == (2, "kernel", "fresh")
    limits = spec.policy.limits
    assert (limits.train_wall_s, limits.workspace_mb) == (30.0, 64)
    assert (limits.run_wall_s, limits.step_wall_s, limits.memory_mb, spec.policy.uid_range) == (90.0, 1.5, 2048, (62000, 62009))


def test_defaults_are_those_of_the_design() -> None:
    """DESIGN 5: only `schema` and a source must be said."""
    spec = parse_spec(LEAST)
    assert (spec.seed, spec.anonymizer.use, spec.grader.use, spec.grid) == (0, "bps", "earliness_x_horizon", Grid(900, 15))
    assert spec.split == Split(96, 96, 4, 0)
    budget = spec.budget
    assert (budget.holdout_queries, budget.run_wall_s, budget.step_wall_s, budget.train_wall_s) == (3, 900.0, 10.0, 300.0)
    assert (spec.isolation.require, spec.isolation.state) == ("any", "carry")


def test_an_unknown_key_is_refused_with_a_suggestion() -> None:
    """DESIGN 5: path, value and suggestion."""
    error = refusal(LEAST | {"split": {"tragets": 5}})
    assert error.code == "config_unknown_key"
    assert error.detail["errors"][0] == {
        "path": "split.tragets",
        "code": "config_unknown_key",
        "value": 5,
        "expected": error.expected,
        "nearest": "targets",
    }
    assert "did you mean 'targets'?" in error.do


@pytest.mark.parametrize(
    ("change", "code", "path"),
    [
        ({"grids": {}}, "config_unknown_key", "grids"),
        ({"seed": "7"}, "config_wrong_type", "seed"),
        ({"seed": 7.0}, "config_wrong_type", "seed"),
        ({"seed": True}, "config_wrong_type", "seed"),
        ({"seed": -1}, "config_bad_value", "seed"),
        ({"seed": 2**63}, "config_bad_value", "seed"),
        ({"grid": {"steps": 0}}, "config_bad_value", "grid.steps"),
        ({"grid": {"steps": 1.5}}, "config_wrong_type", "grid.steps"),
        ({"grid": {"window_s": 0}}, "config_bad_value", "grid.window_s"),
        ({"grid": 900}, "config_wrong_type", "grid"),
        ({"split": {"targets": 0}}, "config_bad_value", "split.targets"),
        ({"split": {"warmups": 0}}, "config_bad_value", "split.warmups"),
        ({"split": {"test_windows": -1}}, "config_bad_value", "split.test_windows"),
        ({"split": {"embargo_windows": -1}}, "config_bad_value", "split.embargo_windows"),
        ({"split": {"warmups": "four"}}, "config_wrong_type", "split.warmups"),
        ({"budget": {"holdout_queries": -1}}, "config_bad_value", "budget.holdout_queries"),
        ({"budget": {"step_wall_s": 0}}, "config_bad_value", "budget.step_wall_s"),
        ({"budget": {"run_wall_s": float("inf")}}, "config_wrong_type", "budget.run_wall_s"),
        ({"isolation": {"state": "warm"}}, "config_bad_value", "isolation.state"),
        ({"isolation": {"uid_range": [5, 4]}}, "config_bad_value", "isolation.uid_range"),
        ({"isolation": {"uid_range": [0, 4]}}, "config_bad_value", "isolation.uid_range"),
        ({"isolation": {"uid_range": [1, 2, 3]}}, "config_bad_value", "isolation.uid_range"),
        ({"isolation": {"memory_mb": 1}}, "config_bad_value", "isolation.memory_mb"),
        ({"name": 5}, "config_wrong_type", "name"),
    ],
)
def test_a_fault_is_told_with_its_path(change: dict[str, Any], code: str, path: str) -> None:
    """DESIGN 5."""
    error = refusal(LEAST | change)
    assert (error.code, error.detail["errors"][0]["path"]) == (code, path)
    assert path in error.what
    assert error.expected
    assert error.do


def test_all_faults_are_told_at_once() -> None:
    error = refusal(LEAST | {"seed": "x", "split": {"targets": 0, "warmup": 1}})
    assert {fault["path"] for fault in error.detail["errors"]} == {"seed", "split.targets", "split.warmup"}


@pytest.mark.parametrize("schema", [None, "blindcast.task/2", 1, "task"])
def test_another_schema_is_refused_before_anything_is_read(schema: object) -> None:
    table = {"schema": schema, "nonsense": 1} if schema is not None else {"nonsense": 1}
    assert refusal(table).code == "spec_schema"


def test_a_source_must_be_named() -> None:
    assert refusal({"schema": SCHEMA}).code == "config_missing_key"
    for table, code in (({}, "config_missing_key"), ({"use": 5}, "config_wrong_type")):
        error = refusal({"schema": SCHEMA, "source": table})
        assert (error.code, error.detail["path"]) == (code, "source.use")


def test_a_task_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "task.toml").write_text(WHOLE, encoding="utf-8")
    assert read_spec(tmp_path / "task.toml") == tomllib.loads(WHOLE)


@pytest.mark.parametrize(
    ("content", "code"), [(None, "spec_missing"), (b"schema = ", "spec_unreadable"), (b"name = '\xff'", "spec_unreadable")]
)
def test_a_task_file_that_cannot_be_read_is_told(tmp_path: Path, content: bytes | None, code: str) -> None:
    path = tmp_path / "task.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        read_spec(path)
    assert (caught.value.code, caught.value.exit_code) == (code, 3)
    assert str(path) in caught.value.what


def test_a_folder_is_no_task_file(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        read_spec(tmp_path)
    assert caught.value.code == "spec_missing"


@pytest.mark.parametrize(
    ("setting", "table", "key", "value"),
    [
        ("split.targets=10", "split", "targets", 10),
        ("split.targets = 10 ", "split", "targets", 10),
        ("grader.alpha=2.5", "grader", "alpha", 2.5),
        ("source.pool=pools/btc usdt", "source", "pool", "pools/btc usdt"),
        ('source.pool="5"', "source", "pool", "5"),
        ("source.twin=true", "source", "twin", True),
        ("isolation.uid_range=[1, 2]", "isolation", "uid_range", [1, 2]),
        ("source.note=a=b", "source", "note", "a=b"),
        ("source.note=", "source", "note", ""),
    ],
)
def test_a_setting_is_toml_or_plain_text(setting: str, table: str, key: str, value: object) -> None:
    """DESIGN 8: --set TABLE.KEY=VALUE."""
    assert apply_settings(LEAST, [setting])[table][key] == value


def test_settings_leave_the_table_alone_and_the_last_one_wins() -> None:
    table: dict[str, Any] = {"source": {"use": "a"}, "seed": 1}
    assert apply_settings(table, ["source.use=b", "source.use=c", "seed=5"]) == {"source": {"use": "c"}, "seed": 5}
    assert table == {"source": {"use": "a"}, "seed": 1}


@pytest.mark.parametrize("setting", ["split.targets", "=5", ".targets=5", "split.=5", "a.b.c=5", "seed.x=1", ""])
def test_a_setting_that_names_no_key_is_a_usage_error(setting: str) -> None:
    with pytest.raises(UsageError) as caught:
        apply_settings({"seed": 1}, [setting])
    assert (caught.value.code, caught.value.exit_code) == ("bad_setting", 2)


def test_a_spec_as_text_spells_out_every_default() -> None:
    text = spec_text(parse_spec(LEAST))
    assert parse_spec(tomllib.loads(text)) == parse_spec(LEAST)
    for line in (
        'schema = "blindcast.task/1"',
        "seed = 0",
        "window_s = 900",
        "holdout_queries = 3",
        'state = "carry"',
        "uid_range = [61000, 61999]",
    ):
        assert line in text.splitlines()


TOML = st.recursive(
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(st.characters(codec="utf-8"), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(deadline=None)
@given(
    st.text(st.characters(codec="utf-8")).filter(str.isprintable),
    st.integers(0, 2**63 - 1),
    st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=5).filter(lambda key: key != "use"), TOML, max_size=4),
    st.floats(1e-9, 1e9),
)
def test_a_spec_as_text_reads_back_as_it_was(name: str, seed: int, options: dict[str, Any], wall_s: float) -> None:
    """DESIGN 5: `task build` writes it, people edit it; whatever a plugin's options hold."""
    spec = parse_spec(LEAST | {"name": name, "seed": seed, "source": {"use": "x", **options}, "budget": {"run_wall_s": wall_s}})
    assert parse_spec(tomllib.loads(spec_text(spec))) == spec


@pytest.mark.parametrize(("key", "value"), [("window_s", 10**12), ("window_s", 2**63 - 1), ("steps", 8_001), ("steps", 10**9)])
def test_a_grid_that_no_clock_or_frame_holds_is_refused(key: str, value: int) -> None:
    """DESIGN 5, I-50: times are int64 ns, and a curve goes into one frame."""
    error = refusal(LEAST | {"grid": {key: value}})
    assert (error.code, error.detail["errors"][0]["path"]) == ("config_bad_value", f"grid.{key}")


@pytest.mark.parametrize("text", ["x = " + "[" * 100_000, "[a" + ".a" * 5_000 + "]\nb = 1", "x = " + "[" * 40 + "]" * 40])
def test_a_spec_nested_beyond_reason_is_unreadable(tmp_path: Path, text: str) -> None:
    """DESIGN 5: refused, never a recursion without end."""
    (tmp_path / "task.toml").write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as refused:
        read_spec(tmp_path / "task.toml")
    assert refused.value.code == "spec_unreadable"


def test_a_setting_nested_beyond_reason_is_text() -> None:
    """DESIGN 8."""
    assert apply_settings({}, ["a=" + "[" * 20_000])["a"] == "[" * 20_000


@pytest.mark.parametrize("name", ["two\nlines", "\x1b[31m", "\u202e"])
def test_a_name_is_one_plain_line(name: str) -> None:
    """F-01: it is printed beside every number."""
    assert refusal(LEAST | {"name": name}).code == "config_bad_value"
