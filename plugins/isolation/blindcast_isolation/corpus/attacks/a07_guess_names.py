"""Hunts for other runs, other submissions and the next window in every folder that can be read, at every anchor (A-07).

Names come from folders that can be listed, and from a counter, the clock, process ids and the run's id as far as it shows. All of it
goes past the hook. Against it: nothing is staged in files (I-20, I-43), nobody else's folder is there.
Incident: judge0 CVE-2024-28185, files that host and guest share.

It opens only what the court made, the planted world and files named after it: what else lies on a host is nobody's business.
"""

import ctypes
import itertools
import os
import re
import stat
import time

from toolbox import HERE, TARGETS, attempt, libc, number, syscall

AT_FDCWD = -100
OPENAT = number(257, 56)
READ = number(0, 63)
GETDENTS64 = number(217, 61)
FOLDERS = ("/submission", "/data", "/workspace", "/tmp", "/var/tmp", "/dev/shm", "/run/lock", "/run/blindcast")
WORLD = os.path.commonpath([TARGETS["home"], TARGETS["raw_root"]])
OURS = (WORLD + os.sep, "/submission/", "/data/", "/workspace/", "/run/blindcast/")
WANTED = re.compile(r"\.(json|jsonl|parquet|feather|arrow|npy|npz|csv|sqlite|db|pkl|bin|py)$|ledger|truth|commit|window|score|reveal", re.I)
SKIPPED = re.compile(r"/(proc|sys|usr|lib|lib64|bin|sbin|dev/pts|python3[^/]*|site-packages|\.pyenv|venv|__pycache__)(/|$)")
FILES = 24
LENGTH = 120
PATIENCE_S = 0.03
KEPT = ctypes.create_string_buffer(1 << 15)


def names_in(folder):
    """(name, is a folder) of everything in a folder, by numbers alone; nothing where it cannot be read."""
    try:
        fd = syscall(OPENAT, AT_FDCWD, os.fsencode(folder), os.O_RDONLY | os.O_DIRECTORY, 0)
    except OSError:
        return []
    found = []
    try:
        while (count := syscall(GETDENTS64, fd, KEPT, len(KEPT))) and len(found) < 2_000:
            at, data = 0, KEPT.raw[:count]
            while at < count:
                length = int.from_bytes(data[at + 16 : at + 18], "little")
                found.append((os.fsdecode(data[at + 19 : at + length].split(b"\0")[0]), data[at + 18] == 4))
                at += length
    except OSError:
        pass
    finally:
        os.close(fd)
    return [(name, is_folder) for name, is_folder in found if name not in (".", "..")]


def read(path):
    """The first bytes of a file; empty where it cannot be read."""
    kept = ctypes.create_string_buffer(LENGTH)
    try:
        fd = syscall(OPENAT, AT_FDCWD, os.fsencode(path), os.O_RDONLY | os.O_NONBLOCK, 0)
    except OSError:
        return b""
    try:
        count = syscall(READ, fd, kept, LENGTH)
        return kept.raw[:count]
    except OSError:
        return b""
    finally:
        libc.close(fd)


def hunt(folders, depth=5):
    """The files below the folders that may hold what a predictor must not see, breadth first, for a short time."""
    until, found, places = time.monotonic() + PATIENCE_S, [], [(folder, 0) for folder in folders]
    seen = {HERE}
    while places and time.monotonic() < until and len(found) < FILES:
        folder, level = places.pop(0)
        if folder in seen or SKIPPED.search(folder):
            continue
        seen.add(folder)
        for name, is_folder in names_in(folder):
            path = os.path.join(folder, name)
            if is_folder and level < depth:
                places.append((path, level + 1))
            elif not is_folder and WANTED.search(name) and is_ours(path):
                found.append(path)
    return told(found)


def is_ours(path):
    """Whether the court or its stage made it, and it is not of this submission."""
    real = os.path.realpath(path)
    named = "blindcast" in os.path.basename(real) or "/memfd:" in real
    return not real.startswith(HERE + os.sep) and (real.startswith(OURS) or named)


def told(paths):
    """What stands in those of the paths that can be read."""
    loot = [(path, data) for path in paths if is_ours(path) and (data := read(path))]
    return ascii(loot[:FILES])[:1_000] if loot else None


def above():
    """The folders above the submission's own: siblings lie there where submissions are staged side by side."""
    places, folder = [], HERE
    while folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
        places.append(folder)
    return hunt(places[:3], 3)


