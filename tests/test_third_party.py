"""The smallest plugin, really installed and used (plugins.md section 7)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parent / "third_party"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds the installed example; nothing is built in the sources (P-06)."""
    pytest.importorskip("setuptools", minversion="77")
    copy = tmp_path_factory.mktemp("source") / "third_party"
    shutil.copytree(EXAMPLE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    target = tmp_path_factory.mktemp("site")
    install = (
        "install",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "--disable-pip-version-check",
        "--target",
        str(target),
        str(copy),
    )
    done = subprocess.run([sys.executable, "-m", "pip", *install], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target


def python(site: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH", "")]))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BLINDCAST_")}
    environ = {**kept, "PYTHONPATH": path, "BLINDCAST_HOME": str(site.parent / "home"), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([sys.executable, *argv], cwd=site.parent, env=environ, capture_output=True, text=True, check=False)


def blindcast(site: Path, argv: Sequence[str]) -> tuple[int, dict[str, object]]:
    done = python(site, "-m", "blindcast", *argv, "--json")
    return done.returncode, json.loads(done.stdout)


def test_the_example_is_at_most_15_lines_of_code_and_is_listed(site: Path) -> None:
    """Section 7: keep it so."""
    lines = (EXAMPLE / "blindcast_capped.py").read_text().splitlines()
    assert sum(bool(line.strip()) for line in lines) <= 15
    code, listed = blindcast(site, ["plugins", "list", "--kind", "graders"])
    assert code == 0
    assert "blindcast-capped/capped" in json.dumps(listed)


@pytest.mark.parametrize("options", [[], ["--set", "cap_bps=100"]])
def test_the_example_passes_every_check_of_its_kind(site: Path, options: list[str]) -> None:
    """Q-01, P-61."""
    code, judged = blindcast(site, ["plugins", "doctor", "capped", *options])
    assert code == 0, judged
    assert '"pass"' in json.dumps(judged)


def test_the_examples_own_test_passes(site: Path) -> None:
    """P-51: one decorator, one case per check."""
    done = python(site, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", "-v", str(EXAMPLE / "test_capped.py"))
    assert done.returncode == 0, done.stdout
    assert "CO-01 builds" in done.stdout


def test_the_example_pays_what_its_page_says(site: Path) -> None:
    """PV-14, through an installed distribution."""
    probe = """
import numpy as np
from blindcast.host import Host
from blindcast.names import grade_id
from blindcast.records import Outcome
host = Host({})
offered = host.find("graders", "capped")
curves = np.triu(np.ones((2, 3)), 1)
for cap in (25, 100, 0):
    grader = host.build("graders", "capped", {"cap_bps": cap})
    print(grader.grade(Outcome(np.array([0.0, 10.0, 30.0]), 1.0), curves).reward)
print(grade_id("capped", offered.distribution, grader.version, 2, host.options("graders", "capped", {})))
"""
    done = python(site, "-c", probe)
    assert done.stdout.split() == ["55.0", "60.0", "0.0", "blindcast-capped/capped/1;G=2;cap_bps=25"], done.stderr
