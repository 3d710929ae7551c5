"""Fork without end, as far as a test may: 200 processes that leave the group and live a second, then wait for the deadline among them.

Against it: seccomp; behind it the limit of processes, cgroup pids and the kill order (I-60, I-70). Group kills miss children that called
setsid: three of three in a trial, and Bottle's judges before.
"""

import contextlib
import ctypes
import os
import time

from toolbox import TARGETS, attempt, checked, is_wanted, number

held = ctypes.PyDLL(None, use_errno=True)  # keeps the interpreter's lock over a fork
MOST = 200
LIVES_S = 1.0
SIGCHLD = 17


def fork_python():
    return os.fork()


def fork_libc():
    return checked(held.fork())


def fork_number():
    """fork(2) where there is one, else the clone(2) that stands for it."""
    if number(57) is None:
        return clone_number()
    return checked(held.syscall(ctypes.c_long(57)))


def clone_number():
    return checked(held.syscall(ctypes.c_long(number(56, 220)), ctypes.c_long(SIGCHLD), *[ctypes.c_long(0)] * 4))


def clone3_number():
    return checked(held.syscall(ctypes.c_long(number(435, 435)), (ctypes.c_uint64 * 11)(0, 0, 0, 0, SIGCHLD), ctypes.c_long(88)))


def lives(variant):
    """What a child does: it leaves the session, leaves a trace, and is gone after a second."""
    end = time.monotonic() + LIVES_S
    with contextlib.suppress(BaseException):
        os.setsid()
        fd = held.open(f"{TARGETS['marker']}/blindcast-attack-{variant}".encode(), os.O_CREAT | os.O_WRONLY, 0o600)
        held.close(fd)
        while (left := end - time.monotonic()) > 0:
            time.sleep(left)
    os._exit(0)


def bomb(variant, fork):
    """As many as there may be; then stay until the deadline, or until they are gone."""
    children = []
    try:
        while len(children) < MOST:
            pid = fork()
            if pid == 0:
                lives(variant)
            children.append(pid)
    except OSError:
        if not children:
            raise
    time.sleep(LIVES_S + 0.5)
    for pid in children:
        os.waitpid(pid, 0)
    return f"{len(children)} processes"


def tree(variant):
    """Each child forks on: a small tree, three deep, of three each."""
    pids = []
    for _ in range(3):
        pid = fork_libc()
        if pid == 0:
            with contextlib.suppress(BaseException):
                for _ in range(2):
                    for _ in range(3):
                        if held.fork() == 0:
                            break
            lives(variant)
        pids.append(pid)
    time.sleep(LIVES_S + 0.5)
    for pid in pids:
        os.waitpid(pid, 0)
    return "39 processes"


FORKS = (fork_python, fork_libc, fork_number, clone_number, clone3_number)


class Predictor:
    def predict(self, view):
        if view.anchor == 0:
            for fork in FORKS:
                if is_wanted(fork.__name__):
                    attempt(fork.__name__, bomb, fork.__name__, fork)
            attempt("tree", tree, "tree")
        return 0.5
