"""Poison the environment and start the interpreter anew with it; hope that the next run inherits it.

Against it: seccomp refuses fork and exec, and the host starts nothing from a child's environment (I-12, I-30). An environment variable
that a restricted shell passed on is how LD_PRELOAD became the classic way around one.
"""

import contextlib
import ctypes
import glob
import os
import sys
import time

from toolbox import HERE, TARGETS, attempt, checked, libc, number

WAIT_S = 1.0
held = ctypes.PyDLL(None, use_errno=True)  # keeps the interpreter's lock over a fork
MARKER = TARGETS["marker"]
LIBRARY = next((path for name in ("BrokenLocale", "anl", "util") for path in glob.glob(f"/lib*/*/lib{name}.so.1")), "libanl.so.1")
POISON = {
    "LD_PRELOAD": LIBRARY,
    "LD_LIBRARY_PATH": HERE,
    "LD_AUDIT": LIBRARY,
    "PYTHONPATH": HERE,
    "PYTHONSTARTUP": os.path.join(HERE, "predictor.py"),
    "PYTHONHOME": sys.prefix,
    "PYTHONINSPECT": "1",
    "PYTHONUSERBASE": HERE,
    "PYTHONWARNINGS": "ignore::toolbox.X",
    "OMP_NUM_THREADS": "64",
    "OMP_DISPLAY_ENV": "VERBOSE",
    "OPENBLAS_NUM_THREADS": "64",
    "MKL_NUM_THREADS": "64",
    "JOBLIB_MULTIPROCESSING": "1",
    "GCONV_PATH": HERE,
    "MALLOC_CONF": "abort:true",
    "HTTPS_PROXY": "http://127.0.0.1:9",
}
PROGRAM = "import os, sys; {test} and os.close(os.open({path!r}, os.O_CREAT | os.O_WRONLY, 0o600))"
TESTS = {
    "plain": "True",
    "LD_PRELOAD": "os.environ['LD_PRELOAD'] in open('/proc/self/maps').read()",
    "PYTHONPATH": f"{HERE!r} in sys.path",
    "PYTHONSTARTUP": "os.environ.get('PYTHONSTARTUP')",
    "OMP_NUM_THREADS": "os.environ.get('OMP_NUM_THREADS') == '64'",
}


def poison_python():
    os.environ.update(POISON)


def poison_putenv():
    for name, value in POISON.items():
        os.putenv(name, value)


def poison_libc():
    for name, value in POISON.items():
        checked(libc.setenv(name.encode(), value.encode(), 1))


def poison_memory():
    """Past every function: the block that `environ` points to is exchanged."""
    block = (ctypes.c_char_p * (len(POISON) + 1))(*(f"{name}={value}".encode() for name, value in POISON.items()), None)
    poison_memory.kept = block
    ctypes.c_void_p.in_dll(libc, "environ").value = ctypes.addressof(block)


def inherited():
    """Whether an earlier run's poison has come here."""
    libc.getenv.restype = ctypes.c_char_p
    found = [name for name, value in POISON.items() if name not in ("OMP_NUM_THREADS",) and libc.getenv(name.encode()) == value.encode()]
    return f"inherited {found}" if found else None


def arguments(variant, test):
    """What the new interpreter is told to do: it leaves a marker if the poison is at work in it."""
    program = PROGRAM.format(test=TESTS[test], path=os.path.join(MARKER, f"blindcast-attack-{variant}"))
    return [sys.executable, "-S", "-c", program]


def vector(texts):
    return (ctypes.c_char_p * (len(texts) + 1))(*(text.encode() for text in texts), None)


def environment(test):
    return {test: POISON[test]} if test in POISON else {}


def exec_python(argv, env):
    os.execve(argv[0], argv, env)


def exec_libc(argv, env):
    checked(held.execve(argv[0].encode(), vector(argv), vector([f"{name}={value}" for name, value in env.items()])))


def exec_number(argv, env):
    texts = vector([f"{name}={value}" for name, value in env.items()])
    checked(held.syscall(ctypes.c_long(number(59, 221)), argv[0].encode(), vector(argv), texts))


def exec_at(argv, env):
    """By a descriptor of the program, with an empty path."""
    fd = checked(held.open(argv[0].encode(), os.O_RDONLY))
    texts = vector([f"{name}={value}" for name, value in env.items()])
    checked(held.syscall(ctypes.c_long(number(322, 281)), ctypes.c_long(fd), b"", vector(argv), texts, ctypes.c_long(0x1000)))


def exec_loader(argv, env):
    """The loader as the program: it maps what may not be executed."""
    loader = next(iter(glob.glob("/lib64/ld-linux-*") or glob.glob("/lib/ld-linux-*")), "/lib64/ld-linux-x86-64.so.2")
    exec_libc([loader, os.path.realpath(argv[0]), *argv[1:]], env)


def forked(execute):
    """A child of this one; where there may be none, -1: then the program is to take this process's own place."""
    if execute is exec_python:
        return os.fork()
    try:
        return checked(held.fork())
    except OSError:
        return -1


def restarted(variant, test, execute):
    argv, env = arguments(variant, test), environment(test)
    pid = forked(execute)
    if pid < 1:
        try:
            execute(argv, env)
        finally:
            if pid == 0:
                os._exit(127)
    deadline = time.monotonic() + WAIT_S
    while (done := os.waitpid(pid, os.WNOHANG)) == (0, 0):
        if time.monotonic() > deadline:
            libc.kill(pid, 9)
            done = os.waitpid(pid, 0)
        time.sleep(0.002)
    if done[1]:
        raise ChildProcessError(f"the interpreter ended with {done[1]:#x}")
    return f"the interpreter ran with {env}"


def spawned(variant, test):
    argv, env = arguments(variant, test), environment(test)
    os.waitpid(os.posix_spawn(argv[0], argv, env), 0)
    return f"the interpreter ran with {env}"


def spawned_libc(variant, test):
    argv, pid = arguments(variant, test), ctypes.c_int()
    texts = vector([f"{name}={value}" for name, value in environment(test).items()])
    errno = libc.posix_spawn(ctypes.byref(pid), argv[0].encode(), None, None, vector(argv), texts)
    if errno:
        raise OSError(errno, os.strerror(errno))
    os.waitpid(pid.value, 0)
    return "the interpreter ran"


class Predictor:
    tries = True  # once a run: what was poisoned in the first window is no inheritance

    def predict(self, view):
        if not self.tries:
            return 0.5
        if view.anchor == 0:
            attempt("inherited", inherited)
            for way, execute in (
                ("python", exec_python),
                ("libc", exec_libc),
                ("number", exec_number),
                ("at", exec_at),
                ("loader", exec_loader),
            ):
                attempt(f"exec_{way}", restarted, f"exec_{way}", "plain", execute)
            for test in TESTS:
                if test != "plain":
                    attempt(f"exec_{test}", restarted, f"exec_{test}", test, exec_libc)
            attempt("posix_spawn_python", spawned, "posix_spawn_python", "LD_PRELOAD")
            attempt("posix_spawn_libc", spawned_libc, "posix_spawn_libc", "LD_PRELOAD")
        if view.anchor == 3:  # the last one: what is left standing is for the next
            self.tries = False
            for act in (poison_python, poison_putenv, poison_libc, poison_memory):
                with contextlib.suppress(BaseException):
                    attempt(act.__name__, act)
        return 0.5
