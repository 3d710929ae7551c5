"""The self-test notices each thing that is not refused (isolation.md I-13); here, outside of every wall, nothing is."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest

from blindcast_isolation import linux, selftest
from blindcast_isolation.lockdown import STEPS
from blindcast_isolation.measures import Locking
from blindcast_isolation.order import ENVIRONMENT, Order

BARE = Order(
    task="shim",
    submission="/s",
    entry="/s/predictor.py",
    is_folder=True,
    buffer_bytes=0,
    controls=(),
    given=(),
    uid=None,
    cpu=0,
    kill="orphans",
    server=os.getpid(),
    server_ino=0,
    memory_mb=64,
    threads=64,
    open_files=64,
    file_mb=0,
    cpu_s=1,
    binds=(),
    closed=(),
)
Prove = Callable[..., None]


@pytest.fixture
def prove(monkeypatch: pytest.MonkeyPatch) -> Prove:
    """Prove an order of the given fields, in a process with the table and the environment of a child."""
    monkeypatch.setattr(selftest, "open_descriptors", lambda _below: (0, 1, 2, 3, 4))
    for name in list(os.environ):
        monkeypatch.delenv(name)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)

    def run(mapped: int = 0, **fields: Any) -> None:
        monkeypatch.delenv("PYTEST_CURRENT_TEST")
        selftest.prove(Locking(msgspec.structs.replace(BARE, **fields), mapped=mapped))

    return run


def test_without_a_control_there_is_nothing_to_prove(prove: Prove) -> None:
    prove()


def test_an_open_descriptor_is_noticed(prove: Prove, monkeypatch: pytest.MonkeyPatch) -> None:
    """I-11."""
    monkeypatch.setattr(selftest, "open_descriptors", lambda _below: (0, 1, 2, 3, 4, 9))
    with pytest.raises(PermissionError, match="descriptors"):
        prove()


def test_another_environment_is_noticed(prove: Prove, monkeypatch: pytest.MonkeyPatch) -> None:
    """I-12."""
    monkeypatch.setenv("TOKEN", "x")
    with pytest.raises(PermissionError, match="environment"):
        prove()


@pytest.mark.parametrize("control", ["mountns", "landlock"])
def test_a_file_of_the_host_that_can_be_opened_is_noticed(prove: Prove, control: str) -> None:
    with pytest.raises(PermissionError, match="opening /etc/passwd was not refused"):
        prove(controls=(control,))


def refuse(*_args: object, **_options: object) -> Any:
    raise PermissionError(1, "refused")


def test_a_raw_root_that_can_be_opened_is_noticed(prove: Prove, monkeypatch: pytest.MonkeyPatch, tmp_path: os.PathLike[str]) -> None:
    """I-13, I-23."""
    opened = linux.open_past_hooks
    monkeypatch.setattr(linux, "open_past_hooks", lambda path: refuse() if path == "/etc/passwd" else opened(path))
    with pytest.raises(PermissionError, match="was not refused"):
        prove(controls=("landlock",), raw=(os.fspath(tmp_path),))


@pytest.mark.parametrize(
    ("refused", "noticed"),
    [
        ((), "a socket"),
        (("socket.socket",), "a fork"),
        (("socket.socket", "fork"), "a signal to the server"),
        (("socket.socket", "fork", "os.kill"), "limits of the server"),
    ],
)
def test_a_call_that_the_filter_let_through_is_noticed(
    prove: Prove, monkeypatch: pytest.MonkeyPatch, refused: tuple[str, ...], noticed: str
) -> None:
    for name in refused:
        monkeypatch.setattr(f"blindcast_isolation.selftest.{name}", refuse)
    with pytest.raises(PermissionError, match=f"{noticed} was not refused"):
        prove(controls=("seccomp",))


def test_a_buffer_that_can_be_made_writable_is_noticed(prove: Prove) -> None:
    """I-42."""
    memory = mmap.mmap(-1, mmap.PAGESIZE)
    with pytest.raises(PermissionError, match="making the buffer writable was not refused"):
        prove(mapped=np.frombuffer(memory, dtype="u1").ctypes.data, buffer_bytes=mmap.PAGESIZE)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become uid 0 here")
def test_a_way_back_to_uid_0_is_noticed(prove: Prove) -> None:
    with pytest.raises(PermissionError, match="setresuid"):
        prove(controls=("uid-drop",))


def test_every_child_proves_itself_behind_the_last_wall() -> None:
    """I-10 step 11: always, behind seccomp and before the submission is opened."""
    names = [step.control for step in STEPS]
    assert names.index("seccomp") < names.index("self-test") < names.index("hook") == len(names) - 1
    assert STEPS[names.index("self-test")].is_always