def homes():
    home = os.environ.get("HOME", "/")
    guesses = [os.environ.get("BLINDCAST_HOME", "/nonexistent"), f"{home}/.blindcast", f"{home}/.local/share/blindcast"]
    return hunt([*guesses, TARGETS["home"], os.path.dirname(TARGETS["home"]), TARGETS["other_run"], TARGETS["sibling"]])


def files_of(folders):
    return [
        f"{folder}/{name}"
        for folder in folders
        for name in ("predictor.py", "run.json", "commits.parquet", "commits.jsonl", "targets.json")
    ]


def counter():
    stem, places = HERE.rstrip("0123456789"), []
    last = HERE[len(stem) :]
    for i in range(40):
        places.append(f"{stem}{i:0{len(last)}d}")
        places += [f"{place}{i}" for place in ("/submission-", "/tmp/run-", "/tmp/submission", "/run/blindcast/6")]
    return told(files_of(places))


def clock():
    """Runs are named by the second at which they begin."""
    now, places = int(time.time()), []
    for second, place in itertools.product(range(now - 4, now + 2), (f"{TARGETS['home']}/runs", "/tmp", "/var/tmp", "/dev/shm")):
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(second))
        places += [f"{place}/{stamp}", f"{place}/blindcast-{second}", f"{place}/{stamp}-{os.getpid():06x}"]
    return told(files_of(places))


def process_ids():
    """What other processes stand in, hold open or have mapped."""
    pids = sorted({1, os.getppid(), TARGETS["server_pid"], TARGETS["zygote_pid"], *range(1, 24)} - {0, os.getpid()})
    places = [f"/proc/{pid}/{door}" for pid in pids for door in ("cwd", "root" + TARGETS["home"], "root" + TARGETS["raw_root"])]
    files = [f"/proc/{pid}/fd/{fd}" for pid in pids for fd in range(3, 24)]
    files += [f"{place}/{pid}.{kind}" for place in ("/tmp", "/run", "/dev/shm") for pid in pids for kind in ("json", "sock", "arrow")]
    deep = [f"{place}/{name}" for place in places for name, _ in names_in(place)[:20]]
    return told([path for path in (*deep, *files) if is_file(path)])


def is_file(path):
    """Whether it is a file: a pipe or a terminal would keep whoever reads it waiting."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False


def run_id():
    """The run's own name as the folder shows it, elsewhere: its record, its staged windows."""
    name, window = os.path.basename(HERE), 0
    places = [
        f"{place}/{name}"
        for place in (f"{TARGETS['home']}/runs", "/run/blindcast", "/tmp", "/var/tmp", "/dev/shm", os.path.dirname(HERE) + "/..")
    ]
    windows = [
        f"{place}/window-{k}.{kind}" for place in (*places, HERE, "/data") for k in range(window, window + 8) for kind in ("parquet", "npy")
    ]
    return told([*files_of(places), *windows])


def next_window():
    """Whatever was made or changed in the last minute, wherever it can be listed."""
    now, fresh = time.time(), []
    for folder in (
        *FOLDERS,
        os.path.dirname(HERE),
        TARGETS["marker"],
        TARGETS["raw_root"],
        TARGETS["home"],
        os.path.dirname(TARGETS["home"]),
    ):
        for name, is_folder in names_in(folder)[:200]:
            path = os.path.join(folder, name)
            try:
                if not is_folder and is_ours(path) and is_file(path) and now - os.stat(path).st_mtime < 60:
                    fresh.append(path)
            except OSError:
                continue
    return told(fresh[:FILES])


def shared_memory():
    return hunt(["/dev/shm", "/run/shm", "/dev/mqueue", "/dev/hugepages"])


def mapped():
    """Files behind its own memory, by the kernel's links to them."""
    return told([f"/proc/self/map_files/{name}" for name, _ in names_in("/proc/self/map_files")][:200])


def descriptors():
    return told([path for path in (f"/proc/self/fd/{fd}" for fd in range(3, 64)) if is_file(path)])


ACTS = {
    "folders": lambda: hunt(FOLDERS),
    "above": above,
    "homes": homes,
    "counter": counter,
    "clock": clock,
    "process_ids": process_ids,
    "run_id": run_id,
    "next_window": next_window,
    "shared_memory": shared_memory,
    "mapped": mapped,
    "descriptors": descriptors,
}


class Predictor:
    def predict(self, view):
        for name, act in ACTS.items():
            attempt(name, act)
        return 0.5
