"""`run_code`: scripts in a workspace, behind each backend's walls."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from blindcast.errors import DataError
from blindcast.records import Limits, Policy
from blindcast.workbench import CodeRun, run_code
from blindcast.workspace import remove
from blindcast_isolation.backend import Backend

Run = Callable[..., CodeRun]


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """A session's folder, workspace and data side by side."""
    (tmp_path / "workspace").mkdir(mode=0o700)
    (tmp_path / "data" / "w0").mkdir(parents=True)
    (tmp_path / "data" / "w0" / "y.csv").write_text("t,y\n0,1.5\n")
    return tmp_path


@pytest.fixture
def run(backend: Backend, session: Path) -> Run:
    """Run code with the fixture's backend in the session's workspace."""

    def go(code: str, policy: Policy | None = None, timeout_s: float | None = None) -> CodeRun:
        return run_code(backend, code, session / "workspace", policy or Policy(), data=session / "data", timeout_s=timeout_s)

    return go


def test_code_writes_its_workspace_and_reads_what_was_shown(run: Run, session: Path) -> None:
    """I-85, I-87: relative paths and `../data` hold under every backend."""
    done = run(
        """
import sys
import pandas as pd
shown = pd.read_csv("../data/w0/y.csv")
with open("model.txt", "w") as file:
    file.write(str(shown.y.sum()))
print("made", __name__)
print("warned", file=sys.stderr)
"""
    )
    assert (done.reason, done.stdout, done.stderr) == ("ok", "made __main__\n", "warned\n")
    assert done.changed == (("model.txt", 3),)
    assert (session / "workspace" / "model.txt").read_text() == "1.5"
    assert (session / "workspace" / "model.txt").stat().st_uid == os.geteuid()


def test_a_workspace_lasts_from_call_to_call(run: Run) -> None:
    """I-86: it lasts for the session; modules in it are imported."""
    run("import os\nos.mkdir('kept')\nopen('kept/side.py', 'w').write('X = 4')\nopen('top.py', 'w').write('Y = 5')")
    done = run(
        "import os, top\nos.rename('kept/side.py', 'moved.py')\nos.rmdir('kept')\nimport moved\n"
        "print(top.Y + moved.X, sorted(os.listdir()))"
    )
    assert done.stdout == "9 ['moved.py', 'top.py']\n"
    assert [path for path, _ in done.changed] == ["moved.py"]


@pytest.mark.parametrize(
    "line",
    [
        "open('/submission/main.py', 'w')",
        "open('../data/w0/y.csv', 'w')",
        "open('../outside', 'w')",
        "import socket; socket.create_connection(('127.0.0.1', 9))",
        "os.fork()",
        "os.symlink('/etc/passwd', 'link')",
        "os.listdir('/etc')",
    ],
)
def test_the_walls_are_those_of_a_predictor(run: Run, session: Path, line: str) -> None:
    """I-85: the same lock-down."""
    done = run(f"import os\n{line}")
    assert done.reason == "exit:1"
    assert "Error" in done.stderr
    assert sorted(path.name for path in session.iterdir()) == ["data", "workspace"]
    assert (session / "data" / "w0" / "y.csv").read_text() == "t,y\n0,1.5\n"


def test_nothing_of_a_predictors_channel_is_open(run: Run) -> None:
    """I-85: no reveal buffer, no request pipe once started."""
    done = run(
        "import os\nfound = []\nfor fd in range(64):\n    try:\n        os.fstat(fd); found.append(fd)\n"
        "    except OSError:\n        pass\nprint(found)"
    )
    assert done.stdout == "[0, 1, 2]\n"


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("raise SystemExit(3)", "exit:3"),
        ("raise SystemExit('words')", "exit:1"),
        ("1 / 0", "exit:1"),
        ("import ctypes\nctypes.string_at(0)", "signal:11"),
        ("print('x' * (2 << 20))", "output"),
        ("import sys\nsys.stderr.write('x' * (2 << 20))\nimport time\ntime.sleep(60)", "output"),
    ],
)
def test_how_code_ends_is_told(run: Run, code: str, reason: str) -> None:
    """I-73."""
    assert run(code).reason == reason


def test_code_that_does_not_end_is_killed_at_its_deadline(run: Run) -> None:
    """Section 8: `train_deadline`."""
    done = run("import time\nprint('begun', flush=True)\ntime.sleep(60)", timeout_s=1)
    assert (done.reason, done.stdout) == ("train_deadline", "begun\n")


def test_a_file_beyond_the_workspace_is_refused_and_many_are_killed(run: Run, session: Path) -> None:
    """I-86: EFBIG for one, the kill at the limit + 64 MiB for many."""
    policy = Policy(Limits(workspace_mb=1))
    done = run("open('big', 'wb').write(bytes(2 << 20))", policy)
    assert done.reason in ("exit:1", "signal:25")
    done = run(
        "import time\nfor i in range(80):\n    open(f'f{i}', 'wb').write(bytes(1 << 20) if False else b'x' * (1 << 20))\ntime.sleep(60)",
        policy,
    )
    assert done.reason == "workspace"
    with pytest.raises(DataError) as refused:
        run("pass", policy)
    assert refused.value.code == "workspace_full"


def test_a_timeout_beyond_the_specs_is_bad_input(run: Run) -> None:
    """FE: 1 to train_wall_s."""
    with pytest.raises(DataError) as refused:
        run("pass", timeout_s=301)
    assert refused.value.code == "bad_input"


def test_an_import_that_is_not_on_the_list_is_refused_by_name(run: Run) -> None:
    """I-25, I-85."""
    assert "'requests' is not among the libraries of this court: numpy, " in run("import requests").stderr


def test_a_model_is_trained_and_saved(run: Run) -> None:
    """I-85: the libraries work here, threads and a model file among them."""
    done = run(
        """
import pickle
import numpy as np, lightgbm
from sklearn.ensemble import RandomForestRegressor
x = np.random.default_rng(0).normal(size=(200, 3))
forest = RandomForestRegressor(5, n_jobs=-1, random_state=0).fit(x, x[:, 0])
with open("forest.pickle", "wb") as file:
    pickle.dump(forest, file)
booster = lightgbm.train({"verbose": -1, "num_threads": 4}, lightgbm.Dataset(x, x[:, 0]), 5)
booster.save_model("model.txt")
np.savez("arrays.npz", x=x)
with open("forest.pickle", "rb") as file:
    print(pickle.load(file).predict(x[:1]).shape)
"""
    )
    assert (done.reason, done.stdout) == ("ok", "(1,)\n")
    assert [path for path, _ in done.changed] == ["arrays.npz", "forest.pickle", "model.txt"]


def test_a_temporary_file_can_be_had_in_the_workspace(run: Run) -> None:
    """I-87: the tripwire lets `tempfile` ask for the folder itself."""
    done = run("import tempfile\nwith tempfile.TemporaryFile(dir='.') as file:\n    file.write(b'x')\nprint('made')")
    assert (done.reason, done.stdout) == ("ok", "made\n"), done.stderr


def test_folders_nested_without_end_end_the_code_and_not_the_session(run: Run, session: Path) -> None:
    """I-86: the count is bounded, and what was made can be removed."""
    done = run(
        """
import os, time
fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
for _ in range(2_000):
    os.mkdir("d", 0o700, dir_fd=fd)
    inner = os.open("d", os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
    os.close(fd)
    fd = inner
time.sleep(30)
"""
    )
    assert done.reason == "workspace"
    with pytest.raises(DataError, match="cannot be counted"):
        run("print(1)")
    assert (session / "workspace").stat().st_uid == os.geteuid()
    remove(session / "workspace")
