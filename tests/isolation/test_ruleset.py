"""Landlock, tried by doing the forbidden thing in throw-away children."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from blindcast_isolation import ruleset
from blindcast_isolation.ruleset import NET_VERSION, SCOPE_VERSION, restrict, version

KNOWN = version() if sys.platform == "linux" else 0
landlocked = pytest.mark.skipif(KNOWN == 0, reason="no Landlock here")
HEAD = """\
import errno, os, socket, sys
folder, shown, port, *roots = sys.argv[1:]
sys.path += roots
from blindcast_isolation import linux
from blindcast_isolation.ruleset import restrict
import encodings.idna
def refused(act):
    try:
        act()
    except OSError as error:
        return error.errno
    return 0
linux.forbid_new_privileges()
"""


def held(tmp_path: Path, code: str, port: int = 9) -> None:
    """A child runs `code`; it knows a readable `shown`, a `folder` beside it, and a port."""
    (tmp_path / "shown").mkdir()
    (tmp_path / "shown" / "rows").write_text("rows")
    (tmp_path / "hidden").write_text("hidden")
    (tmp_path / "work" / "one").mkdir(parents=True)
    (tmp_path / "work" / "two").mkdir()
    line = [sys.executable, "-I", "-B", "-c", HEAD + code, str(tmp_path), str(tmp_path / "shown"), str(port), *sys.path]
    ended = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stderr


@landlocked
def test_only_what_is_given_can_be_read(tmp_path: Path) -> None:
    """I-10 step 9, I-21."""
    held(
        tmp_path,
        """
restrict([shown, sys.prefix, os.__file__], refuses_net=False, scopes=False)
assert open(f"{shown}/rows").read() == "rows" and os.listdir(shown) == ["rows"] and open(os.__file__).read(1)
assert refused(lambda: open(f"{folder}/hidden")) == refused(lambda: os.listdir(folder)) == refused(lambda: os.listdir("/")) == errno.EACCES
assert refused(lambda: open("/etc/passwd")) == refused(lambda: open("/proc/self/environ")) == errno.EACCES
""",
    )


@landlocked
def test_nothing_can_be_written(tmp_path: Path) -> None:
    """I-10 step 9: not even beneath what may be read."""
    held(
        tmp_path,
        """
restrict([shown], refuses_net=False, scopes=False)
for place in (shown, folder, "/tmp"):
    made = f"{place}/made"
    for act in (os.mkdir, os.mkfifo, os.mknod, lambda made: open(made, "w"), lambda made: os.symlink("rows", made)):
        assert refused(lambda: act(made)) == errno.EACCES
assert refused(lambda: os.unlink(f"{shown}/rows")) == refused(lambda: open(f"{shown}/rows", "a")) == errno.EACCES
assert refused(lambda: os.rename(f"{shown}/rows", f"{shown}/moved")) == errno.EACCES
""",
    )


@landlocked
@pytest.mark.skipif(KNOWN < 3, reason="this Landlock does not know truncation")
def test_what_may_be_read_cannot_be_truncated(tmp_path: Path) -> None:
    held(
        tmp_path,
        'restrict([shown], refuses_net=False, scopes=False)\nassert refused(lambda: os.truncate(f"{shown}/rows", 0)) == errno.EACCES',
    )


@landlocked
def test_a_workspace_can_be_written(tmp_path: Path) -> None:
    """I-87."""
    held(
        tmp_path,
        """
work = f"{folder}/work"
restrict([shown], [work], refuses_net=False, scopes=False)
open(f"{work}/one/made", "w").write("made")
os.truncate(f"{work}/one/made", 1)
assert open(f"{work}/one/made").read() == "m"
os.rename(f"{work}/one/made", f"{work}/one/moved")
os.mkdir(f"{work}/three")
os.rmdir(f"{work}/three")
assert sorted(os.listdir(work)) == ["one", "two"]
assert refused(lambda: os.rename(f"{work}/one/moved", f"{folder}/out")) in (errno.EACCES, errno.EXDEV)
assert refused(lambda: os.rename(f"{shown}/rows", f"{work}/rows")) in (errno.EACCES, errno.EXDEV)
assert refused(lambda: os.link(f"{shown}/rows", f"{work}/rows")) in (errno.EACCES, errno.EXDEV)
os.unlink(f"{work}/one/moved")
""",
    )


@landlocked
@pytest.mark.skipif(KNOWN < 2, reason="this Landlock cannot give moves between folders")
def test_files_move_between_folders_of_a_workspace(tmp_path: Path) -> None:
    """I-87."""
    held(
        tmp_path,
        """
