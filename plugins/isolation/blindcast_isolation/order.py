"""What the launcher asks of the zygote: one child, and how it is locked down. Between our own processes only."""

from __future__ import annotations

import ctypes
import sys
from typing import Final

import msgspec

__all__ = ["ENVIRONMENT", "Ending", "Order", "Started", "ending_of", "forget", "order_of"]

ENVIRONMENT: Final = {
    "HOME": "/",
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    "ARROW_IO_THREADS": "1",
    "JOBLIB_MULTIPROCESSING": "0",
}  # what a zygote is started with and every child keeps (I-12)


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """One child. `controls` are those to put in force, by their ids of I-01; a failing one ends the child."""

    task: str  # shim | probe | code
    submission: str  # of the host
    entry: str  # of the child
    is_folder: bool
    buffer_bytes: int
    controls: tuple[str, ...]
    given: tuple[str, ...]  # of these, what stands around the zygote already
    uid: int | None  # a slot's; None keeps the starter's
    cpu: int
    kill: str  # cgroup | pidns | uid | orphans | given
    server: int  # the server's process: it must not be reached
    server_ino: int  # of its pidfd: one of its own since Linux 6.9, before that the same for all
    memory_mb: int
    threads: int
    open_files: int
    file_mb: int  # 0: no file is written
    cpu_s: int
    binds: tuple[str, ...]  # read-only paths of the private root, each at its own path
    closed: tuple[str, ...]  # parents that a slot's uid may not pass (I-22)
    raw: tuple[str, ...] = ()  # roots that must not be opened (I-13)
    cgroup: str = ""  # the run's group, of the host
    workspace: str = ""  # of `code`: the one writable folder, of the host
    data: str = ""  # of `code`: what it was shown, of the host
    port: int = 0  # of a probe: where the server listens on the loopback
    act: str = ""  # of a probe: the one control whose witness acts, at the end; empty: each acts behind its step


class Started(msgspec.Struct, frozen=True):
    """The child's process; its pidfd comes with it."""

    pid: int


class Ending(msgspec.Struct, frozen=True):
    """How a child ended: the status of `wait`, CPU seconds and peak memory of it and what it waited for."""

    status: int
    cpu_s: float
    peak_kib: int


order_of = msgspec.msgpack.Decoder(Order).decode
ending_of = msgspec.msgpack.Decoder(Ending).decode


def forget(order: Order) -> None:
    """Blank, in place, the host's paths that a locked-down child needs no more: what it runs may read all of its own memory.

    Whoever still holds the order, the frames below the submission's say, holds blanks.
    """
    inner = (order.workspace, order.data) if "mountns" in order.controls else ()
    for text in (order.submission, order.cgroup, *order.raw, *order.closed, *inner):
        if len(text) > 1:  # shorter ones are the interpreter's own, one for all
            _blank(text)


def _blank(text: str) -> None:
    """Overwrite the characters of a string that was decoded from an order: they end the object, behind a head of its kind."""
    widest = max(map(ord, text))
    head = sys.getsizeof("") - 1 if widest < 0x80 else sys.getsizeof("\x80") - 2 if widest < 0x100 else sys.getsizeof("\u0100") - 4
    ctypes.memset(id(text) + head, 0, len(text) * (1 if widest < 0x100 else 2 if widest < 0x1_0000 else 4))
