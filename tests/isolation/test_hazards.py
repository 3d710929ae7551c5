"""What of a host weakens its isolation (isolation.md I-16, I-21, I-90)."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from blindcast_isolation.hazards import hazards, homes_among, secrets_in
from blindcast_isolation.slots import Quarantined


@pytest.fixture
def sysctls(tmp_path: Path) -> Path:
    """A host on which everything is as it should be."""
    files = {"kernel/yama/ptrace_scope": "1"} | {f"fs/protected_{what}": "1" for what in ("symlinks", "hardlinks", "regular", "fifos")}
    for name, value in files.items():
        file = tmp_path / "sys" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{value}\n")
    return tmp_path / "sys"


def test_a_good_host_has_none(sysctls: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    assert hazards([tmp_path], {"PATH": "/bin"}, (), is_root=True, sysctls=sysctls) == ()


def test_an_open_raw_root_is_told(sysctls: Path, tmp_path: Path) -> None:
    """I-21."""
    tmp_path.chmod(0o750)
    (line,) = hazards([tmp_path], {}, (), is_root=True, sysctls=sysctls)
    assert str(tmp_path) in line
    assert "0750" in line


def test_a_server_of_an_ordinary_user_is_told(sysctls: Path) -> None:
    (line,) = hazards([], {}, (), is_root=False, sysctls=sysctls)
    assert line.startswith("not started by root")


def test_an_environment_that_is_a_home_is_named() -> None:
    """I-20: what is bound whole is readable whole; a folder below a home is as it should be."""
    home = os.path.realpath(pwd.getpwuid(0).pw_dir)
    assert homes_among([home, f"{home}/venv", "/usr/lib"]) == [home]


@pytest.mark.parametrize(("value", "word"), [(None, "absent"), ("0\n", "off")])
def test_a_host_without_yama_is_told(sysctls: Path, value: str | None, word: str) -> None:
    file = sysctls / "kernel/yama/ptrace_scope"
    file.unlink() if value is None else file.write_text(value)
    (line,) = hazards([], {}, (), is_root=True, sysctls=sysctls)
    assert line.startswith(f"Yama is {word}")


def test_sticky_folder_protection_is_told_switch_by_switch(sysctls: Path) -> None:
    (sysctls / "fs/protected_fifos").write_text("0\n")
    (sysctls / "fs/protected_hardlinks").unlink()
    (line,) = hazards([], {}, (), is_root=True, sysctls=sysctls)
    assert "fs.protected_hardlinks, fs.protected_fifos" in line
    assert "symlinks" not in line


def test_a_quarantined_uid_is_told_with_its_reason(sysctls: Path) -> None:
    """I-16."""
    (line,) = hazards([], {}, (Quarantined(61003, "2 processes"),), is_root=True, sysctls=sysctls)
    assert line == "uid 61003 is quarantined: 2 processes; once that is gone, remove /run/blindcast/61003"


@pytest.mark.parametrize(
    ("name", "is_secret"),
    [
        *[(name, True) for name in ("HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "PGPASSWORD", "OPENAI_API_KEY", "KEY", "my_token", "APIKEY")],
        *[(name, False) for name in ("PATH", "MONKEY", "KEYMAP", "TOKENIZERS_PARALLELISM")],
    ],
)
def test_a_secret_is_known_by_its_name(name: str, is_secret: bool) -> None:
    assert secrets_in({name: "x"}) == ([name] if is_secret else [])
    assert secrets_in({name: ""}) == []


def test_no_line_moves_the_cursor(sysctls: Path) -> None:
    """I-59."""
    lines = hazards([], {"A\x1b[2J_TOKEN": "x"}, (Quarantined(61000, "a\x1b[31m"),), is_root=True, sysctls=sysctls)
    assert "\x1b" not in "".join(lines)