work = f"{folder}/work"
restrict([shown], [work], refuses_net=False, scopes=False)
open(f"{work}/one/made", "w").close()
os.rename(f"{work}/one/made", f"{work}/two/made")
""",
    )


@landlocked
def test_a_workspace_gets_regular_files_and_folders_only(tmp_path: Path) -> None:
    """I-17: no pipe, socket, device or link that whoever looks later could follow."""
    held(
        tmp_path,
        """
work = f"{folder}/work"
restrict([shown], [work], refuses_net=False, scopes=False)
assert refused(lambda: os.mkfifo(f"{work}/pipe")) == refused(lambda: os.symlink("/etc/passwd", f"{work}/link")) == errno.EACCES
assert refused(lambda: socket.socket(socket.AF_UNIX).bind(f"{work}/socket")) == errno.EACCES
assert refused(lambda: os.mknod(f"{work}/device", 0o020600, os.makedev(1, 3))) in (errno.EACCES, errno.EPERM)
""",
    )


@landlocked
@pytest.mark.skipif(KNOWN < NET_VERSION, reason="this Landlock does not know TCP")
def test_no_tcp(tmp_path: Path) -> None:
    """I-10 step 9."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        held(
            tmp_path,
            """
assert refused(lambda: socket.create_connection(("127.0.0.1", int(port)))) == 0
restrict(None, refuses_net=True, scopes=False)
assert refused(lambda: socket.create_connection(("127.0.0.1", int(port)))) == errno.EACCES
assert refused(lambda: socket.socket().bind(("127.0.0.1", 0))) == errno.EACCES
assert open("/etc/passwd").read(1)
""",
            server.getsockname()[1],
        )


@landlocked
@pytest.mark.skipif(KNOWN < SCOPE_VERSION, reason="this Landlock does not know scopes")
def test_neighbours_are_out_of_reach(tmp_path: Path) -> None:
    """I-10 step 9: no signal to the parent, no abstract socket of another; own ones still work. I-01: some kernels claim the level only."""
    name = f"\0blindcast-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        server.listen()
        held(
            tmp_path,
            f"""
name = {name!r}
assert refused(lambda: os.kill(os.getppid(), 0)) == refused(lambda: socket.socket(socket.AF_UNIX).connect(name)) == 0
restrict(None, refuses_net=False, scopes=True)
assert refused(lambda: os.kill(os.getppid(), 0)) == refused(lambda: socket.socket(socket.AF_UNIX).connect(name)) == errno.EPERM
os.kill(os.getpid(), 0)
""",
        )


@landlocked
def test_it_holds_for_children_and_cannot_be_widened(tmp_path: Path) -> None:
    held(
        tmp_path,
        """
restrict([shown], refuses_net=False, scopes=False)
restrict(["/"], refuses_net=False, scopes=False) if refused(lambda: os.open("/", os.O_PATH)) == 0 else None
assert refused(lambda: open("/etc/passwd")) == errno.EACCES
if (pid := os.fork()) == 0:
    os._exit(refused(lambda: open("/etc/passwd")))
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == errno.EACCES
""",
    )


@landlocked
def test_a_path_that_is_not_there_is_said() -> None:
    with pytest.raises(FileNotFoundError, match="/is/not/there"):
        restrict(["/is/not/there"], refuses_net=False, scopes=False)


@pytest.mark.parametrize(("kernel", "refuses_net", "scopes"), [(0, False, False), (3, True, False), (5, False, True)])
def test_what_the_kernel_lacks_is_an_error(monkeypatch: pytest.MonkeyPatch, kernel: int, refuses_net: bool, scopes: bool) -> None:
    """I-04: nothing is left out in silence."""
    monkeypatch.setattr(ruleset, "version", lambda: kernel)
    with pytest.raises(OSError, match="landlock: version") as raised:
        restrict(["/"], refuses_net=refuses_net, scopes=scopes)
    assert raised.value.errno == errno.ENOTSUP
