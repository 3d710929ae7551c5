"""`blindcast isolation show`, on this host as it is (isolation.md I-06, I-16, I-90)."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from blindcast.backends import RECORD
from blindcast.testing.runner import Said

Cli = Callable[..., Said]
VARIABLE = "BLINDCAST_REQUIRE_ISOLATION"
NAMES = ("privdrop", "userns", "bwrap", "landlock", "hook")
AS_NOBODY = """
import os, sys
from blindcast_isolation import linux, root

paths = [*root.interpreter_paths(), *(path for path in sys.path if os.path.isdir(path))]
outer = [path for path in paths if not any(path.startswith(f"{other}/") for other in paths)]
linux.unshare(linux.CLONE["mountns"])
root.open_parents(root.closed_parents(outer), outer)  # an interpreter below a closed home
os.setgroups([])
os.setresgid(64333, 64333, 64333)
os.setresuid(64333, 64333, 64333)
os.execve(sys.executable, [sys.executable, "-m", "blindcast", *sys.argv[1:]], dict(os.environ))
"""


@pytest.fixture
def show(blindcast_cli: Cli) -> Cli:
    def ask(*words: object) -> Said:
        return blindcast_cli("isolation", "show", *words)

    return ask


def rows_of(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["backend"]: row for row in data["backends"]}


def test_the_data_is_the_record_of_the_backend_a_run_would_get(show: Cli) -> None:
    """I-06, I-90."""
    said = show("--require", "hook", "--json")
    assert said.exit_code == 0, said.stderr
    assert set(said.data) == {*RECORD, "available", "backends", "warnings", "slots", "quarantined"}
    assert (said.data["backend"], said.data["class"], said.data["required"]) == ("hook", "tripwire", "hook")
    assert said.data["card"] is None
    assert said.data["interpreter"]["version"] == sys.version
    assert said.data["slots"] >= 1


def test_every_backend_says_what_it_has_or_why_it_has_not(show: Cli) -> None:
    """I-01, I-90."""
    data = show("--json").data
    rows = rows_of(data)
    assert tuple(rows) == NAMES
    assert data["available"] == [name for name, row in rows.items() if row["available"]]
    for name, row in rows.items():
        assert row["class"] == ("tripwire" if name == "hook" else "kernel")
        assert bool(row["reason"]) != row["available"]
        for control in row["controls"]:
            assert control["state"] == "active" or control["detail"], (name, control)
        if row["available"]:
            assert row["kill"]
            assert row["interpreter"]["version"] == sys.version
            assert (row["filter_sha256"] is None) == (name == "hook")
    assert data["backend"] == data["available"][0]


def test_a_version_stands_beside_a_measured_behaviour_only(show: Cli) -> None:
    """I-01: what is active may have a number for show; nothing is active by its number."""
    for row in rows_of(show("--json").data).values():
        for control in row["controls"]:
            assert control["id"] == "landlock" or control["state"] != "active" or not control["detail"]


def test_the_text_is_a_table_of_controls_and_backends(show: Cli) -> None:
    """I-90: each reason once below it, and the hook calls itself a tripwire."""
    said = show()
    assert said.exit_code == 0, said.stderr
    lines = said.stdout.splitlines()
    assert lines[0].split() == ["control", *NAMES]
    cells = {line.split()[0]: line.split()[1:] for line in lines[1 : lines.index("")]}
    assert all(len(row) == len(NAMES) for row in cells.values())
    assert {state for row in cells.values() for state in row} <= {"active", "unavailable", "failed", "-"}
    assert cells["seccomp"][-1] == "-"
    reasons = [line.rpartition("): ")[2] for line in lines if line.startswith("unavailable: ")]
    assert len(reasons) == len(set(reasons))
    assert any(line.startswith("hook: a tripwire") for line in lines)
    assert re.fullmatch(r"a run gets: \w+ \(required: any\)", lines[-1])


def test_a_conflict_exits_5_and_shows_the_table_all_the_same(show: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """I-03, IV-10, I-90."""
    monkeypatch.setenv(VARIABLE, "hook")
    said = show("--require", "landlock")
    assert said.exit_code == 5
    assert said.stdout.split()[0] == "control"
    assert said.stdout.splitlines()[-1].startswith("a run gets: none")
    assert "error[isolation_conflict]" in said.stderr
    told = show("--require", "landlock", "--json")
    assert told.exit_code == 5
    error = told.document["error"]
    assert error["code"] == "isolation_conflict"
    assert (error["detail"]["backend"], error["detail"]["required"]) == (None, "landlock")
    assert tuple(rows_of(error["detail"])) == NAMES


@pytest.mark.parametrize(("how", "exit_code"), [("variable", 2), ("option", 2)])
def test_an_unknown_word_is_a_usage_error(show: Cli, monkeypatch: pytest.MonkeyPatch, how: str, exit_code: int) -> None:
    """I-03."""
    if how == "variable":
        monkeypatch.setenv(VARIABLE, "kernal")
    said = show("--json", *(("--require", "kernal") if how == "option" else ()))
    assert said.exit_code == exit_code
    assert said.document["error"]["code"] == "isolation_word"
    assert "'kernel'" in said.document["error"]["hint"]


def test_a_task_says_what_it_requires_and_what_it_guards(show: Cli, blindcast_task: Path, tmp_path: Path) -> None:
    """I-21, I-90: its raw roots are looked at; a word on the command line goes first."""
    blindcast_task.write_text(blindcast_task.read_text() + '[isolation]\nrequire = "hook"\n')
    (tmp_path / "home").mkdir(mode=0o755)
    (tmp_path / "home").chmod(0o755)
    data = show("--task", blindcast_task, "--json").data
    assert (data["required"], data["backend"]) == ("hook", "hook")
    assert any(str(tmp_path / "home") in line and "0755" in line for line in data["warnings"])
    assert show("--task", blindcast_task, "--require", "any", "--json").data["required"] == "any"


def test_secrets_in_the_environment_are_named_and_never_told(show: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """I-90."""
    monkeypatch.setenv("ACME_API_KEY", "canary-7f3a")
    said = show("--json")
    assert any("ACME_API_KEY" in line for line in said.data["warnings"])
    assert "canary-7f3a" not in said.stdout + said.stderr


def test_an_ordinary_user_is_told_why_privdrop_is_not_there(tmp_path: Path) -> None:
    """I-03, I-90: exit 5 for a requirement that only root can meet, with the table."""
    if os.geteuid() != 0:
        pytest.skip("not root: no other user to become")
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "BLINDCAST_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-c", AS_NOBODY, "isolation", "show", "--require", "privdrop", "--json"]
    said = subprocess.run(command, capture_output=True, text=True, check=False, env=environ, cwd="/")
    assert said.returncode == 5, said.stderr
    error = json.loads(said.stdout)["error"]
    assert error["code"] == "isolation_unavailable"
    assert rows_of(error["detail"])["privdrop"]["reason"] == "not started by root"
    assert any(line.startswith("not started by root") for line in error["detail"]["warnings"])
