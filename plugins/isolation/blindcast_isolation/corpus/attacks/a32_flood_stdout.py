"""Prints without end, on both descriptors, from Python, from C and past libc: text, noise, escape sequences, one endless line.

Against it: `output` at 1 MiB, after which the tree is killed. The first and the last 32 KiB are kept and shown without a
control character, an escape sequence or a mark that turns the line round.
"""

import ctypes
import os
import random
import sys

from toolbox import is_wanted, libc, number, syscall

LINE = "flood " * 200 + "\n"
NOISE = random.Random(32).randbytes(1 << 16)
ESCAPES = (
    "\x1b[2J\x1b[31m\x1b]0;title\x07\x1b]8;;http://127.0.0.1/\x1b\\link\x1b]8;;\x1b\\\x1bP+q544e\x1b\\\x9b1A\u202egnp.exe\u2066\u200f\x08\x08\r\0"
    * 300
).encode()


def endless(write):
    while True:
        write()


def print_stdout():
    endless(lambda: print(LINE))  # noqa: T201 - what print does is tried


def print_stderr():
    endless(lambda: sys.stderr.write(LINE))


def c_stdout():
    endless(lambda: libc.puts(LINE.encode()))


def c_stderr():
    endless(lambda: libc.write(2, LINE.encode(), len(LINE)))


def raw_stdout():
    held = ctypes.create_string_buffer(LINE.encode())
    endless(lambda: syscall(number(1, 64), 1, ctypes.addressof(held), len(LINE)))


def binary():
    endless(lambda: os.write(1, NOISE))


def escapes():
    endless(lambda: os.write(1, ESCAPES) and os.write(2, ESCAPES))


def no_newline():
    endless(lambda: sys.stdout.write("x" * 8_191))


ACTS = (print_stdout, print_stderr, c_stdout, c_stderr, raw_stdout, binary, escapes, no_newline)


class Predictor:
    def predict(self, view):
        for act in ACTS:
            if is_wanted(act.__name__):
                act()
        return 0.5
