"""What the shell completes (F-10)."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from blindcast.cli import entry


def completed(*words: str) -> list[str]:
    """What follows the last word of a command line that has been begun."""
    *before, begun = words
    return [item.value for item in ShellComplete(entry, {}, "blindcast", "_X").get_completions(before, begun)]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("plugins", "doctor", "earl"), "earliness_x_horizon"),
        (("run", "imb"), "imbalance"),
        (("submit", "imb"), "imbalance"),
        (("check", "imb"), "imbalance"),
        (("regrade", "last", "--grader", "ear"), "earliness_x_horizon"),
        (("runs", "sh"), "show"),
    ],
)
def test_names_are_completed(words: tuple[str, ...], expected: str) -> None:
    """F-10."""
    assert expected in completed(*words)


def test_runs_are_completed_by_id_hex_and_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F-10."""
    monkeypatch.setenv("BLINDCAST_HOME", str(tmp_path))
    (tmp_path / "runs" / "20260101T000000Z-abc123").mkdir(parents=True)
    assert completed("runs", "show", "") == ["last", "20260101T000000Z-abc123", "abc123"]
    assert completed("regrade", "ab") == ["abc123"]
