"""Strict structuring (plugins.md section 5)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import pytest
from attrs import Factory, field, frozen, validators
from hypothesis import given, settings
from hypothesis import strategies as st

from blindcast.config import fill, options_of, structure
from blindcast.errors import DataError
from blindcast.options import REQUIRED


@frozen
class Inner:
    depth: int = 1
    name: str = "x"


@frozen
class Spec:
    pool: Path
    seed: int = 0
    alpha: float = field(default=1.0, validator=validators.ge(0.0))
    is_fair: bool = False
    mode: Literal["carry", "fresh"] = "carry"
    cap: int | None = None
    tags: tuple[str, ...] = ()
    names: list[str] = Factory(list)
    uids: tuple[int, int] = (1, 2)
    inner: Inner = Inner()
    weights: Mapping[str, float] = Factory(dict)
    size: int | float = 0


def errors_of(table: Mapping[str, object]) -> list[tuple[str, str]]:
    with pytest.raises(DataError) as error:
        structure(table, Spec, "task")
    told = [(str(fault["path"]), str(fault["code"])) for fault in error.value.detail["errors"]]
    assert error.value.code == told[0][1]
    return told


def test_a_whole_table_becomes_a_value() -> None:
    """P-30."""
    table = tomllib.loads(
        'pool = "pools/x"\nseed = 3\nalpha = 2\nis_fair = true\nmode = "fresh"\ncap = 4\ntags = ["a"]\nnames = ["b"]\nuids = [3, 4]\n'
        "size = 1\n[inner]\ndepth = 2\n[weights]\na = 1\n"
    )
    value = structure(table, Spec)
    assert value == Spec(Path("pools/x"), 3, 2.0, True, "fresh", 4, ("a",), ["b"], (3, 4), Inner(2), {"a": 1.0}, 1)
    assert type(value.alpha) is float
    assert type(value.size) is int


@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        ("seed", True, "config_wrong_type"),
        ("seed", 15.0, "config_wrong_type"),
        ("seed", "1", "config_wrong_type"),
        ("seed", None, "config_wrong_type"),
        ("alpha", "1", "config_wrong_type"),
        ("alpha", True, "config_wrong_type"),
        ("alpha", float("nan"), "config_wrong_type"),
        ("alpha", float("-inf"), "config_wrong_type"),
        ("alpha", 10**400, "config_wrong_type"),
        ("alpha", -1, "config_bad_value"),
        ("is_fair", 1, "config_wrong_type"),
        ("is_fair", "true", "config_wrong_type"),
        ("mode", "frsh", "config_bad_value"),
        ("mode", 1, "config_wrong_type"),
        ("cap", 1.5, "config_wrong_type"),
        ("tags", "abc", "config_wrong_type"),
        ("tags", {"a": 1}, "config_wrong_type"),
        ("names", "abc", "config_wrong_type"),
        ("uids", [1], "config_bad_value"),
        ("inner", 3, "config_wrong_type"),
        ("inner", [], "config_wrong_type"),
        ("pool", 3, "config_wrong_type"),
        ("size", "3", "config_wrong_type"),
        ("zz", 3, "config_unknown_key"),
    ],
)
def test_nothing_is_coerced(key: str, value: object, code: str) -> None:
    """P-30, PV-13."""
    assert errors_of({"pool": "x", key: value}) == [(f"task.{key}", code)]


def test_every_fault_of_a_table_is_told_at_once_first_by_path() -> None:
    """P-30."""
    assert errors_of({"alpha": -1, "inner": {"dept": 2, "name": 3}, "tags": ["a", 1], "weights": {"w": "1"}, "seeds": 1}) == [
        ("task.alpha", "config_bad_value"),
        ("task.inner.dept", "config_unknown_key"),
        ("task.inner.name", "config_wrong_type"),
        ("task.pool", "config_missing_key"),
        ("task.seeds", "config_unknown_key"),
        ("task.tags[1]", "config_wrong_type"),
        ("task.weights.w", "config_wrong_type"),
    ]


def test_an_unknown_key_names_the_nearest_and_all_that_are_known() -> None:
    """P-30."""
    with pytest.raises(DataError) as error:
        structure({"pool": "x", "alhpa": 1}, Spec)
    assert error.value.detail["errors"][0]["nearest"] == "alpha"
    assert error.value.do == "did you mean 'alpha'?"
    assert "alpha (a finite number, default 1.0)" in error.value.expected
    assert "'carry' | 'fresh'" in error.value.expected


def test_the_text_of_a_validator_is_what_was_expected() -> None:
    """PV-13."""
    with pytest.raises(DataError, match=r"alpha: bad value, got -1.0, must be >= 0"):
        structure({"pool": "x", "alpha": -1}, Spec)


class Plain:
    def __init__(self, depth: int, *, label: str = "x", **rest: object) -> None:
        self.depth, self.label, self.rest = depth, label, rest


def function(outcome: NotThere, curves: object, *, cap_bps: float = 25.0) -> float:  # type: ignore[name-defined]  # noqa: F821  # hidden by TYPE_CHECKING, as in plugins
    return cap_bps


def test_options_are_the_annotated_keyword_parameters() -> None:
    """P-31, P-32."""
    assert [(o.name, o.annotation, o.default) for o in options_of(Plain)] == [("depth", int, REQUIRED), ("label", str, "x")]
    assert [(o.name, o.annotation, o.default) for o in options_of(function)] == [("cap_bps", float, 25.0)]
    assert [o.name for o in options_of(Inner)] == ["depth", "name"]
    assert options_of(type("Empty", (), {})) == ()


def test_filled_options_hold_the_defaults_and_extra_keys_go_nowhere() -> None:
    """P-31: `**kwargs` take nothing."""
    assert fill({"depth": 2}, Plain) == {"depth": 2, "label": "x"}
    assert fill({"pool": "x"}, Spec)["names"] == []
    with pytest.raises(DataError) as error:
        fill({"depth": 2, "other": 1}, Plain, "source", where="plain")
    assert error.value.detail["errors"][0]["path"] == "source.other"
    with pytest.raises(DataError) as error:
        fill({}, Plain, "source")
    assert error.value.code == "config_missing_key"


scalars: Sequence[st.SearchStrategy[object]] = [st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.lists(st.integers())]


@given(value=st.one_of(*scalars))
@settings(deadline=None)
def test_a_number_option_takes_finite_numbers_and_nothing_else(value: object) -> None:
    """P-30: for every value."""
    takes = type(value) in (int, float) and abs(float(value)) < float("inf")  # type: ignore[arg-type]  # a number, by the first half
    if takes:
        structured = fill({"cap_bps": value}, function)["cap_bps"]
        assert type(structured) is float
        assert structured == float(value)  # type: ignore[arg-type]  # as above
    else:
        with pytest.raises(DataError) as error:
            fill({"cap_bps": value}, function)
        assert error.value.code == "config_wrong_type"
