"""Sources of predictors that the isolation checks run in children: honest ones, and ones that try what they must not."""

from __future__ import annotations

from typing import Final

__all__ = ["CORES", "CROWD", "HONEST", "LEAVES_MARKS", "OUTLIVES", "REPORTS", "SHOUTS", "STUBBORN"]

HONEST: Final = """
import numpy as np

class Predictor:
    def __init__(self, context):
        self.random = np.random.default_rng(context.seed)
        self.seen = 0

    def fit(self, warmups):
        self.scale = float(np.mean([abs(w.ladder["p"]).sum() for w in warmups]))

    def observe(self, view):
        self.seen += len(view.ladder) + len(view.events)

    def predict(self, view):
        if view.anchor == 2:
            return None
        lean = np.tanh(view.ladder["p"].to_numpy(dtype=float).sum() / (1 + self.seen + self.scale) + 0.1 * self.random.uniform())
        return lean * np.linspace(1, 0.5, len(view.horizons))
"""

# Trees that ask for THREADS threads: the curves may not depend on how many there are.
CROWD: Final = """
import lightgbm as lgb
import numpy as np

class Predictor:
    def fit(self, warmups):
        x = np.concatenate([w.ladder[["p", "q"]].to_numpy() for w in warmups])
        y = np.concatenate([np.tanh(w.ladder["t"].to_numpy()) for w in warmups])
        self.model = lgb.LGBMRegressor(n_estimators=20, num_leaves=7, min_child_samples=5, random_state=0, n_jobs=THREADS, verbose=-1,
                                       deterministic=True, force_row_wise=True).fit(x, y)

    def predict(self, view):
        x = view.ladder[["p", "q"]].to_numpy()
        return float(np.clip(self.model.predict(x).mean(), -1, 1)) if len(x) else 0.0
"""

# Says what it finds around it, as JSON, before the first answer: what is open, its environment, and whether what it tried was refused.
REPORTS: Final = """
import json, os

def refused(act, words=""):
    try:
        act()
    except OSError as error:
        return words in str(error)
    return False

def opened():
    found = []
    for fd in range(256):
        try:
            os.fstat(fd)
        except OSError:
            continue
        found.append(fd)
    return found

def open_by_call(path):
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.open(path, os.O_RDONLY | os.O_DIRECTORY) == -1:
        raise OSError(ctypes.get_errno(), "refused")

def witnesses():
    return {
        "mountns": not os.path.exists("/etc/passwd"),
        "landlock": refused(lambda: open_by_call(b"/"), "[Errno 13]"),
        "hook": refused(lambda: open("/etc/shadow"), "isolation:"),
    }

class Predictor:
    def predict(self, view):
        if view.anchor == 0:
            print(json.dumps({"fds": opened(), "env": dict(os.environ), "holds": witnesses()}))
        return 0.0
"""

# Adds up in as many parts as it has cores, in single precision: the curves tell how many those were.
CORES: Final = """
import os
import numpy as np

class Predictor:
    def predict(self, view):
        cores = CORES or len(os.sched_getaffinity(0))
        values = np.random.default_rng(1).normal(size=100_003).astype("f4")
        parts = [np.cumsum(part)[-1] for part in np.array_split(values, cores)]
        return float(np.tanh(sum(parts, np.float32(0)) / 1e3))
"""

# Ignores every signal that can be ignored, and never answers the second question.
STUBBORN: Final = """
import signal, time

class Predictor:
    def predict(self, view):
        if view.anchor == 1:
            for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
                try:
                    signal.signal(number, signal.SIG_IGN)
                except (OSError, ValueError):
                    pass
            while True:
                time.sleep(60)
        return 0.0
"""

# Forks twice, with a session of its own, by each door in DOORS; the grandchild would live for a minute.
OUTLIVES: Final = """
import ctypes, os, time

def by_call():
    return os.fork()

def by_library():
    return ctypes.CDLL(None).fork()

def try_door(fork):
    try:
        pid = fork()
    except OSError:
        return
    if pid == 0:
        try:
            os.setsid()
            if fork() == 0:
                time.sleep(60)
        finally:
            os._exit(0)
    if pid > 0:
        os.waitpid(pid, 0)  # from here on the grandchild is on its own

class Predictor:
    def predict(self, view):
        if view.anchor == 0:
            for door in DOORS:
                try_door(globals()[door])
        return 0.5
"""

# Writes 1 GiB to its standard output, in pieces of 1 MiB.
SHOUTS: Final = """
import os

class Predictor:
    def predict(self, view):
        piece = b"x" * (1 << 20)
        for _ in range(1024):
            os.write(1, piece)
        return 0.5
"""

# Says +1 where it finds the mark of an earlier run, by each door in DOORS, else -1, and leaves its own.
MARK: Final = "blindcast-mark"
LEAVES_MARKS: Final = """
import ctypes, os

PLACES = [f"{folder}/blindcast-mark" for folder in ("/tmp", "/var/tmp", "/dev/shm", "/", "/workspace", "/submission", ".")]
KEY = 0x626C6E64

def file():
    found = any(os.path.exists(place) for place in PLACES)
    for place in PLACES:
        try:
            with open(place, "w") as mark:
                mark.write("here")
        except OSError:
            pass
    return found

def module():
    import math
    found = hasattr(math, "mark")
    math.mark = True
    return found

def shared_memory():
    from multiprocessing import shared_memory
    try:
        shared_memory.SharedMemory("blindcast-mark")
        return True
    except OSError:
        pass
    try:
        shared_memory.SharedMemory("blindcast-mark", create=True, size=64)
    except OSError:
        pass
    return False

def sysv():
    libc = ctypes.CDLL(None)
    found = libc.shmget(KEY, 0, 0) != -1
    libc.shmget(KEY, 64, 0o1000 | 0o666)
    return found

def keys():
    libc = ctypes.CDLL(None)
    name = ctypes.c_char_p(b"blindcast-mark")
    found = any(libc.syscall(250, 10, ring, ctypes.c_char_p(b"user"), name, 0) != -1 for ring in (-3, -4, -5))  # KEYCTL_SEARCH
    for ring in (-3, -4, -5):
        libc.syscall(248, ctypes.c_char_p(b"user"), name, ctypes.c_char_p(b"x"), 1, ring)  # add_key
    return found

class Predictor:
    def predict(self, view):
        if view.anchor == 0:
            self.found = [door for door in DOORS if globals()[door]()]
            print("found: " + ",".join(self.found))
        return 0.0
"""
