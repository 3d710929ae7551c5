"""Start threads until there may be no more: 5,000 are tried, each waits until it is let go.

Against it: the limit of processes and threads of the uid, 64; cgroup pids (I-60). A host whose thread table is full cannot so much as log
in.
"""

import ctypes
import threading
import time

from toolbox import attempt, checked, libc

MOST = 5_000
STACK = 65_536  # bytes: it is the count that is to be tried, not the memory
CLONE_THREAD_FLAGS = 0x100 | 0x200 | 0x400 | 0x800 | 0x10000 | 0x40000  # VM FS FILES SIGHAND THREAD SYSVSEM
THREAD_WAITS_S = 0.3


def told(count, refused):
    """All of them were had, or the refusal."""
    if refused is not None:
        raise RuntimeError(f"{count} threads, then {type(refused).__name__}: {refused}")
    return f"{count} threads"


def by_threading():
    gate, threads, refused = threading.Event(), [], None
    before = threading.stack_size(STACK)
    try:
        while len(threads) < MOST:
            thread = threading.Thread(target=gate.wait, daemon=True)
            thread.start()
            threads.append(thread)
    except (RuntimeError, MemoryError) as error:
        refused = error
    finally:
        gate.set()
        for thread in threads:
            thread.join(2)
        threading.stack_size(before)
    return told(len(threads), refused)


def by_start_new():
    """The call below threading."""
    import _thread

    gate, count, refused = threading.Event(), 0, None
    before = threading.stack_size(STACK)
    try:
        while count < MOST:
            _thread.start_new_thread(gate.wait, ())
            count += 1
    except (RuntimeError, MemoryError) as error:
        refused = error
    finally:
        gate.set()
        threading.stack_size(before)
    time.sleep(0.05)
    return told(count, refused)


def by_futures():
    from concurrent.futures import ThreadPoolExecutor

    gate, refused, count = threading.Event(), None, 0
    before = threading.stack_size(STACK)
    pool = ThreadPoolExecutor(MOST)
    try:
        for _ in range(MOST):
            pool.submit(gate.wait)
            count += 1
    except (RuntimeError, MemoryError) as error:
        refused = error
    finally:
        gate.set()
        pool.shutdown(wait=True)
        threading.stack_size(before)
    return told(count, refused)


def by_pthread():
    """Threads that the interpreter does not know; each sleeps in the C library."""
    attributes, handles, refused = ctypes.create_string_buffer(128), [], None
    libc.pthread_attr_init(attributes)
    libc.pthread_attr_setstacksize(attributes, ctypes.c_size_t(STACK))
    start = ctypes.cast(libc.usleep, ctypes.c_void_p)
    while len(handles) < MOST and refused is None:
        handle = ctypes.c_ulong()
        error = libc.pthread_create(ctypes.byref(handle), attributes, start, ctypes.c_void_p(int(THREAD_WAITS_S * 1e6)))
        if error:
            refused = OSError(error, "pthread_create")
        else:
            handles.append(handle)
    for handle in handles:
        libc.pthread_join(handle, None)
    return told(len(handles), refused)


def by_clone():
    """The bare call: threads without the C library's own room, on stacks that are kept. Its number alone has no way back."""
    stacks, refused = [], None
    function = ctypes.cast(libc.usleep, ctypes.c_void_p)
    while len(stacks) < MOST and refused is None:
        stack = ctypes.create_string_buffer(STACK // 4)
        top = (ctypes.addressof(stack) + len(stack) - 64) & ~15
        try:
            checked(libc.clone(function, ctypes.c_void_p(top), CLONE_THREAD_FLAGS, ctypes.c_void_p(int(THREAD_WAITS_S * 1e6))))
            stacks.append(stack)
        except OSError as error:
            refused = error
    by_clone.kept = stacks
    time.sleep(THREAD_WAITS_S + 0.2)
    return told(len(stacks), refused)


class Predictor:
    tries = True  # once a run: what it prints has a cap

    def predict(self, view):
        if self.tries:
            self.tries = False
            for act in (by_threading, by_start_new, by_futures, by_pthread, by_clone):
                attempt(act.__name__, act)
        return 0.5
