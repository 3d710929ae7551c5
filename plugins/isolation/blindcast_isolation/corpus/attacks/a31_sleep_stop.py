"""Never answers and does nothing: sleeps, stops itself, hangs up and stays, waits for a thread that never ends.

Against it: the parent's clock; the end of the pipe is an order to kill; no signal handler has a say (SIGTERM, SIGALRM and
SIGXCPU are blocked in every variant).
"""

import ctypes
import os
import select
import signal
import threading
import time

from toolbox import is_wanted, libc, number, syscall


def forever():
    while True:
        time.sleep(3600)


def quiet(act, *args):
    try:
        act(*args)
    except OSError:
        pass


def stop_self():
    quiet(os.kill, os.getpid(), signal.SIGSTOP)
    libc.kill(os.getpid(), signal.SIGSTOP)
    quiet(syscall, number(200, 130), threading.get_native_id(), signal.SIGSTOP)
    forever()


def close_both():
    os.close(3)
    os.close(4)
    forever()


def close_answers():
    os.close(4)
    forever()


def close_requests():
    os.close(3)
    forever()


def join_thread():
    thread = threading.Thread(target=forever)
    thread.start()
    thread.join()


def poll_nothing():
    quiet(select.poll().poll)
    forever()


def native_sleep():
    """Sleep in C with the interpreter's lock held."""
    ctypes.PyDLL(None).sleep(3600)


def leave_main_thread():
    """End the first thread alone, by raw `exit`: the process lives on by its second."""
    threading.Thread(target=forever).start()
    syscall(number(60, 93), 0)
    forever()


ACTS = (stop_self, close_both, close_answers, close_requests, join_thread, poll_nothing, native_sleep, leave_main_thread)


class Predictor:
    def __init__(self, context):
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        for name in (signal.SIGTERM, signal.SIGALRM, signal.SIGXCPU):
            signal.signal(name, signal.SIG_IGN)

    def fit(self, warmups):
        if is_wanted("sleep_fit"):
            forever()

    def predict(self, view):
        if is_wanted("sleep_predict"):
            forever()
        for act in ACTS:
            if is_wanted(act.__name__):
                act()
        return 0.5
