"""Dies in every way, at the second anchor of a window: of recursion, of a bad address, by its own hand, without a word.

Against it: a death ends the window with `signal:<n>` or `exit:<n>`, `exit:0` too; what was sealed before stands, the next
window has a new child, and no core file is left. A fault handler that writes into the answers breaks the protocol.
"""

import ctypes
import faulthandler
import mmap
import os
import signal
import sys
import threading
import time

from toolbox import TARGETS, is_wanted, libc, number, syscall


def forever():
    while True:
        time.sleep(3600)


def recursion():
    """Recurse through C frames with the limit raised: past the end of the stack."""
    sys.setrecursionlimit(1 << 30)
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)
    call = kind(lambda depth: call(depth + 1))
    call(0)


def recursion_thread():
    threading.Thread(target=recursion).start()
    forever()


def deep_compare():
    """Compare two lists that are nested 200,000 times over, with the limit raised."""
    sys.setrecursionlimit(1 << 30)
    one, other = [], []
    for _ in range(200_000):
        one, other = [one], [other]
    one == other
    ctypes.string_at(0)


def read_null():
    ctypes.string_at(0)


def call_null():
    ctypes.CFUNCTYPE(None)(8)()


def write_code():
    ctypes.memset(ctypes.cast(libc.getpid, ctypes.c_void_p).value, 0xCC, 1)


def illegal():
    """Run bytes that are no instruction, or end where pages are not to be run."""
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(b"\x0f\x0b" * 8 if os.uname().machine == "x86_64" else b"\x00\x00\x00\x00" * 4)
    ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()


def free_twice():
    libc.malloc.restype = ctypes.c_void_p
    held = libc.malloc(64)
    for _ in range(16):
        libc.free(ctypes.c_void_p(held))
        libc.free(ctypes.c_void_p(held + 8))


def abort():
    os.abort()


def fatal_error():
    ctypes.pythonapi.Py_FatalError(b"by its own word")


def kill_self():
    """A signal to nobody but this process; where it may not be sent, or has no effect, the process aborts."""
    libc.kill(os.getpid(), signal.SIGKILL)
    os.abort()


def exit_0():
    os._exit(0)


def c_exit():
    libc.exit(3)


def raw_exit():
    syscall(number(231, 94), 0)


def exit_thread():
    threading.Thread(target=os._exit, args=(0,)).start()
    forever()


def exit_70():
    """The status of a child that could not be locked down: the parent is told otherwise, so it is a death like any other."""
    os._exit(70)


def faulthandler_answers():
    try:
        faulthandler.enable(file=4)
    except OSError:
        os.write(4, b"Fatal Python error: none, for no handler may be set")
    ctypes.string_at(0)


def faulthandler_dump():
    faulthandler.dump_traceback(file=4)
    forever()


ACTS = (
    recursion,
    recursion_thread,
    deep_compare,
    read_null,
    call_null,
    write_code,
    illegal,
    free_twice,
    abort,
    fatal_error,
    kill_self,
    exit_0,
    c_exit,
    raw_exit,
    exit_thread,
    exit_70,
    faulthandler_answers,
    faulthandler_dump,
)

if TARGETS.get("variant") == "exit_import":
    os._exit(0)


class Predictor:
    def fit(self, warmups):
        if is_wanted("exit_fit"):
            os._exit(0)

    def predict(self, view):
        if view.anchor == 1:
            for act in ACTS:
                if is_wanted(act.__name__):
                    act()
        return 0.5
