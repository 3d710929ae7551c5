"""The house: what the tree must look like (plugins.md section 2, style.md section 2). Needs the checkout."""

from __future__ import annotations

import ast
import configparser
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LINES = 260  # "about 250"
BANNED = {"utils", "helpers", "common", "base", "manager", "misc"}

pytestmark = pytest.mark.skipif(
    not (ROOT / "setup.cfg").is_file() or not (ROOT / "core").is_dir(), reason="not in a checkout: nothing to look at"
)


def setup_cfg() -> configparser.ConfigParser:
    parsed = configparser.ConfigParser()
    parsed.read(ROOT / "setup.cfg", encoding="utf-8")
    return parsed


def source_roots() -> dict[str, Path]:
    """Import name of each top package -> the folder that holds it."""
    roots = [ROOT / "core", *sorted((ROOT / "plugins").iterdir())]
    return {
        package.name: root for root in roots if root.is_dir() for package in sorted(root.iterdir()) if (package / "__init__.py").is_file()
    }


def modules() -> Iterator[Path]:
    for package, root in source_roots().items():
        # the attacks are data: hostile predictors that no code of ours imports
        yield from (path for path in sorted((root / package).rglob("*.py")) if path.parts[-3:-1] != ("corpus", "attacks"))


def test_the_packages_on_disk_are_those_of_setup_cfg() -> None:
    """P-05."""
    on_disk = {
        ".".join(init.parent.relative_to(root).parts)
        for package, root in source_roots().items()
        for init in (root / package).rglob("__init__.py")
    }
    assert on_disk == set(setup_cfg()["options"]["packages"].split())


def test_every_plugin_folder_has_its_entry_point() -> None:
    """P-11: a package without a hook is a broken plugin."""
    points = dict(line.split(" = ") for line in setup_cfg()["options.entry_points"]["blindcast"].strip().splitlines())
    folders = {
        root.name: package for package, root in source_roots().items() if root.parent.name == "plugins" and package != "blindcast_vf"
    }
    assert points == folders


def imports_of(path: Path) -> Iterator[str]:
    """Every module that a file imports: in functions, under TYPE_CHECKING and by a literal `import_module` too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import at line {node.lineno}"
            yield node.module or ""
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str):
            function = node.func
            name = function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
            if name in ("import_module", "__import__"):
                yield node.args[0].value


def test_core_imports_no_plugin_and_a_plugin_no_other() -> None:
    """P-07."""
    trespasses = []
    for path in modules():
        own = path.relative_to(ROOT).parts[2 if path.is_relative_to(ROOT / "plugins") else 1]
        for imported in imports_of(path):
            top = imported.partition(".")[0]
            if top.startswith("blindcast_") and top != own:
                trespasses.append(f"{path.relative_to(ROOT)} imports {imported}")
    assert not trespasses


def loaded_by(init: Path) -> Iterator[str]:
    """What importing a file imports: its top level, but for what stands under TYPE_CHECKING."""
    for node in ast.parse(init.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def test_importing_a_plugin_loads_only_hookspecs_and_the_standard_library() -> None:
    """P-07."""
    strays = [
        f"{package} imports {imported}"
        for package, root in source_roots().items()
        if package.startswith("blindcast_")
        for imported in loaded_by(root / package / "__init__.py")
        if imported != "blindcast.hookspecs" and imported.partition(".")[0] not in sys.stdlib_module_names
    ]
    assert not strays


def test_modules_are_nouns_and_fit_on_a_few_screens() -> None:
    """style.md 2.1."""
    long = {
        str(path.relative_to(ROOT)): lines for path in modules() if (lines := len(path.read_text(encoding="utf-8").splitlines())) > LINES
    }
    assert not long
    assert not [path for path in modules() if path.stem in BANNED]


def test_public_modules_say_what_is_public() -> None:
    """style.md 2.5."""
    silent = []
    for path in modules():
        names = {
            target.id
            for node in ast.parse(path.read_text(encoding="utf-8")).body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        if path.is_relative_to(ROOT / "core") and path.stem not in ("__main__", "__init__", "plugin") and "__all__" not in names:
            silent.append(str(path.relative_to(ROOT)))
    assert not silent


def test_no_module_is_loaded_twice(tmp_path: Path) -> None:
    """P-04: by file."""
    probe = """
import sys
from blindcast.host import Host
host = Host({})
host.plugins
for kind in ("graders", "anonymizers", "datasources"):
    for offered in host.offers(kind):
        try:
            host.resolve(offered)
        except Exception:
            pass
files = [getattr(module, "__file__", None) for name, module in list(sys.modules.items()) if name.startswith("blindcast")]
files = [file for file in files if file]
print(len(files) - len(set(files)))
"""
    told = subprocess.run([sys.executable, "-c", probe], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert told.strip() == "0"


@pytest.mark.parametrize("module", ["blindcast", "blindcast.hookspecs", "blindcast.cli", "blindcast.testing", "blindcast.testing.plugin"])
def test_light_modules_import_nothing_heavy(tmp_path: Path, module: str) -> None:
    """P-63, P-50."""
    heavy = [
        "pandas",
        "pyarrow",
        "sklearn",
        "lightgbm",
        "scipy",
        "matplotlib",
        "sqlalchemy",
        "numpy",
        *(["pytest"] if module == "blindcast.testing" else []),
    ]
    probe = f"import sys, {module}\nprint([name for name in {heavy!r} if name in sys.modules])"
    told = subprocess.run([sys.executable, "-c", probe], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert told.strip() == "[]"
