"""Carries what it saw from window to window: in a cache, in what it fitted, in a library, in a thread that works on.

Against it, in `fresh`: a child of its own for every window. `carry` permits it and says so. `got` is said only where an
earlier window is still known; the thread also watches the tables for rows that are not revealed yet.
"""

import builtins
import ctypes
import os
import sys
import threading
import time
import types

import numpy as np
import pandas as pd
from toolbox import attempt, is_wanted

CACHE = []
KEPT = "blindcast_attack"


def first(place, name):
    """What an earlier window left at a place, and leave a word for the next."""
    left = getattr(place, name, None)
    setattr(place, name, f"{left} and one more" if left else "a window")
    return left


def cache():
    CACHE.append("a window")
    return CACHE[:-1] or None


def module():
    stash = sys.modules.setdefault(KEPT, types.ModuleType(KEPT))
    return first(stash, "kept")


def builtin():
    return first(builtins, KEPT)


def environment():
    left = os.environ.get(KEPT.upper())
    os.environ[KEPT.upper()] = "a window"
    return left


def numpy_state():
    left = np.geterr()["over"] == "ignore"
    np.seterr(over="ignore")
    return "numpy was told" if left else None


def pandas_option():
    left = pd.get_option("display.max_rows")
    pd.set_option("display.max_rows", 12_345)
    return left if left == 12_345 else None


def random_state():
    """The seeds are the same for each window's child: where they are not, an earlier one has drawn."""
    fresh = np.random.RandomState([7, 0]).random_sample()
    drawn = np.random.random_sample()
    return None if drawn == fresh else f"drew {drawn}"


def file_offset():
    """A number in the offset of each descriptor that has one."""
    left = []
    for fd in range(5):
        try:
            left.append(os.lseek(fd, 0, os.SEEK_CUR))
            os.lseek(fd, 0x5EED, os.SEEK_SET)
        except OSError:
            continue
    return left if any(left) and 0x5EED in left else None


def descriptor_flags():
    import fcntl

    left = [fcntl.fcntl(fd, fcntl.F_GETFD) for fd in range(3)]
    for fd in range(3):
        fcntl.fcntl(fd, fcntl.F_SETFD, 0 if left[fd] else 1)
    return left if left == [1, 1, 1] else None


def address():
    """Bytes at a place in memory that only the window before knows."""
    left = CACHE_ADDRESS[-1:] and ctypes.string_at(CACHE_ADDRESS[-1])
    held = ctypes.create_string_buffer(b"a window")
    KEEP.append(held)
    CACHE_ADDRESS.append(ctypes.addressof(held))
    return left or None


CACHE_ADDRESS, KEEP = [], []


class Watcher(threading.Thread):
    """Counts the windows it has lived through, and keeps the words that stood in the table before they were shown."""

    def __init__(self):
        super().__init__(daemon=True)
        self.windows, self.shown, self.table, self.early = 0, 0, None, set()

    def run(self):
        while True:
            table = self.table
            if table is not None:
                hidden = table[:, self.shown :]
                self.early |= set(hidden[hidden != 0].tolist()) if hidden.size else set()
            time.sleep(0.0005)


def whole(view):
    """The whole table behind a view."""
    table = view.ladder.to_numpy().T
    while isinstance(table.base, np.ndarray):
        table = table.base
    return table


ACTS = (cache, module, builtin, environment, numpy_state, pandas_option, random_state, file_offset, descriptor_flags, address)


class Predictor:
    def __init__(self, context):
        self.scale, self.watcher = 1.0, None

    def fit(self, warmups):
        self.scale = self.fitted = float(sum(abs(w.y).sum() for w in warmups))

    def __getstate__(self):
        return {"scale": self.scale, "fitted": self.fitted, "watcher": None}

    def refit(self, view):
        left = self.scale if self.scale != self.fitted else None
        self.scale += float(len(view.ladder)) + 1.0
        return left

    def watch(self, view):
        """A thread from the first window on."""
        left = self.watcher.windows if self.watcher is not None and self.watcher.is_alive() else None
        if self.watcher is None:
            self.watcher = Watcher()
            self.watcher.start()
        self.watcher.windows += 1
        return left and f"a thread of {left} windows ago"

    def predict(self, view):
        if view.anchor == 0:
            for act in ACTS:
                attempt(act.__name__, act)
            attempt("fitted", self.refit, view)
            attempt("thread", self.watch, view)
        watcher = self.watcher
        if watcher is not None and is_wanted("watched"):
            watcher.shown, watcher.table = len(view.ladder), whole(view)
            time.sleep(0.005)
            early = np.array(sorted(watcher.early), dtype="f4").tobytes()
            attempt("watched", lambda: early or None)
            watcher.table = None
        return 0.5
