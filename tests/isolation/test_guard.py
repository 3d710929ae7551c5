"""What the import guard answers (A-38, I-25). It is policy and help: none of this is a barrier."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from blindcast.libraries import import_names, libraries_text

DRIVER = """
import json, sys
from blindcast.libraries import import_names, withheld_names
import numpy, sklearn.linear_model, blindcast.frames, attr, msgspec
from blindcast_isolation.guard import Guard
entry, name = sys.argv[1], sys.argv[2]
guard = Guard(sys.argv[3], import_names(), withheld_names(), sys.argv[4:])
guard.hide()
guard.install()
module = guard.load(entry, name)
print(json.dumps({key: value for key, value in vars(module).items() if key.startswith("said_")}))
"""
HEAD = """
import importlib, importlib.util, importlib.machinery, os, sys
import numpy

def answer(act):
    try:
        return act().__name__
    except (ImportError, KeyError) as error:
        return f"{type(error).__name__}: {error}"

def by_statement(text):
    def act():
        exec(text, space := {"__builtins__": __builtins__, "__name__": "mine"})
        return space.get("found", numpy)
    return answer(act)

def by_spec(path, name="found"):
    def act():
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    return answer(act)

SITE = os.path.dirname(os.path.dirname(numpy.__file__))
"""
Ask = Callable[..., dict[str, str]]


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Ask:
    """Run lines of a submission under the guard; what it said, by name."""

    def run(*lines: str, name: str = "predictor", beside: tuple[str, ...] = (), **files: str) -> dict[str, str]:
        folder = tmp_path_factory.mktemp("mine")
        for file, text in files.items():
            (folder / f"{file}.py").write_text(textwrap.dedent(text))
        (folder / "predictor.py").write_text(HEAD + "\n".join(lines) + "\n")
        words = [sys.executable, "-B", "-c", DRIVER, str(folder / "predictor.py"), name, str(folder), *beside]
        said = subprocess.run(words, capture_output=True, text=True, check=False, cwd=folder.parent)
        assert said.returncode == 0, said.stderr
        return {key.removeprefix("said_"): value for key, value in json.loads(said.stdout).items()}

    return run


def refused(name: str) -> str:
    return f"ImportError: '{name}' is not among the libraries of this court: {libraries_text()}, and the standard library"


@pytest.fixture(scope="module")
def walked(ask: Ask) -> dict[str, str]:
    """A-38, every way in turn."""
    return ask(
        "said_statement = by_statement('import torch')",
        "said_statement_of_a_loaded_one = by_statement('import joblib as found')",
        "said_call = answer(lambda: __import__('cffi'))",
        "said_import_module = answer(lambda: importlib.import_module('torch.nn'))",
        "said_import_module_of_a_loaded_one = answer(lambda: importlib.import_module('joblib'))",
        "said_vendored = by_statement('import joblib.externals.loky as found')",
        "said_vendored_by_name = answer(lambda: importlib.import_module('joblib.externals.cloudpickle'))",
        "said_f2py = by_statement('import numpy.f2py as found')",
        "said_f2py_from = by_statement('from numpy import f2py as found')",
        "said_f2py_inner = by_statement('from numpy.f2py.crackfortran import crackfortran as found')",
        "said_f2py_by_name = answer(lambda: importlib.import_module('numpy.f2py'))",
        "said_cffi_backend = by_statement('import _cffi_backend as found')",
        "said_server = by_statement('import blindcast.frames as found')",
        "said_server_by_name = answer(lambda: importlib.import_module('blindcast.frames'))",
        "said_plugin = by_statement('import blindcast_isolation.guard as found')",
        "said_plugin_by_name = answer(lambda: importlib.import_module('blindcast_isolation.guard'))",
        "said_servers_library = answer(lambda: importlib.import_module('msgspec'))",
        "said_real_import = answer(lambda: importlib.__import__('blindcast.frames'))",
        "import builtins",
        "said_other_builtins = answer(lambda: builtins.__import__('msgspec'))",
        "said_question = answer(lambda: importlib.util.find_spec('torch'))",
        "said_finder = answer(lambda: next(f for f in sys.meta_path if hasattr(f, 'hide')).find_spec('torch', None))",
        "said_modules = answer(lambda: sys.modules['blindcast.frames'])",
        "said_modules_msgspec = answer(lambda: sys.modules['msgspec'])",
        "said_spec = by_spec(f'{SITE}/joblib/__init__.py')",
        "said_spec_under_a_listed_name = by_spec(f'{SITE}/joblib/__init__.py', 'numpy')",
        "said_spec_of_f2py = by_spec(f'{SITE}/numpy/f2py/__init__.py')",
        "said_loader = answer(lambda: importlib.machinery.SourceFileLoader('found', f'{SITE}/joblib/__init__.py').load_module())",
        "said_nowhere = by_spec('/nowhere/found.py')",
    )


@pytest.mark.parametrize(
    ("way", "name"),
    [
        ("statement", "torch"),
        ("statement_of_a_loaded_one", "joblib"),
        ("call", "cffi"),
        ("import_module", "torch"),
        ("import_module_of_a_loaded_one", "joblib"),
        ("vendored", "joblib"),
        ("vendored_by_name", "joblib"),
        ("f2py", "numpy.f2py"),
        ("f2py_from", "numpy.f2py"),
        ("f2py_inner", "numpy.f2py.crackfortran"),
        ("f2py_by_name", "numpy.f2py"),
        ("cffi_backend", "_cffi_backend"),
        ("server", "blindcast"),
        ("server_by_name", "blindcast"),
        ("plugin", "blindcast_isolation"),
        ("plugin_by_name", "blindcast_isolation"),
        ("servers_library", "msgspec"),
        ("real_import", "blindcast"),
        ("other_builtins", "msgspec"),
        ("question", "torch"),
        ("finder", "torch"),
        ("spec", "joblib"),
        ("spec_under_a_listed_name", "joblib"),
        ("spec_of_f2py", "numpy.f2py"),
        ("loader", "joblib"),
        ("nowhere", "/nowhere/found.py"),
    ],
)
def test_what_is_not_on_the_list_is_answered_with_the_list(walked: dict[str, str], way: str, name: str) -> None:
    """A-38, K-12: by name, by spec from a file, vendored, numpy.f2py, cffi, the server's own packages."""
    assert walked[way] == refused(name)


