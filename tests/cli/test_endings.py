"""How a run ends that does not end by itself: SIGKILL, Ctrl-C, a full disk (G-55, DESIGN 7, face.md F-03)."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from blindcast.ledger import Ledger
from blindcast.testing.runner import Said

Cli = Callable[..., Said]
Write = Callable[[str], Path]

SLOW = """
    import time
    class Predictor:
        def predict(self, view):
            time.sleep(0.05)
            return 0.5
"""
PATIENCE_S = 60  # until a started run has sealed something; only a broken one takes as long


@pytest.fixture
def started(blindcast_task: Path, submission: Write, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A run of a slow predictor in a process of its own, caught after some links were sealed."""
    argv = [sys.executable, "-m", "blindcast", "submit", str(submission(SLOW)), "--task", str(blindcast_task)]
    environ = {**os.environ, "BLINDCAST_HOME": str(tmp_path / "home"), "NO_COLOR": "1"}
    process = subprocess.Popen(argv, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    deadline = time.monotonic() + PATIENCE_S
    while not any(path.stat().st_size > 600 for path in (tmp_path / "home" / "runs").glob(".*/journal.bin")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "the run sealed nothing"
        time.sleep(0.01)
    yield process
    process.kill()
    process.communicate()


def descendants(pid: int) -> set[int]:
    """Every living process below `pid`, by what /proc says of parents."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(path.parent.name)] = int(fields[1])
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


def lives(pid: int) -> bool:
    """Whether a process runs: one that nobody reaped has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def gone(pids: set[int], within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    while any(lives(pid) for pid in pids):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_killed_run_is_shown_as_interrupted_and_stays_charged(blindcast_cli: Cli, started: subprocess.Popen[str], tmp_path: Path) -> None:
    """DESIGN 7: what was sealed until then is kept, and its spent holdout query stays spent."""
    started.kill()
    started.wait()
    (run,) = blindcast_cli("runs", "list", "--json").data["runs"]
    assert run["status"] == "interrupted"
    shown = blindcast_cli("runs", "show", "last", "--json").data
    assert shown["sealed"]["links"] >= 1
    kinds = [entry.kind for entry in Ledger(tmp_path / "home" / "ledger.sqlite").entries()]
    assert kinds == ["trial", "holdout_query"]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_nothing_of_a_killed_run_lives_on(started: subprocess.Popen[str]) -> None:
    """I-71: the zygote sees the end of file, the children have a death signal."""
    below = descendants(started.pid)
    assert below, "a run has a zygote and a child"
    started.kill()
    started.wait()
    assert gone(below, within_s=5)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_ctrl_c_keeps_what_was_sealed_and_ends_with_130(blindcast_cli: Cli, started: subprocess.Popen[str], tmp_path: Path) -> None:
    """F-03: children gone, the run kept as cancelled, no number."""
    below = descendants(started.pid)
    started.send_signal(signal.SIGINT)
    _, stderr = started.communicate(timeout=30)
    assert started.returncode == 130, stderr
    assert gone(below, within_s=5)
    (run,) = blindcast_cli("runs", "list", "--json").data["runs"]
    assert (run["status"], run["reward_bps"]) == ("cancelled", None)
    folder = next((tmp_path / "home" / "runs").iterdir())
    assert json.loads((folder / "state.json").read_text())["reason"] == "cancelled"


def on_a_small_disk(size_kib: int, home: Path, *argv: object) -> tuple[int, str, list[str]]:
    """Exit code, error code and names left below `runs` of a command whose home is a disk of its own, in a mount namespace."""
    home.mkdir()
    script = f'mount -t tmpfs -o size={size_kib}k tmpfs "$BLINDCAST_HOME" && "$@"; code=$?; echo; ls -A "$BLINDCAST_HOME/runs"; exit $code'
    command = ["unshare", "-m", "--propagation", "private", "sh", "-c", script, "sh", sys.executable, "-m", "blindcast", *map(str, argv)]
    environ = {**os.environ, "BLINDCAST_HOME": str(home), "NO_COLOR": "1"}
    said = subprocess.run([*command, "--json"], env=environ, capture_output=True, text=True, check=False)
    document, end = json.JSONDecoder().raw_decode(said.stdout)
    return said.returncode, document["error"]["code"], said.stdout[end:].split()


small_disk = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("unshare"), reason="a full disk is made by mounting a small one, which needs root"
)


@small_disk
def test_a_disk_that_fills_while_a_run_is_kept_leaves_an_interrupted_one(blindcast_task: Path, tmp_path: Path) -> None:
    """The run directory is whole or not there; the folder aside keeps what was sealed."""
    code, error, names = on_a_small_disk(88, tmp_path / "small", "submit", "imbalance", "--task", blindcast_task)
    assert (code, error) == (6, "ledger_unavailable")
    assert len(names) == 1
    assert names[0].startswith(".")


@small_disk
def test_a_disk_too_small_for_the_submission_costs_nothing(blindcast_task: Path, tmp_path: Path) -> None:
    """Refused before the first reveal: nothing charged, nothing left."""
    folder = tmp_path / "large"
    folder.mkdir()
    (folder / "predictor.py").write_text("class Predictor:\n    def predict(self, view): return 0\n")
    (folder / "model.bin").write_bytes(bytes(400_000))
    code, error, names = on_a_small_disk(200, tmp_path / "small", "submit", folder, "--task", blindcast_task)
    assert (code, error, names) == (6, "run_not_written", [])
