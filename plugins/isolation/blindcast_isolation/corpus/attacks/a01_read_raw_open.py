"""Opens raw files, the ledger and another run's folder with Python's own calls (A-01).

Against it: modes, mounts, Landlock; the hook names the path and the rule. Incident: runc CVE-2024-21626, a working folder or a
descriptor left open was the whole host.
"""

import codecs
import fileinput
import io
import mmap
import os
import pathlib
import shutil

import numpy as np
from toolbox import TARGETS, attempt

LENGTH = 300
RAW = TARGETS["raw_file"]


def by_os_open():
    fd = os.open(RAW, os.O_RDONLY)
    try:
        return os.read(fd, LENGTH)
    finally:
        os.close(fd)


def by_mmap():
    with open(RAW, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as memory:
        return memory[:LENGTH]


def by_folder_descriptor():
    folder = os.open(TARGETS["raw_root"], os.O_RDONLY | os.O_DIRECTORY)
    try:
        fd = os.open(os.path.basename(RAW), os.O_RDONLY, dir_fd=folder)
        return os.read(fd, LENGTH)
    finally:
        os.close(folder)


def by_path_descriptor():
    fd = os.open(RAW, os.O_PATH)
    with open(f"/proc/self/fd/{fd}", "rb") as file:
        return file.read(LENGTH)


def by_working_folder():
    before = os.getcwd()
    os.chdir(TARGETS["raw_root"])
    try:
        return read(os.path.basename(RAW))
    finally:
        os.chdir(before)


def by_copy():
    kept = io.BytesIO()
    with open(RAW, "rb") as file:
        shutil.copyfileobj(file, kept)
    return kept.getvalue()[:LENGTH]


def by_sendfile():
    with open(RAW, "rb") as file:
        count = os.sendfile(1, file.fileno(), 0, LENGTH)
    os.write(1, b"\n")
    return f"{count} bytes to stdout"


def read(path):
    with open(path, "rb") as file:
        return file.read(LENGTH)


def all_below(folder):
    """The first bytes of every file below a folder."""
    found = [read(os.path.join(place, name)) for place, _, names in os.walk(folder, onerror=refuse) for name in sorted(names)[:20]]
    return b"\n".join(found) or None


def refuse(error):
    raise error


def other_run():
    folder = TARGETS["other_run"]
    return b"\n".join(read(os.path.join(folder, name)) for name in os.listdir(folder))


def by_fileinput():
    with fileinput.input([RAW]) as lines:
        return next(iter(lines))


DOORS = {
    "open": lambda: read(RAW),
    "open_bytes": lambda: read(os.fsencode(RAW)),
    "os_open": by_os_open,
    "pathlib": lambda: pathlib.Path(RAW).read_bytes(),
    "memmap": lambda: bytes(np.memmap(RAW, mode="r"))[:LENGTH],
    "mmap": by_mmap,
    "fileio": lambda: io.FileIO(RAW).read(LENGTH),
    "open_code": lambda: io.open_code(RAW).read(LENGTH),
    "codecs": lambda: codecs.open(RAW, encoding="latin-1").read(LENGTH),
    "fileinput": by_fileinput,
    "opener": lambda: open(RAW, "rb", opener=lambda path, flags: os.open(path, flags)).read(LENGTH),
    "copy": by_copy,
    "sendfile": by_sendfile,
    "folder_descriptor": by_folder_descriptor,
    "path_descriptor": by_path_descriptor,
    "working_folder": by_working_folder,
    "dotdot": lambda: read(TARGETS["raw_dotdot"]),
    "link": lambda: read(TARGETS["raw_link"]),
    "proc_root": lambda: read(f"/proc/self/root{RAW}"),
    "proc_server": lambda: read(f"/proc/{TARGETS['server_pid']}/root{RAW}"),
    "proc_cwd": lambda: read(f"/proc/self/cwd/{os.path.relpath(RAW)}"),
    "ledger": lambda: read(TARGETS["ledger"]),
    "other_run": other_run,
    "sibling": lambda: read(os.path.join(TARGETS["sibling"], "predictor.py")),
    "home": lambda: all_below(TARGETS["home"]),
}


class Predictor:
    def predict(self, view):
        if view.anchor == 0:
            for name, act in DOORS.items():
                attempt(name, act)
        return 0.5
