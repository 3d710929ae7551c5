"""What a walk says on the side: slots, how a predictor ended, what the hook refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from blindcast.ledger import Ledger
from blindcast.testing.runner import Said

Cli = Callable[..., Said]
Write = Callable[[str], Path]

REACHES_OUT = """
    class Predictor:
        def predict(self, view):
            try:
                open("/etc/passwd")
            except PermissionError:
                pass
            return 0.5
"""
DIES = """
    import os
    class Predictor:
        def predict(self, view):
            if view.anchor == 2:
                os._exit(9)
            return 0.5
"""


@pytest.mark.parametrize("words", [("run",), ("submit",), ("run", "--warmups")])
def test_a_variable_that_is_no_number_is_refused_before_anything_counts(
    blindcast_cli: Cli, blindcast_task: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """I-80, IV-07: exit 2."""
    monkeypatch.setenv("BLINDCAST_MAX_CONCURRENT_RUNS", "0")
    said = blindcast_cli(*words, "flat", "--task", blindcast_task, "--json")
    assert (said.exit_code, said.document["error"]["code"]) == (2, "max_concurrent_runs_invalid")
    assert list(Ledger(tmp_path / "home" / "ledger.sqlite").entries()) == []


def test_more_slots_than_cpus_are_cut_with_a_warning(blindcast_cli: Cli, blindcast_task: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """I-80."""
    monkeypatch.setenv("BLINDCAST_MAX_CONCURRENT_RUNS", "100000")
    said = blindcast_cli("run", "flat", "--task", blindcast_task)
    assert said.exit_code == 0
    assert said.stderr.count("warning: BLINDCAST_MAX_CONCURRENT_RUNS is 100000") == 1


def test_a_run_says_why_windows_lost_their_predictor(blindcast_cli: Cli, blindcast_task: Path, submission: Write) -> None:
    """I-73: one line a reason."""
    said = blindcast_cli("run", submission(DIES), "--task", blindcast_task, "--keep-going")
    assert said.exit_code == 0
    assert [line for line in said.stderr.splitlines() if "exit:9" in line] == [
        "warning: exit:9: the predictor's process was lost in 3 windows"
    ]


def test_what_the_hook_refused_is_counted_in_the_run(
    blindcast_cli: Cli, blindcast_task: Path, submission: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """K-02: detected. Once an anchor: 3 windows of 5."""
    monkeypatch.setenv("BLINDCAST_REQUIRE_ISOLATION", "hook")
    said = blindcast_cli("run", submission(REACHES_OUT), "--task", blindcast_task, "--json")
    assert json.loads((Path(said.data["folder"]) / "run.json").read_text())["isolation"]["trips"] == 15
    assert "15 of its acts were refused" in said.stderr


def test_an_honest_run_says_nothing_of_it(blindcast_cli: Cli, blindcast_task: Path) -> None:
    said = blindcast_cli("run", "imbalance", "--task", blindcast_task, "--json")
    assert json.loads((Path(said.data["folder"]) / "run.json").read_text())["isolation"]["trips"] == 0
    assert not [line for line in said.stderr.splitlines() if "was lost" in line or "tripwire:" in line]