def test_the_servers_own_modules_do_not_stand_in_sys_modules(walked: dict[str, str]) -> None:
    """A-38: through `sys.modules`."""
    assert walked["modules"] == "KeyError: 'blindcast.frames'"
    assert walked["modules_msgspec"] == "KeyError: 'msgspec'"


def test_listed_libraries_and_own_modules_come_by_every_way(ask: Ask) -> None:
    """I-22, I-25: lazy imports of a library and of a submission are untouched."""
    said = ask(
        "said_lazy = by_statement('import scipy.fft as found')",
        "said_inner = by_statement('from sklearn.utils import parallel as found')",
        "said_by_name = answer(lambda: importlib.import_module('scipy.signal'))",
        "said_standard = answer(lambda: importlib.import_module('xml.dom'))",
        "said_own = by_statement('import side as found')",
        "said_own_by_name = answer(lambda: importlib.import_module('side'))",
        "said_own_again = answer(lambda: importlib.import_module('side'))",
        "said_own_by_file = by_spec(os.path.join(os.path.dirname(__file__), 'side.py'))",
        "said_listed_by_file = by_spec(f'{SITE}/sklearn/exceptions.py')",
        "said_standard_by_file = by_spec(os.path.join(os.path.dirname(os.__file__), 'colorsys.py'))",
        "said_for_itself = answer(lambda: (importlib.import_module('sklearn.externals'), numpy.f2py)[1])",
        side="import decimal",
    )
    assert said == {
        "lazy": "scipy.fft",
        "inner": "sklearn.utils.parallel",
        "by_name": "scipy.signal",
        "standard": "xml.dom",
        "own": "side",
        "own_by_name": "side",
        "own_again": "side",
        "own_by_file": "found",
        "listed_by_file": "found",
        "standard_by_file": "found",
        "for_itself": "numpy.f2py",
    }


def test_an_own_module_is_guarded_as_the_entry_is(ask: Ask) -> None:
    """I-25."""
    said = ask("said_side = by_statement('import side')", side="import torch")
    assert said["side"] == refused("torch")


def test_code_of_a_session_runs_as_main_and_imports_from_its_workspace(ask: Ask, tmp_path: Path) -> None:
    """I-85."""
    (tmp_path / "written.py").write_text("import scipy.fft\n")
    said = ask("said_name = __name__", "said_own = by_statement('import written as found')", name="__main__", beside=(str(tmp_path),))
    assert said == {"name": "__main__", "own": "written"}


def test_the_list_of_run_code_begins_with_the_predictors() -> None:
    """I-85: what is installed of the second list comes after it."""
    assert import_names("code")[: len(import_names())] == import_names("predictor")
    assert set(import_names("code")) - set(import_names()) <= {"xgboost", "torch"}
