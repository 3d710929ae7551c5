"""What a probe reports of the interpreter and the controls (isolation.md I-01, I-06, I-22)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve

from blindcast.frames import PROTOCOL, Ready
from blindcast.records import IsolationReport, Policy
from blindcast_isolation import linux, ruleset, userns
from blindcast_isolation.backend import Backend
from blindcast_isolation.bwrap import Bubblewrap
from blindcast_isolation.landlock import Landlock
from blindcast_isolation.launcher import Launcher, source_roots
from blindcast_isolation.probe import Answers, unequal
from blindcast_isolation.userns import UserNamespaces
from blindcast_isolation.witness import INTERPRETER

OURS = Answers(None, {INTERPRETER: ""}, Ready(PROTOCOL, sys.version, linux.identity_of_python(), ()))
REMEDY = "; allow mount namespaces, or move the environment"

PROBE = """
import os, sys
from blindcast.records import Policy
from blindcast_isolation import linux
from blindcast_isolation.landlock import Landlock

def mapped():
    "Go into a user namespace with every uid, in which no mount namespace may be made."
    (asked, ask), (done, do) = os.pipe(), os.pipe()
    server = os.fork()
    if server:
        os.read(asked, 1)
        for name in ("uid_map", "gid_map"):
            with open(f"/proc/{server}/{name}", "w") as file:
                file.write("0 0 65536")
        os.write(do, b"m")
        os._exit(os.waitstatus_to_exitcode(os.waitpid(server, 0)[1]))
    linux.unshare(linux.CLONE["userns"])
    os.write(ask, b"m")
    os.read(done, 1)
    with open("/proc/sys/user/max_mnt_namespaces", "w") as file:
        file.write("0")

if sys.argv[1] == "denied":
    mapped()
backend = Landlock()
report = backend.probe(Policy())
backend.close()
print(report.available, report.reason)
sys.stdout.flush()
os._exit(0)
"""


def test_an_interpreter_like_ours_is_equal() -> None:
    """I-22."""
    assert unequal(OURS) == ""


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (evolve(OURS, ready=Ready(PROTOCOL, "2.7.18\n[GCC]", linux.identity_of_python(), ())), "the child runs 2.7.18 [GCC], the server "),
        (
            evolve(OURS, ready=Ready(PROTOCOL, sys.version, "/usr/lib/libpython3.so 1:2", ())),
            "the child runs on /usr/lib/libpython3.so 1:2, ",
        ),
        (evolve(OURS, words={INTERPRETER: "ModuleNotFoundError: No module named 'csv'"}), "what a submission may import cannot be "),
        (evolve(OURS, words={}), "what a submission may import cannot be imported after the drop: its witness said nothing"),
    ],
)
def test_an_interpreter_that_differs_is_unreadable_and_says_the_remedy(said: Answers, why: str) -> None:
    """I-22: its version, the mapped libpython's file identity, the lazy imports."""
    word = unequal(said)
    assert word.startswith(f"interpreter_unreadable: {why}")
    assert word.endswith(REMEDY)
    assert "\n" not in word


def test_the_library_of_the_interpreter_is_known_by_its_file() -> None:
    """I-22: path, device and inode, so that a copy of another patch level is another."""
    said = linux.identity_of_python()
    if said != "static":
        path, _, identity = said.rpartition(" ")
        assert identity == f"{os.stat(path).st_dev}:{os.stat(path).st_ino}"


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)


@pytest.fixture
def probed(tmp_path: Path) -> Callable[..., str]:
    """Probe `landlock` from an environment of its own; `closed` names what of it other users may not pass."""
    if os.geteuid() != 0:
        pytest.skip("not root: nobody is dropped to another uid")
    folder, places = tmp_path / "folder", [place for place in source_roots() if "packages" in place]
    venv.create(folder / "env", symlinks=True)
    for parent in (*(parent for parent in tmp_path.parents if parent.is_relative_to("/tmp") and parent != Path("/tmp")), tmp_path):
        parent.chmod(0o755)
    (own,) = (folder / "env/lib").glob("python*/site-packages")
    for place in places:
        for item in Path(place).iterdir():
            if item.name in ("numpy", "numpy.libs"):  # what the child imports must lie there itself
                shutil.copytree(item, own / item.name, copy_function=_link)
            elif not (own / item.name).exists():
                (own / item.name).symlink_to(item)
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(place for place in source_roots() if place not in places)}

    def probe(closed: str, mounts: str = "allowed") -> str:
        (folder / closed).chmod(0o700)
        command = [str(folder / "env/bin/python"), "-c", PROBE, mounts]
        said: subprocess.CompletedProcess[str] = subprocess.run(command, capture_output=True, text=True, check=False, env=environ, cwd="/")
        if "user namespace" in said.stderr or "unshare" in said.stderr:
            pytest.skip(f"no user namespace here: {said.stderr.splitlines()[-1]}")
        assert said.returncode == 0, said.stderr
        return said.stdout.strip()

    return probe


def test_root_opens_a_closed_folder_above_the_interpreter_for_its_child(probed: Callable[..., str]) -> None:
    """I-22: the cure, in a mount namespace of the child's own."""
    assert probed(".") == "True"


def test_a_closed_folder_that_may_not_be_covered_is_unreadable(probed: Callable[..., str]) -> None:
    """I-22: in a world where no mount namespace may be made."""
    said = probed(".", "denied")
    assert said.startswith("False interpreter_unreadable: it lies below a closed folder")
    assert said.endswith(REMEDY)


def test_an_environment_that_is_closed_itself_is_unreadable(probed: Callable[..., str]) -> None:
    """I-22: the lazy imports of the dropped child fail."""
    said = probed("env")
    assert said.startswith("False interpreter_unreadable: what a submission may import cannot be imported after the drop: ModuleNotFound")


def test_the_version_of_landlock_stands_beside_its_measured_state(landlock: Backend) -> None:
    """I-01, I-06."""
    report: IsolationReport = landlock.probe(Policy())
    (control,) = [control for control in report.controls if control.id == "landlock"]
    assert (control.state, control.detail) == ("active", str(ruleset.version()))


def test_a_backend_that_can_start_nothing_is_not_available_and_no_fault() -> None:
    """I-03, I-07: the next one of the order is asked; bubblewrap without namespaces ends so."""
    backend = Landlock()
    backend._launcher = Launcher(("false",))
    try:
        reports = [backend.probe(Policy()) for _ in range(3)]  # where it ends first decides how it is found out
    finally:
        backend.close()
    assert {report.available for report in reports} == {False}
    assert all(report.reason for report in reports)
    assert {control.state for report in reports for control in report.controls} <= {"failed", "unavailable"}


@pytest.mark.parametrize("kind", [UserNamespaces, Bubblewrap])
def test_a_host_that_forbids_user_namespaces_is_told_as_one(kind: type[Backend], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """I-01, I-90: not by what a child stumbles over. Root's bubblewrap needs none."""
    (tmp_path / "limit").write_text("0\n")
    monkeypatch.setattr(userns, "LIMIT", tmp_path / "limit")
    said = kind().lacks(is_root=False)
    assert "user namespaces are forbidden here" in said or "bubblewrap" in said
