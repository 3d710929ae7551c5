"""A cheater: it looks for what has not been revealed, and follows it wherever it finds any.

It looks behind the arrays it is shown (`.base`), in the files it can open, and for a door to the network. It reads and never
writes. Where everything is shut it commits to 0.0, so its reward says how well the court was closed.
"""

from __future__ import annotations

import os
import socket
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

FOLDERS = (".", "..", "/tmp", "/orwd_data/markets")
FILES = 50  # files opened at most
SIZE = 64 << 20  # bytes of a file read at most
PORTS = (8080,)


class Predictor:
    """The direction of the future where it can be read, else 0.0. `found` names the holes it got through."""

    def __init__(self, context: Any) -> None:
        self.columns = list(context.columns)
        self.found: set[str] = set()
        self.paths: list[Any] = []

    def fit(self, warmups: Any) -> None:
        """Collect paths that some run left in a file, and try the network."""
        self.paths = [path for file in _files() for path in _stored_paths(file)]
        if _network():
            self.found.add("network")

    def predict(self, view: Any) -> Any:
        """The sign of the move to each remaining knot as far as it was found."""
        answer = self._behind_path(view) or self._in_files(view) or self._behind_ladder(view)
        return 0.0 if answer is None else answer

    def _behind_path(self, view: Any) -> list[float] | None:
        """The rest of y, where the array shown is the head of a longer one."""
        rest = _beyond(view.y)
        left = len(view.horizons)
        if rest is None or len(rest) < left or not np.any(rest[:left]):
            return None
        self.found.add("memory")
        return [float(move) for move in np.sign(rest[:left] - view.y[-1])]

    def _in_files(self, view: Any) -> list[float] | None:
        """The rest of y, where a stored path begins like the one shown."""
        shown = np.asarray(view.y, dtype=np.float64)
        for path in self.paths if view.anchor > 1 and np.any(shown) else ():
            if len(path) == view.anchor + 1 + len(view.horizons) and np.allclose(path[: len(shown)], shown, atol=1e-3):
                self.found.add("file")
                return [float(move) for move in np.sign(path[len(shown) :] - path[view.anchor])]
        return None

    def _behind_ladder(self, view: Any) -> float | None:
        """The direction of the newest book row that lies behind the prefix shown."""
        ladder = view.ladder.to_numpy()
        rows = _rows_beyond(ladder)
        if rows is None:
            return None
        at, low, high = (self.columns.index(name) for name in ("t", "lo_L1", "hi_L1"))
        ahead = rows[rows[:, at] >= view.clock_s]
        if not len(ahead):
            return None
        self.found.add("memory")
        now = float(view.y[-1])
        return float(np.sign(float(ahead[-1, low] + ahead[-1, high]) / 2 - now))


def _root(array: Any) -> Any:
    """The object that owns an array's memory."""
    while getattr(array, "base", None) is not None:
        array = array.base
    return array


def _memory(array: Any) -> Any:
    """All memory behind an array, as numbers of its kind from its first one on; None where it cannot be read."""
    try:
        owner = np.frombuffer(_root(array), dtype=np.uint8)
        start = array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
        whole = (len(owner) - start) // array.itemsize * array.itemsize
        return owner[start : start + whole].view(array.dtype) if 0 <= start <= len(owner) else None
    except (TypeError, ValueError, BufferError, AttributeError):
        return None


def _beyond(path: Any) -> Any:
    """What lies behind the end of a 1-D array."""
    memory = _memory(path)
    return None if memory is None or len(memory) <= len(path) else memory[len(path) :]


def _rows_beyond(table: Any) -> Any:
    """Rows behind the end of a table of rows, whichever way its memory runs."""
    memory = _memory(table)
    if memory is None or table.ndim != 2 or not table.shape[1]:
        return None
    row, column = (stride // table.itemsize for stride in table.strides)
    if row >= table.shape[1] * column > 0:  # row after row
        rows = len(memory) // row if row else 0
        whole = memory[: rows * row].reshape(rows, row)[:, : table.shape[1]]
    elif column > row > 0:  # column after column, each with room for later rows
        columns = table.shape[1]
        room = min(column, len(memory) - (columns - 1) * column)
        whole = np.stack([memory[place * column : place * column + room] for place in range(columns)], axis=1)
    else:
        return None
    later = whole[len(table) :]
    return later if len(later) else None


def _files() -> list[Path]:
    """Tables that this process may open, a few at most."""
    home = os.environ.get("BLINDCAST_HOME", os.path.expanduser("~/.blindcast"))
    found: list[Path] = []
    for folder in (*FOLDERS, os.path.join(home, "runs")):
        for pattern in ("*.parquet", "*/*.parquet"):
            try:
                here = islice(Path(folder).glob(pattern), FILES)
                found += [file for file in here if file.is_file() and file.stat().st_size <= SIZE]
            except OSError:
                continue
    return found[:FILES]


def _stored_paths(file: Path) -> list[Any]:
    """Every path in a table's column `y`."""
    import pandas as pd

    try:
        return [np.asarray(path, dtype=np.float64) for path in pd.read_parquet(file, columns=["y"])["y"]]
    except Exception:  # whatever a foreign file does, it is no path
        return []


def _network() -> bool:
    """Whether anything answers on this machine's own network."""
    for port in PORTS:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=0.2):
                return True
        except OSError:
            continue
    return False
