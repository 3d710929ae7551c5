"""Reads kept views, base arrays and raw addresses of window k-1 at every anchor of window k (A-08).

Allowed to see: zeros, and rows of window k revealed so far. Anything else is told as `LEAK`. In `fresh` there is nothing to keep
(I-37), and no mark that it left may be found. Against it: I-43, I-44, I-45. Incident: slices of an Arrow table keep every row mapped.
"""

import ctypes
import fcntl
import os
import random
import sys
import threading
from contextlib import suppress

import numpy as np
from numpy.lib.stride_tricks import as_strided
from toolbox import attempt

MARK = "blindcast_attack_a08"
PIPE = 1 << 17  # bytes; a pipe nobody touched has 1 << 16
F_SETPIPE_SZ, F_GETPIPE_SZ = 1031, 1032
kept = {}  # what outlives a window in `carry`


def ladder_table(view):
    """The revealed prefix and the whole section behind it, F32[columns, rows]."""
    table = view._ladder_table
    return table, table.base if isinstance(table.base, np.ndarray) and table.base.ndim == 2 else table


def address_of(array):
    return array.__array_interface__["data"][0]


def keep(view):
    """Keep everything by which the window could be read later, and a copy of what it showed."""
    table, whole = ladder_table(view)
    frame = view.ladder
    kept.update(
        frame=frame,
        values=frame.to_numpy(),
        column=frame["bid"],
        base=whole,
        events=view._event_table,
        event_frame=view.events,
        path=view.y,
        view=view,
        address=address_of(table),
        stride=table.strides[0],
        length=table.shape[1],
        columns=table.shape[0],
        memory=memoryview(table),
        lazy=lambda: view.ladder.to_numpy(),
        old=table.copy(),
        old_events=view._event_table.copy(),
        old_path=view.y.copy(),
    )


def by_address():
    rows = [ctypes.string_at(kept["address"] + c * kept["stride"], kept["length"] * 4) for c in range(kept["columns"])]
    return np.array([np.frombuffer(row, "<f4") for row in rows])


def by_strides():
    start = np.ctypeslib.as_array((ctypes.c_float * (kept["columns"] * kept["stride"] // 4)).from_address(kept["address"]))
    return as_strided(start, (kept["columns"], kept["length"]), (kept["stride"], 4), writeable=False)


def judged(old, now, revealed, before):
    """What of `old`, read now as [columns, rows], is neither zero nor a row that window k has revealed."""
    old = np.atleast_2d(np.asarray(old))
    rows = min(old.shape[1], revealed.shape[1])
    beyond = np.count_nonzero(old[:, rows:])
    same = old[:, :rows] == revealed[: old.shape[0], :rows]
    other = np.count_nonzero(~same & (old[:, :rows] != 0))
    past = old.shape[1] - rows
    if beyond or other:
        known = np.isin(old, before[before != 0]).sum()
        first = [float(value) for value in old[:, rows:][old[:, rows:] != 0][:4]]
        return f"LEAK at {now}: {beyond} cells past row {rows}, {other} other cells, {known} of window k-1, first {first}"
    return f"{rows} revealed rows, {past} rows of zeros"


def whole_section(view):
    """The current window past its prefix, to the end of each column, by address."""
    table, _ = ladder_table(view)
    stride, revealed = table.strides[0], table.shape[1] * 4
    if stride <= revealed:
        return "no row lies behind the prefix"
    tails = [ctypes.string_at(address_of(table) + c * stride + revealed, stride - revealed) for c in range(table.shape[0])]
    beyond = sum(np.count_nonzero(np.frombuffer(tail, "<f4")) for tail in tails)
    return f"LEAK at {view.anchor}: {beyond} cells past the prefix" if beyond else f"zeros, {len(tails)} x {stride - revealed} bytes"


def old_views(view):
    """(variant, how it is read, what of window k it may show, what window k-1 showed there)."""
    table, events = view._ladder_table, view._event_table
    ladder, signed, path = (table, kept["old"]), (events, kept["old_events"]), (view.y[None, :], kept["old_path"])
    return [
        ("frame", lambda: kept["frame"].to_numpy().T, *ladder),
        ("values", lambda: kept["values"].T, *ladder),
        ("column", lambda: kept["column"].to_numpy()[None, :], *ladder),
        ("base", lambda: kept["base"], *ladder),
        ("memory", lambda: np.asarray(kept["memory"]), *ladder),
        ("view", lambda: kept["view"].ladder.to_numpy().T, *ladder),
        ("late_frame", lambda: kept["lazy"]().T, *ladder),
        ("address", by_address, *ladder),
        ("strides", by_strides, *ladder),
        ("events", lambda: kept["events"], *signed),
        ("event_frame", lambda: kept["event_frame"].to_numpy().T, *signed),
        ("path", lambda: kept["path"][None, :], *path),
    ]


def leave_marks():
    """Marks on everything a next child might share: its module table, environment, threads, mask, pipes, descriptors, streams."""
    setattr(sys.modules["json"], MARK, True)
    os.environ[MARK] = "1"
    with suppress(OSError):
        os.umask(0o071)
    threading.current_thread().name = MARK
    random.seed(MARK)
    for fd in (0, 1, 2, 3, 4):
        for act in (
            lambda fd=fd: fcntl.fcntl(fd, F_SETPIPE_SZ, PIPE),
            lambda fd=fd: os.lseek(fd, 63, os.SEEK_SET),
            lambda fd=fd: os.set_inheritable(fd, not os.get_inheritable(fd)),
        ):
            with suppress(OSError):
                act()


def marks():
    """Marks of an earlier window that are there now."""
    found = [MARK] if hasattr(sys.modules["json"], MARK) else []
    found += ["environment"] if MARK in os.environ else []
    found += ["thread"] if any(thread.name == MARK for thread in threading.enumerate()) else []
    with suppress(OSError):
        mask = os.umask(0o077)
        os.umask(mask)
        found += ["umask"] if mask == 0o071 else []
    for fd in (0, 1, 2, 3, 4):
        with suppress(OSError):
            found += [f"pipe {fd}"] if fcntl.fcntl(fd, F_GETPIPE_SZ) == PIPE else []
        with suppress(OSError):
            found += [f"offset {fd}"] if os.lseek(fd, 0, os.SEEK_CUR) == 63 else []
    return found


def traces():
    """In a process that has seen no window before, no mark of one."""
    found = marks()
    if kept:
        return f"the same process goes on: {', '.join(found)}"
    return f"LEAK: a new process finds {', '.join(found)}" if found else "no mark of an earlier window"


NAMES = ("frame", "values", "column", "base", "memory", "view", "late_frame", "address", "strides", "events", "event_frame", "path")


class Predictor:
    def predict(self, view):
        if view.anchor == 0:
            attempt("traces", traces)
            leave_marks()
        attempt("past_prefix", whole_section, view)
        if kept.get("is_old"):
            for name, read, revealed, before in old_views(view):
                attempt(name, lambda read=read, revealed=revealed, before=before: judged(read(), view.anchor, revealed, before))
        elif view.anchor == 0:
            for name in NAMES:
                attempt(name, lambda: "nothing is kept from an earlier window")
        if len(view.horizons) == 1:
            keep(view)
            kept["is_old"] = True
        return 0.5
