"""What the launcher asks of the zygote: one child, and how it is locked down. Between our own processes only."""

from __future__ import annotations

from typing import Final

import msgspec

__all__ = ["ENVIRONMENT", "Ending", "Order", "Started", "ending_of", "order_of"]

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


class Order(msgspec.Struct, frozen=True):
    """One child. `controls` are those to put in force, by their ids of I-01; a failing one ends the child."""

    task: str  # shim | probe
    submission: str  # of the host
    entry: str  # of the child
    buffer_bytes: int
    controls: tuple[str, ...]
    uid: int | None  # a slot's; None keeps the starter's
    cpu: int
    kill: str  # pidns | uid | orphans
    memory_mb: int
    threads: int
    open_files: int
    cpu_s: int
    binds: tuple[str, ...]  # read-only paths of the private root, each at its own path
    closed: tuple[str, ...]  # parents that a slot's uid may not pass (I-22)


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
