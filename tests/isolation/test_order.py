"""What a child still knows of its host once it is locked down."""

from __future__ import annotations

import msgspec
import pytest

from blindcast_isolation.order import Order, forget, order_of

FULL = Order(
    task="code",
    submission="/home/someone/runs/abc",
    entry="/submission/predictor.py",
    is_folder=True,
    buffer_bytes=4_096,
    controls=("mountns", "seccomp"),
    given=(),
    uid=61_000,
    cpu=0,
    kill="pidns",
    server=1,
    server_ino=1,
    memory_mb=64,
    threads=64,
    open_files=64,
    file_mb=0,
    cpu_s=1,
    binds=("/usr/lib",),
    closed=("/root", "/"),
    raw=("/data/plain", "/data/caf\xe9", "/data/\u65e5\u672c", "/data/\U0001f642"),
    cgroup="/sys/fs/cgroup/blindcast-1-2",
    workspace="/home/someone/workspace",
    data="/home/someone/data",
)


def received(order: Order) -> Order:
    """As a zygote has it."""
    return order_of(msgspec.msgpack.encode(order))


def test_no_path_of_the_host_is_left_in_a_locked_child() -> None:
    """K-04: they are canaries; what stands below the submission's frames can be read by it. The root's own `/` is no secret."""
    order = received(FULL)
    held = (order.submission, *order.raw, order.cgroup, order.closed[0], order.workspace, order.data)
    forget(order)
    assert {letter for text in held for letter in text} == {"\0"}
    assert (order.entry, order.binds, order.closed[1]) == (FULL.entry, FULL.binds, "/")


@pytest.mark.parametrize("text", ["", "/", "\xe9", "ab"])
def test_the_interpreters_own_strings_are_left_alone(text: str) -> None:
    order = received(msgspec.structs.replace(FULL, cgroup=text))
    forget(order)
    assert (text + "x")[: len(text)] == text
    assert chr(0xE9) == "\xe9"


def test_without_a_root_of_its_own_a_child_still_finds_its_workspace() -> None:
    """I-85: the paths are the host's."""
    order = received(msgspec.structs.replace(FULL, controls=("landlock", "seccomp")))
    forget(order)
    assert (order.workspace, order.data) == (FULL.workspace, FULL.data)
