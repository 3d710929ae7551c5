"""Groups take the options of their commands (DESIGN 8)."""

from __future__ import annotations

import json

import pytest

from blindcast.cli import COMMANDS, main

GROUPS = ("plugins", "task", "new", "runs", "data")


@pytest.mark.parametrize("name", GROUPS)
def test_a_group_that_lacks_a_command_says_so_in_json(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """F-05."""
    assert main([name, "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["code"], error["message"]) == ("usage", "missing command")


def test_the_options_of_all_may_stand_after_the_group(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """F-01, F-05: `-q`, `-v` and `--json` work everywhere."""
    monkeypatch.setenv("BLINDCAST_HOME", str(tmp_path_factory.mktemp("home")))
    assert main(["runs", "--json", "list"]) == 0
    assert json.loads(capsys.readouterr().out)["data"] == {"runs": []}
    assert main(["runs", "-q", "list"]) == 0
    assert "next:" not in capsys.readouterr().err


@pytest.mark.parametrize("name", [*COMMANDS, "data"])
def test_every_help_has_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """F-08: and fits a screen."""
    main([name, "--help"])
    text = capsys.readouterr().out
    assert "Example: blindcast" in text
    assert len(text.splitlines()) <= 40
