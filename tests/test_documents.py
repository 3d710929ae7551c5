"""The documents say what the code says (plugins.md P-80, style.md rule 22). Needs the checkout."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from blindcast.hookspecs import Hooks
from blindcast.testing.runner import Said

ROOT = Path(__file__).parents[1]
Cli = Callable[..., Said]

pytestmark = pytest.mark.skipif(not (ROOT / "README.md").is_file(), reason="not in a checkout: no documents to look at")


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", path.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_hook_table_names_every_hook_with_its_arguments() -> None:
    """P-80."""
    listed = re.findall(r"^\| `(\w+\([^)]*\))` \|", (ROOT / "docs" / "plugins.md").read_text(), flags=re.MULTILINE)
    hooks = []
    for name, function in vars(Hooks).items():
        if not name.startswith("_"):
            hooks.append(f"{name}({', '.join(list(inspect.signature(function).parameters)[1:])})")
    assert listed == hooks


def test_the_page_of_error_codes_is_fresh() -> None:
    """Style.md rule 22."""
    said = subprocess.run([sys.executable, ROOT / "scripts" / "codes", "--check"], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr


@pytest.mark.parametrize("page", ["README.md", "docs/isolation.md"])
def test_every_console_block_runs(blindcast_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str) -> None:
    """P-80: in a fresh home, as typed."""
    monkeypatch.chdir(tmp_path)
    lines = [line[2:].split() for block in blocks(ROOT / page, "console") for line in block.splitlines()]
    assert lines
    for words in lines:
        assert words[0] == "blindcast"
        said = blindcast_cli(*words[1:])
        assert said.exit_code == 0, (words, said.stderr)


@pytest.mark.parametrize("page", ["README.md", "docs/predictors.md", "docs/plugins.md"])
def test_every_python_block_executes(page: str) -> None:
    """P-80."""
    found = blocks(ROOT / page, "python")
    assert found
    for block in found:
        exec(compile(block, page, "exec"), {"__name__": "block"})


def test_the_smallest_grader_of_the_readme_is_the_one_that_is_installed_by_a_test() -> None:
    example = (ROOT / "tests" / "third_party" / "blindcast_capped.py").read_text(encoding="utf-8")
    assert example in blocks(ROOT / "README.md", "python")
    assert len([line for line in example.splitlines() if line.strip()]) <= 15


def test_every_link_of_the_documents_leads_somewhere() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
