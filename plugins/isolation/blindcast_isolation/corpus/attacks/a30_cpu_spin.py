"""Never answers and keeps its core busy: in Python, in the regex engine, in one long sum, in a sort, wherever it is called.

Against it: the parent's clock, `step_deadline` at an anchor, `run_deadline` at import, in `__init__` and in `fit`. The last
three hold the interpreter's lock in C, where no timer of the same process could cut in.
"""

import functools
import re

from toolbox import is_wanted


def loop():
    while True:
        pass


def backtrack():
    re.match(r"(a+)+$", "a" * 64 + "b")


def power():
    return 10**10**8


def sort():
    """Sort by a key that makes every comparison take twice as long as the one before."""
    work = [1]

    def compare(one, other):
        work[0] *= 2
        return sum(range(work[0])) and one - other

    return sorted(range(1_000, 0, -1), key=functools.cmp_to_key(compare))


def spin(place):
    for name, act in (("loop", loop), ("regex", backtrack), ("power", power), ("sort", sort)):
        if is_wanted(f"{name}_{place}"):
            act()


spin("import")


class Endless(list):
    """An answer that is never done being read."""

    def __iter__(self):
        while True:
            yield 0.5


class Predictor:
    def __init__(self, context):
        spin("init")

    def fit(self, warmups):
        spin("fit")

    def observe(self, view):
        spin("observe")

    def predict(self, view):
        spin("predict")
        return Endless([0.5]) if is_wanted("loop_answer") else 0.5
