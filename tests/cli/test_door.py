"""The door: envelope, errors in three parts, exit codes, progress (DESIGN 8, face.md section 2)."""

from __future__ import annotations

import io
import json
import math
import subprocess
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from attrs import frozen
from hypothesis import given, settings
from hypothesis import strategies as st

from blindcast import errors
from blindcast.cli.door import Answer, command, current_host, progress, run, strict
from blindcast.cli.progress import Advance
from blindcast.host import Host
from blindcast.testing.runner import Said


@click.group()
def tree() -> None:
    """A tree of commands."""


@tree.command("alien")
def alien() -> None:
    """Know nothing of the door."""
    raise OSError("disk on fire")


@command("things.show", epilog="Example: show a")
@click.argument("thing")
@click.option("--fault")
def show(thing: str, fault: str | None) -> Answer:
    """Show a thing. And more."""
    faults: dict[str, BaseException] = {
        "verdict": errors.VerdictError("gate_failed", "no", expected="yes", do="more", n=math.inf, where=Path("x"), odd=object()),
        "data": errors.DataError("bad_pool", "torn", expected="a whole pool", do="import it again", rows=np.int64(3)),
        "budget": errors.BudgetError("spent", "spent"),
        "bug": ZeroDivisionError("by nought"),
        "eof": EOFError("cut"),
        "ctrl-c": KeyboardInterrupt(),
        "exit": SystemExit(4),
    }
    if fault:
        raise faults[fault]
    print("noise")
    return Answer({"thing": thing, "nan": math.nan}, f"a {thing}", next="show b", warnings=("thin ice",))


@command("things.judge")
def judge() -> Answer:
    """Judge."""
    return Answer({"passed": False}, "no", exit_code=1)


