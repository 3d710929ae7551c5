"""The reveal buffer: layout, seals, and that only revealed rows ever stand in it."""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from blindcast.buffer import RevealBuffer, layout
from blindcast.records import Blinded
from blindcast.reveal import Reveal, ready

COLUMNS = ("bid", "ask")


def window(rows: int = 30, steps: int = 3) -> Reveal:
    until = np.array([rows * i // steps for i in range(steps + 1)])
    table = np.arange(1, rows * 2 + 1, dtype="f4").reshape(rows, 2)
    return ready(Blinded(COLUMNS, table, -table, np.arange(1, steps + 2, dtype=float), until, until))


@pytest.fixture
def buffer() -> Iterator[RevealBuffer]:
    made = RevealBuffer(COLUMNS, 30, 30, 4)
    yield made
    made.close()


def seen(buffer: RevealBuffer) -> bytes:
    """What a child's own read-only mapping shows."""
    fd = buffer.reopened()
    with mmap.mmap(fd, buffer.size, prot=mmap.PROT_READ) as mapped:
        os.close(fd)
        return bytes(mapped)


def test_the_layout_of_a_pool() -> None:
    """IV-04."""
    plan = layout([("ladder", "f4", 82, 9_000), ("events", "f4", 4, 61_234), ("y", "f8", 1, 16)])
    assert plan.caps == (16_384, 65_536, 16)
    assert plan.offsets == (0, 5_373_952, 6_422_528)
    assert plan.size == 6_426_624


@pytest.mark.parametrize(("rows", "cap"), [(0, 1), (1, 1), (3, 4), (900, 1024), (1024, 1024), (1025, 2048)])
def test_a_cap_is_the_next_power_of_two(rows: int, cap: int) -> None:
    """IV-05."""
    assert layout([("x", "f4", 1, rows)]).caps == (cap,)


def test_only_revealed_rows_stand_in_the_buffer(buffer: RevealBuffer) -> None:
    """I-43, I-48: at every anchor the rest is zero."""
    reveal = window()
    tables: tuple[NDArray[Any], ...] = (reveal.ladder, reveal.events, reveal.path[None])
    for rows in reveal.rows:
        buffer.show(reveal, rows)
        data = seen(buffer)
        for section, table, count in zip(buffer.sections, tables, rows, strict=True):
            shape = (len(section.columns), section.cap_rows)
            shown: NDArray[Any] = np.ndarray(shape, section.dtype, data, section.offset)
            assert np.array_equal(shown[:, :count], table[:, :count])
            assert not shown[:, count:].any()


def test_a_cleared_buffer_is_zero_and_takes_the_next_window(buffer: RevealBuffer) -> None:
    """I-44."""
    reveal = window()
    buffer.show(reveal, reveal.rows[-1])
    buffer.clear()
    assert not any(seen(buffer))
    buffer.show(reveal, reveal.rows[0])
    assert np.count_nonzero(np.frombuffer(seen(buffer), "u1")) > 0


@pytest.mark.parametrize(
    "act",
    [
        lambda fd, size: os.pwrite(fd, b"x", 0),
        lambda fd, size: os.ftruncate(fd, 0),
        lambda fd, size: os.ftruncate(fd, size * 2),
        lambda fd, size: mmap.mmap(fd, size),
        lambda fd, size: os.posix_fallocate(fd, 0, size * 2),
        lambda fd, size: fcntl.fcntl(fd, 1033, 0x8),
    ],
    ids=["write", "shrink", "grow", "map writable", "allocate", "add seals"],
)
def test_the_seals_alone_refuse_every_change(buffer: RevealBuffer, act: Callable[[int, int], object]) -> None:
    """I-41, I-48b: even with a writable descriptor."""
    try:
        fd = buffer.reopened(is_writable=True)
    except PermissionError:
        pytest.skip("mode 0400 refuses before the seals are asked")
    try:
        with pytest.raises(OSError, match=r".+") as refused:
            act(fd, buffer.size)
    finally:
        os.close(fd)
    assert refused.value.errno in (errno.EPERM, errno.EACCES, errno.EINVAL)


def test_a_childs_description_is_read_only_and_its_own(buffer: RevealBuffer) -> None:
    """I-37, I-41."""
    first, second = buffer.reopened(), buffer.reopened()
    try:
        assert os.fstat(first).st_mode & 0o777 == 0o400
        with pytest.raises(OSError, match=r".+"):
            os.write(first, b"x")
        os.lseek(first, 100, os.SEEK_SET)
        assert os.lseek(second, 0, os.SEEK_CUR) == 0
        assert fcntl.fcntl(first, 1034) == 0x17
    finally:
        os.close(first)
        os.close(second)


def test_two_windows_that_differ_only_in_unrevealed_rows_look_the_same(buffer: RevealBuffer) -> None:
    """I-48d: in number too."""
    long, short = window(30), window(30)
    other = RevealBuffer(COLUMNS, 20, 25, 4)  # of the same size class
    try:
        assert (other.size, other.sections) == (buffer.size, buffer.sections)
        for mine, theirs in zip(long.rows[:-1], short.rows[:-1], strict=True):
            buffer.show(long, mine)
            other.show(short, theirs)
            assert seen(buffer) == seen(other)
    finally:
        other.close()


def test_closing_twice_is_harmless() -> None:
    buffer = RevealBuffer(COLUMNS, 1, 1, 1)
    buffer.close()
    buffer.close()


def test_a_layout_takes_numpy_counts_and_unpacks() -> None:
    """I-08: a pure function, for callers with counts of any integer kind."""
    caps, offsets, size = layout([("ladder", "f4", 82, np.int64(1025))])
    assert (caps, offsets, size) == ((2048,), (0,), 671_744)
