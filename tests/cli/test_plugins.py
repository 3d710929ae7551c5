"""`blindcast plugins` and plugins at the command line (plugins.md sections 9 and 12)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from blindcast.cli import COMMANDS
from blindcast.testing.fabric import fabricate
from blindcast.testing.runner import Said

HEAD = "from blindcast import Offer, hookimpl\n"
HEAVY = ("pandas", "pyarrow", "sklearn", "lightgbm", "scipy", "matplotlib", "sqlalchemy", "numpy")


def cli(folder: Path, *argv: str, **environ: str) -> Said:
    """A process of its own, started in an empty folder, with `folder` on its path."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BLINDCAST_")}
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH", "")]))
    done = subprocess.run(
        [sys.executable, "-m", "blindcast", *argv],
        cwd=folder,
        env={**kept, "PYTHONPATH": path, "BLINDCAST_HOME": str(folder / "home"), **environ},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return Said(done.returncode, done.stdout, done.stderr)


def test_a_broken_plugin_is_listed_and_fails_only_who_needs_it(tmp_path: Path) -> None:
    """PV-01."""
    fabricate(tmp_path, "acme-broken", {"acme_broken_b": "import no_such_thing\n"})
    listed = cli(tmp_path, "plugins", "list", "--json")
    assert listed.exit_code == 0
    (broken,) = listed.data["broken"]
    assert (broken["stage"], broken["plugin"], broken["version"]) == ("import", "acme-broken:acme_broken_b", "1.0")
    assert set(broken) == {"plugin", "distribution", "version", "stage", "hook", "error", "message", "do"}
    assert any(offer["name"] == "earliness_x_horizon" for offer in listed.data["offers"])
    assert "acme-broken:acme_broken_b" in listed.stderr
    assert cli(tmp_path, "plugins", "doctor").exit_code == 6
    strict = cli(tmp_path, "--strict-plugins", "demo", "--json")
    assert (strict.exit_code, strict.document["error"]["code"]) == (6, "plugin_broken")


def test_ctrl_c_at_import_ends_the_command(tmp_path: Path) -> None:
    """PV-02."""
    fabricate(tmp_path, "acme-ctrl", {"acme_ctrl_b": "raise KeyboardInterrupt\n"})
    said = cli(tmp_path, "plugins", "list")
    assert said.exit_code == 130
    assert "error[interrupted]" in said.stderr


def test_what_plugins_print_never_reaches_the_document(tmp_path: Path) -> None:
    """PV-03."""
    source = HEAD + "print('at import')\n@hookimpl\ndef probes():\n    print('in a hook')\n    return []\n"
    fabricate(tmp_path, "acme-loud", {"acme_loud_b": source})
    said = cli(tmp_path, "plugins", "list", "--json")
    assert said.document["ok"] is True
    assert "at import" in said.stderr
    assert "in a hook" in said.stderr


def test_the_listing_has_every_key_in_order(blindcast_cli: Callable[..., Said]) -> None:
    """P-60."""
    data = blindcast_cli("plugins", "list", "--json").data
    assert set(data) == {"blindcast", "api", "plugins", "offers", "broken", "warnings"}
    assert set(data["plugins"][0]) == {"plugin", "distribution", "version", "module", "api", "status", "why"}
    assert set(data["offers"][0]) == {
        *("kind", "protocol", "name", "qualified", "plugin", "distribution", "version"),
        *("target", "summary", "requires", "status", "why"),
    }
    order = [offer["kind"] for offer in data["offers"]]
    assert order[0] == "datasources"
    assert order[-1] == "commands"
    text = blindcast_cli("plugins", "list", "--kind", "grader").stdout
    assert "earliness_x_horizon" in text
    assert "bps ladder" not in text
    assert [line.split()[0] for line in text.splitlines()] == ["kind", "graders"]


def test_an_unknown_kind_is_a_usage_error_with_the_nearest(blindcast_cli: Callable[..., Said]) -> None:
    """F-07."""
    said = blindcast_cli("plugins", "list", "--kind", "gradrs")
    assert said.exit_code == 2
    assert "did you mean 'graders'" in said.stderr


def test_with_nothing_allowed_help_still_works(blindcast_cli: Callable[..., Said], monkeypatch: pytest.MonkeyPatch) -> None:
    """PV-09."""
    monkeypatch.setenv("BLINDCAST_PLUGINS", "")
    assert blindcast_cli("--help").exit_code == 0
    data = blindcast_cli("plugins", "list", "--json").data
    assert data["offers"] == []
    assert {plugin["status"] for plugin in data["plugins"]} == {"refused"}


def test_a_target_that_is_not_there_is_found_by_the_doctor(tmp_path: Path) -> None:
    """PV-11."""
    fabricate(tmp_path, "acme-gone", {"acme_gone_b": HEAD + "@hookimpl\ndef graders():\n    yield Offer('gone', 'json:no_such', 'x')\n"})
    offers = cli(tmp_path, "plugins", "list", "--json").data["offers"]
    assert [offer["status"] for offer in offers if offer["name"] == "gone"] == ["ok"]
    said = cli(tmp_path, "plugins", "doctor", "--json")
    assert said.exit_code == 6
    assert ("resolve", "acme-gone") in [(broken["stage"], broken["distribution"]) for broken in said.data["broken"]]
    checked = cli(tmp_path, "plugins", "doctor", "gone", "--json")
    assert checked.exit_code == 6
    assert checked.data["checks"][0]["result"] == "fail"


def test_a_command_of_a_plugin_shows_its_summary_and_fails_on_use(tmp_path: Path) -> None:
    """PV-19."""
    source = HEAD + "@hookimpl\ndef commands():\n    yield Offer('mend', 'no_such_thing:mend', 'mend a thing')\n"
    fabricate(tmp_path, "acme-mend", {"acme_mend_b": source})
    shown = cli(tmp_path, "--help")
    assert shown.exit_code == 0
    assert "mend a thing" in shown.stdout
    used = cli(tmp_path, "mend", "--json")
    assert (used.exit_code, used.document["error"]["code"]) == (6, "plugin_broken")


def test_a_command_of_a_plugin_never_replaces_a_core_one(tmp_path: Path) -> None:
    """P-26."""
    source = HEAD + "@hookimpl\ndef commands():\n    yield Offer('plugins', 'no_such_thing:mend', 'mine now')\n"
    fabricate(tmp_path, "acme-grab", {"acme_grab_b": source})
    assert "mine now" not in cli(tmp_path, "--help").stdout
    data = cli(tmp_path, "plugins", "list", "--json", "--kind", "commands").data
    assert [offer["status"] for offer in data["offers"] if offer["name"] == "plugins"] == ["shadowed"]


def test_an_unknown_command_beside_a_broken_plugin_may_be_its(tmp_path: Path) -> None:
    """P-24."""
    fabricate(tmp_path, "acme-lost", {"acme_lost_b": "import no_such_thing\n"})
    assert cli(tmp_path, "frobnicate").exit_code == 6
    assert cli(tmp_path, "frobnicate", BLINDCAST_DISABLE_PLUGINS="1").exit_code == 2


def test_the_doctor_runs_the_checks_of_one_offer(blindcast_cli: Callable[..., Said]) -> None:
    """P-61."""
    said = blindcast_cli("plugins", "doctor", "blindcast/earliness-x-horizon", "--set", "alpha=2", "--json")
    assert said.exit_code == 0, said.stdout
    assert said.data["options"] == {"alpha": 2}
    assert [check["id"] for check in said.data["checks"]][:4] == ["CO-01", "CO-02", "CO-03", "CO-04"]
    assert set(said.data["checks"][0]) == {"id", "title", "result", "detail", "ms"}
    assert {check["result"] for check in said.data["checks"]} <= {"pass", "skip"}


def test_the_doctor_says_what_an_option_should_have_been(blindcast_cli: Callable[..., Said]) -> None:
    """Q-05."""
    said = blindcast_cli("plugins", "doctor", "earliness_x_horizon", "--set", "alpha=-1", "--json")
    assert said.exit_code == 6
    assert "must be >= 0" in said.data["checks"][0]["detail"]
    assert blindcast_cli("plugins", "doctor", "earliness_x_horizon", "--set", "alpha").exit_code == 2


def test_the_doctor_does_not_know_a_name_that_nobody_offers(blindcast_cli: Callable[..., Said]) -> None:
    """P-24."""
    said = blindcast_cli("plugins", "doctor", "earliness")
    assert said.exit_code == 2
    assert "did you mean 'earliness_x_horizon'" in said.stderr


def test_two_metadata_folders_of_one_distribution_are_a_warning(tmp_path: Path) -> None:
    """P-06."""
    for version in ("1.0", "2.0"):
        fabricate(tmp_path, "acme-two", {}, version=version, entries={"calm": "json"})
    said = cli(tmp_path, "plugins", "doctor", "--json")
    assert any("acme-two has 2 metadata folders" in warning for warning in said.data["warnings"])


@pytest.mark.parametrize("argv", [["--help"], ["plugins", "list"], ["--version"]])
def test_the_light_commands_import_nothing_heavy(tmp_path: Path, argv: list[str]) -> None:
    """P-63."""
    probe = f"import sys\nfrom blindcast.cli import main\nmain({argv!r})\nprint('LOADED', *[m for m in {HEAVY!r} if m in sys.modules])"
    told = subprocess.run([sys.executable, "-c", probe], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert told.splitlines()[-1].split() == ["LOADED"]


def test_the_version_asks_no_plugin(tmp_path: Path) -> None:
    """P-20."""
    fabricate(tmp_path, "acme-broken", {"acme_broken_c": "import no_such_thing\n"})
    said = cli(tmp_path, "--version")
    assert (said.exit_code, said.stderr) == (0, "")
    assert json.loads(cli(tmp_path, "--version", "--json").stdout)["ok"] is True


def test_the_help_lists_every_core_command_with_its_summary(blindcast_cli: Callable[..., Said]) -> None:
    """P-26."""
    shown = blindcast_cli("--help").stdout
    for name, (_, summary) in COMMANDS.items():
        assert f"{name} " in shown
        assert summary in shown


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_of_the_table_is_told_as_its_help_tells_it(blindcast_cli: Callable[..., Said], name: str) -> None:
    """P-63."""
    import importlib

    module, _, attribute = COMMANDS[name][0].partition(":")
    found = getattr(importlib.import_module(module), attribute)
    assert found.get_short_help_str(limit=200).rstrip(".").lower() == COMMANDS[name][1].lower()
    assert blindcast_cli(name, "--help").exit_code == 0


def test_usage_errors_of_the_root_are_documents_too(blindcast_cli: Callable[..., Said]) -> None:
    """CM-02, F-05."""
    unknown: Mapping[str, object] = blindcast_cli("plgins", "--json").document
    assert unknown["schema"] == "blindcast.error/1"
    assert "did you mean 'plugins'" in str(unknown["error"])
    assert blindcast_cli("--json").document["ok"] is False