@command("things.work")
@click.option("--total", type=int, default=20)
def work(total: int) -> Answer:
    """Work."""
    with progress(total, "walk", after_s=0) as bar:
        for done in range(total):
            bar.advance(failures=done // 10)
    return Answer({}, "done")


for each in (show, judge, work):
    tree.add_command(each)


def say(*argv: str, entry: click.Command = tree) -> Said:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run(entry, list(argv), prog="tree")
    return Said(code, out.getvalue(), err.getvalue())


def test_the_answer_is_on_stdout_and_the_rest_on_stderr() -> None:
    """F-01."""
    said = say("show", "a")
    assert (said.exit_code, said.stdout) == (0, "noise\na a\n")
    assert said.stderr == "warning: thin ice\nnext: show b\n"
    assert say("show", "-q", "a").stderr == "warning: thin ice\n"


def test_json_is_one_strict_document_whatever_the_command_prints() -> None:
    """F-05."""
    said = say("show", "--json", "a")
    assert said.document == {"schema": "blindcast.things.show/1", "ok": True, "data": {"thing": "a", "nan": None}}
    assert "noise" in said.stderr


def test_a_negative_verdict_keeps_ok_true() -> None:
    """DESIGN 8: exit 1 with data."""
    assert (say("judge").exit_code, say("judge").stdout) == (1, "no\n")
    said = say("judge", "--json")
    assert (said.exit_code, said.document["ok"]) == (1, True)


@pytest.mark.parametrize(
    ("fault", "exit_code", "code"),
    [
        ("verdict", 1, "gate_failed"),
        ("data", 3, "bad_pool"),
        ("budget", 7, "spent"),
        ("bug", 6, "bug"),
        ("eof", 6, "bug"),
        ("ctrl-c", 130, "interrupted"),
    ],
)
def test_every_fault_has_a_code_and_an_exit_code(fault: str, exit_code: int, code: str) -> None:
    """F-05, F-06."""
    said = say("show", "a", "--fault", fault)
    assert (said.exit_code, said.stdout) == (exit_code, "")
    assert f"error[{code}]: " in said.stderr
    assert ("Traceback" in said.stderr) == (code == "bug")
    told = say("show", "a", "--fault", fault, "--json")
    assert told.exit_code == exit_code
    assert set(told.document) == {"schema", "ok", "error"}
    assert set(told.document["error"]) == {"code", "message", "hint", "detail"}
    assert (told.document["schema"], told.document["ok"], told.document["error"]["code"]) == ("blindcast.things.show/1", False, code)


def test_an_error_has_three_lines() -> None:
    """F-06."""
    said = say("show", "a", "--fault", "data")
    assert said.stderr == "error[bad_pool]: torn\nexpected: a whole pool\ndo: import it again\n"
    detail = say("show", "a", "--fault", "data", "--json").document["error"]["detail"]
    assert detail == {"expected": "a whole pool", "rows": 3}


def test_v_shows_the_traceback_of_any_error() -> None:
    """F-06."""
    assert "Traceback" in say("show", "a", "--fault", "data", "-v").stderr


def test_a_command_that_knows_nothing_of_the_door_is_told_the_same_way() -> None:
    """F-05: crashes too."""
    assert say("alien").exit_code == 6
    assert "error[bug]: OSError: disk on fire" in say("alien").stderr
    assert say("show", "a", "--fault", "exit").exit_code == 4


@pytest.mark.parametrize(
    ("argv", "schema", "said"),
    [
        (["sho", "a"], "blindcast.error/1", "did you mean 'show'"),
        (["show"], "blindcast.things.show/1", "issing argument"),
        (["show", "a", "--falt", "x"], "blindcast.things.show/1", "--fault"),
        (["show", "a", "b"], "blindcast.things.show/1", "extra argument"),
        (["work", "--total", "x"], "blindcast.things.work/1", "'x' is not a valid integer"),
        ([], "blindcast.error/1", "issing command"),
    ],
)
def test_usage_errors_exit_2_with_the_nearest_word(argv: Sequence[str], schema: str, said: str) -> None:
    """F-05, F-07."""
    plain = say(*argv)
    assert (plain.exit_code, plain.stdout) == (2, "") if argv else plain.exit_code == 2
    assert said in plain.stderr
    for place in (0, len(argv)):
        words = [*argv[:place], "--json", *argv[place:]]
        told = say(*words)
        assert told.exit_code == 2
        assert told.document["error"]["code"] == "usage"
        if place:
            assert told.document["schema"] == schema


def test_help_and_version_are_one_document_under_json() -> None:
    """F-05."""
    said = say("show", "--help", "--json")
    assert said.exit_code == 0
    assert "Show a thing." in said.data["text"]


def test_the_short_help_reads_like_the_command_table() -> None:
    """P-63."""
    assert show.get_short_help_str() == "show a thing"
    assert show.name == "show"


def test_progress_says_one_line_per_tenth_and_nothing_under_q() -> None:
    """F-02."""
    lines = say("work").stderr.splitlines()
    assert len(lines) == 10
    assert lines[0] == "walk: 2 of 20 windows (10 %)  failures 0"
    assert lines[-1] == "walk: 20 of 20 windows (100 %)  failures 1"
    assert say("work", "-q").stderr == ""
    assert len(say("work", "--total", "3").stderr.splitlines()) == 3
    assert say("work", "--total", "0").stderr == ""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_on_a_terminal_is_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    """F-02: the bar is drawn on stderr and says what it was told."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    bar: Advance
    with redirect_stderr(Terminal()) as drawn, progress(2, "walk") as bar:
        bar.advance(2, failures=1)
    assert "walk" in drawn.getvalue()
    assert "2/2" in drawn.getvalue()
    assert "failures 1" in drawn.getvalue()
    assert "\x1b[3" not in drawn.getvalue()


def test_a_command_reaches_its_host() -> None:
    """P-14: the host is made by the door."""

    @command("hosted")
    def hosted() -> Answer:
        assert current_host() is current_host()
        return Answer({"graders": len(current_host().offers("graders"))}, "")

    out = io.StringIO()
    with redirect_stdout(out):
        assert run(hosted, ["--json"], open_host=lambda: Host({"BLINDCAST_PLUGINS": ""})) == 0
    assert json.loads(out.getvalue())["data"] == {"graders": 0}


@frozen
class Point:
    x: float
    path: Path


def test_strict_makes_plain_json_of_the_values_of_the_field() -> None:
    """F-05."""
    value = {
        1: np.float32(0.5),
        "a": np.array([1.0, np.nan]),
        "p": Point(math.inf, Path("a/b")),
        "s": {2, 1},
        "t": (np.bool_(True), np.int64(7)),
    }
    assert strict(value) == {"1": 0.5, "a": [1.0, None], "p": {"x": None, "path": "a/b"}, "s": [1, 2], "t": [True, 7]}
    with pytest.raises(TypeError):
        strict(object())


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner) | st.tuples(inner),
    max_leaves=12,
)


@given(value=anything)
@settings(deadline=None)
def test_what_strict_makes_is_always_strict_json(value: Any) -> None:
    """F-05: no NaN, no Infinity."""
    plain = strict(value)
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain


@pytest.mark.parametrize("words", [["plugins", "list"], ["plugins", "list", "--json"], ["frob", "--json"]])
def test_an_answer_that_stdout_does_not_take_is_a_fault_in_three_parts(words: list[str]) -> None:
    """F-05, F-06: a full disk is no bug and no traceback."""
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([sys.executable, "-m", "blindcast", *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert "Traceback" not in done.stderr
    expected = ("error[usage]", 2) if "frob" in words else ("error[output_not_written]", 6)
    assert (done.stderr.splitlines()[0].partition(":")[0], done.returncode) == expected
