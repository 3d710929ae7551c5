"""What a kept run says of its isolation (isolation.md I-02, I-06)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from blindcast.backends import RECORD
from blindcast.testing.runner import Said

Cli = Callable[..., Said]
VARIABLE = "BLINDCAST_REQUIRE_ISOLATION"


def recorded(said: Said) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((Path(said.data["folder"]) / "run.json").read_text())["isolation"]
    return found


def test_a_tripwire_calls_itself_one_wherever_it_is_shown(
    blindcast_cli: Cli, blindcast_task: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I-02, I-05: when it starts, in the line of the run, in its score, in the run that was kept, in the record."""
    monkeypatch.setenv(VARIABLE, "hook")
    said = blindcast_cli("run", "flat", "--task", blindcast_task)
    assert said.exit_code == 0, said.stderr
    note = "a tripwire: it does not stop a determined submission"
    begun = [line for line in said.stderr.splitlines() if line.startswith("isolation hook (")]
    scored = [line for line in said.stdout.splitlines() if line.startswith("isolation hook (")]
    shown = [line for line in blindcast_cli("runs", "show", "last").stdout.splitlines() if line.startswith("isolation hook (")]
    assert begun == scored == shown
    assert begun[0].endswith(f"; {note}")
    assert blindcast_cli("runs", "show", "last", "--json").data["grade"]["isolation"]["class"] == "tripwire"


def test_the_record_of_a_run_is_whole(blindcast_cli: Cli, blindcast_task: Path) -> None:
    """I-06: with the user that the predictor ran as."""
    record = recorded(blindcast_cli("run", "flat", "--task", blindcast_task, "--json"))
    assert tuple(record) == RECORD
    assert all(set(control) == {"id", "state", "detail"} for control in record["controls"])
    assert set(record["interpreter"]) == {"version", "libpython"}
    if os.geteuid() == 0:
        assert 61000 <= record["uid"] <= 61999
    else:
        assert record["uid"] == os.geteuid()
    assert record["card"] is None
