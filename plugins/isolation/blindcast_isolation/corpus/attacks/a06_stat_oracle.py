"""Asks for 10,000 guessed names and learns which of them exist, by the answer or by the time it took (A-06).

Half of the names exist. Each call prints one line `oracle|CALL|answers|BITS`, BITS being 10,000 bits in hex, name n00000 first
(1: it is there), or `all 0`, `all 1`, `as CALL` where they are those of an earlier call. The calls that are timed print a second
line `oracle|CALL|quarters|DIGITS|NS,NS,NS,NS`: two bits a name, in hex, the quarter of its time (the least of three), and the mean
of each quarter. A variant that has learned nothing from the answers is left to the judge, who knows the names.

Against it: mounts; a raw root of mode 0700 that another uid owns. Landlock does not hide names from `stat`.
"""

import ctypes
import os
import time

from toolbox import TARGETS, attempt, libc, number

NAMES = 10_000
FOLDER = os.fsencode(TARGETS["guess_folder"])
PATHS = [FOLDER + b"/n%05d" % i for i in range(NAMES)]
TEXTS = [os.fsdecode(path) for path in PATHS]
AT_FDCWD = -100
O_PATH = 0x200000
ENOENT = 2
KEPT = ctypes.create_string_buffer(512)
seen = {}


def python_stat(i):
    os.stat(TEXTS[i])


def python_readlink(i):
    try:
        os.readlink(TEXTS[i])
    except OSError as error:
        if error.errno == ENOENT:
            raise


def python_open(i):
    try:
        os.close(os.open(TEXTS[i], os.O_PATH))
    except PermissionError as error:
        if "isolation:" in str(error):
            raise


def by_python(act):
    """1 where the call did not say that there is no such file."""

    def ask(i):
        try:
            act(i)
        except OSError:
            return 0
        return 1

    return ask


def by_libc(name, *args):
    """A function of libc on the path; `args` follow it."""
    function = getattr(libc, name)

    def ask(i):
        return int(function(PATHS[i], *args) == 0 or ctypes.get_errno() != ENOENT)

    return ask


def by_number(call, *args):
    """A raw call; `...` stands for the path."""
    if call is None:
        return None
    plain, place = [ctypes.c_long(arg) if isinstance(arg, int) else arg for arg in args], args.index(...)
    head, tail, syscall, number = plain[:place], plain[place + 1 :], libc.syscall, ctypes.c_long(call)

    def ask(i):
        return int(syscall(number, *head, PATHS[i], *tail) != -1 or ctypes.get_errno() != ENOENT)

    return ask


def by_open_path(i):
    fd = libc.open(PATHS[i], O_PATH)
    if fd >= 0:
        libc.close(fd)
    return int(fd >= 0 or ctypes.get_errno() != ENOENT)


CALLS = {
    "stat": by_number(number(262, 79), AT_FDCWD, ..., KEPT, 0),
    "access": by_number(number(269, 48), AT_FDCWD, ..., 0),
    "readlink": by_number(number(267, 78), AT_FDCWD, ..., KEPT, 512),
    "statx": by_number(number(332, 291), AT_FDCWD, ..., 0, 0xFFF, KEPT),
    "stat_python": by_python(python_stat),
    "access_python": lambda i: int(os.access(TEXTS[i], os.F_OK)),
    "readlink_python": by_python(python_readlink),
    "open_python": by_python(python_open),
    "access_libc": by_libc("access", 0),
    "readlink_libc": by_libc("readlink", KEPT, 512),
    "open_libc": by_open_path,
    "statfs_libc": by_libc("statfs", KEPT),
    "chdir_libc": by_libc("chdir"),
    "getxattr_libc": by_libc("getxattr", b"user.x", KEPT, 512),
    "execve_raw": by_number(number(59, 221), ..., 0, 0),
}
TIMED = ("stat", "access", "readlink", "statx")
AT = {name: at % 4 for at, name in enumerate(CALLS)}  # the anchor at which it is asked


def hexed(values, bits):
    whole = 0
    for value in values:
        whole = whole << bits | value
    return f"{whole:0{NAMES * bits // 4}x}"


def line(*words):
    os.write(1, "|".join(("oracle", *words, "")).encode() + b"\n")


def timed(ask):
    """The least of three times for each name, ns."""
    clock, least = time.perf_counter_ns, [1 << 40] * NAMES
    for _ in range(3):
        for i in range(NAMES):
            start = clock()
            ask(i)
            least[i] = min(least[i], clock() - start)
    return least


def quarters(times):
    """(0..3 for each name by its time, the mean time of each quarter in ns); equal times fall where the order of names puts them."""
    order = sorted(range(NAMES), key=times.__getitem__)
    rank = [0] * NAMES
    for place, i in enumerate(order):
        rank[i] = place * 4 // NAMES
    means = [sum(times[i] for i in order[q * NAMES // 4 : (q + 1) * NAMES // 4]) * 4 // NAMES for q in range(4)]
    return rank, means


def learn(name):
    """Ask for all names; what the answers tell by themselves is the loot."""
    ask = CALLS[name]
    if ask is None:
        raise NotImplementedError("no such system call on this architecture")
    answers = [ask(i) for i in range(NAMES)]
    there = sum(answers)
    bits = hexed(answers, 1)
    same = next((other for other, known in seen.items() if known == bits), None)
    seen.setdefault(name, bits)
    line(name, "answers", f"all {answers[0]}" if there in (0, NAMES) else f"as {same}" if same else bits)
    if name in TIMED:
        rank, means = quarters(timed(ask))
        line(name, "quarters", hexed(rank, 2), ",".join(map(str, means)))
    return f"{there} of {NAMES} exist" if 0 < there < NAMES else None


class Predictor:
    asked = frozenset()

    def predict(self, view):
        wanted = [name for name, anchor in AT.items() if anchor == view.anchor and name not in self.asked]
        for name in wanted:  # in the first window alone: it is long
            attempt(name, learn, name)
        self.asked = self.asked.union(wanted)
        return 0.5
