"""The plugin lock (plugins.md section 10)."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from blindcast.host import Host
from blindcast.lock import digest, lock


def package(folder: Path) -> Path:
    made = folder / "acme_brier"
    (made / "__pycache__").mkdir(parents=True)
    (made / "__init__.py").write_bytes(b"x = 1\n")
    (made / "core.py").write_bytes(b"y = 2\n")
    (made / "__pycache__" / "core.cpython-311.pyc").write_bytes(b"\0")
    return made


def test_the_digest_of_a_package_is_the_pinned_one(tmp_path: Path) -> None:
    """PV-16."""
    found = digest(package(tmp_path))
    assert (found.files, found.sha256) == (2, "63771084adc7e987d339cb3afe287311ebb1b0c66f8f8de7655908b67cb1c96b")


def test_the_digest_of_a_module_holds_its_name_and_bytes(tmp_path: Path) -> None:
    """P-71."""
    (tmp_path / "m.py").write_bytes(b"z = 3\n")
    line = hashlib.sha256(b"z = 3\n").hexdigest() + "  m.py\n"
    assert digest(tmp_path / "m.py").sha256 == hashlib.sha256(line.encode()).hexdigest()


@pytest.mark.skipif(not all(map(shutil.which, ("find", "sort", "xargs", "sha256sum"))), reason="needs find, sort, xargs and sha256sum")
def test_the_digest_is_what_the_shell_line_gives(tmp_path: Path) -> None:
    """P-71: paths in code-point order."""
    made = package(tmp_path)
    for name in ("Z.json", "a.txt", "core/x.py", "\u00e9.md", "core-x.py"):
        (made / name).parent.mkdir(exist_ok=True)
        (made / name).write_text(name, encoding="utf-8")
    shell = "find acme_brier -type f ! -name '*.pyc' | LC_ALL=C sort | xargs sha256sum | sha256sum"
    told = subprocess.run(["sh", "-c", shell], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert digest(made).sha256 == told.split()[0]


def test_a_symbolic_link_counts_by_its_link_text(tmp_path: Path) -> None:
    """P-71."""
    made = package(tmp_path)
    plain = digest(made)
    (made / "link.py").symlink_to("core.py")
    linked = digest(made)
    (made / "core.py").write_bytes(b"y = 2\n")
    assert linked.files == plain.files + 1
    (made / "link.py").unlink()
    (made / "link.py").symlink_to("./core.py")
    assert digest(made).sha256 != linked.sha256


def test_the_lock_names_what_was_loaded_and_used() -> None:
    """P-70."""
    host = Host({"BLINDCAST_DISABLE_PLUGINS": "blindcast:predictors"})
    held = lock(host, [host.find("graders", "earliness_x_horizon")])
    assert held == json.loads(json.dumps(held))
    assert (held["schema"], held["api"]) == ("blindcast.lock/1", 1)
    assert isinstance(held["loaded"], list)
    graders = next(one for one in held["loaded"] if one["plugin"] == "blindcast:graders")
    assert graders["used"] == ["graders/earliness_x_horizon"]
    assert set(graders["modules"]) == {"blindcast_graders"}
    assert graders["modules"]["blindcast_graders"]["files"] >= 2
    assert held["refused"] == [{"plugin": "blindcast:predictors", "why": "BLINDCAST_DISABLE_PLUGINS names blindcast:predictors"}]
    assert held["policy"] == {"allow": None, "deny": ["blindcast:predictors"]}
