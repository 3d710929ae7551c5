"""The child's loop: it reads requests, asks the predictor and writes answers. Whatever it says may be forged (I-53)."""

from __future__ import annotations

import os
import random
import struct
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final, NoReturn

import numpy as np

from blindcast.frames import (
    LOG_BYTES,
    Ack,
    Answer,
    Curve,
    Failed,
    Fit,
    Fitted,
    Hello,
    Load,
    Loaded,
    Log,
    Request,
    Section,
    Step,
    Warm,
    encode,
    request_of,
)
from blindcast.judge import LOGS_PER_CHILD, LOGS_PER_REQUEST
from blindcast.libraries import import_names, withheld_names
from blindcast.local import construct, consult
from blindcast.protocol import Refused
from blindcast.records import F64, Grid
from blindcast.view import Context, View
from blindcast_isolation.guard import Guard
from blindcast_isolation.lockdown import ANSWER, REQUEST
from blindcast_isolation.tripwire import tripped

__all__ = ["run"]

_METHODS: Final = ("fit", "observe", "predict")
_READ: Final = 4_096  # bytes; a request is far shorter
_HEAD: Final = 4


@cache
def _doubles(count: int) -> Callable[..., bytes]:
    return struct.Struct(f"<{count}d").pack


def run(memory: memoryview) -> NoReturn:
    """Serve requests until `bye` or the end of the pipe."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # the interpreter's own text streams
    child, pending = _Predicting(memory), b""
    while data := os.read(REQUEST, _READ):
        pending = pending + data if pending else data
        while (end := _end_of(pending)) <= len(pending):
            request, pending = request_of(pending[_HEAD:end]), pending[end:]
            if isinstance(request, Step):
                child.step(request)
            else:
                child.take(request)
    os._exit(0)


def _end_of(pending: bytes) -> int:
    """Where the first frame ends, beyond what is there if it is not whole."""
    return _HEAD + int.from_bytes(pending[:_HEAD], "little") if len(pending) >= _HEAD else _HEAD


class _Predicting:
    """One predictor and what it has been told."""

    def __init__(self, memory: memoryview) -> None:
        self._memory = memory
        self._predictor: Any = None
        self._observes = False
        self._warmups: list[View] = []
        self._logs = self._logs_total = 0

    def take(self, request: Request) -> None:
        """Serve anything but a `step`."""
        self._logs = 0
        if isinstance(request, Hello):
            self._greet(request)
        elif isinstance(request, Load):
            self._answer(self._load(request))
        elif isinstance(request, Warm):
            self._warmups.append(self._view(self._grid.steps, request.rows).copy())
            self._answer(Ack(request.seq, request.nonce))
        elif isinstance(request, Fit):
            self._answer(self._fit(request))
        else:
            _leave()

    def _greet(self, hello: Hello) -> None:
        self._grid = Grid(hello.window_s, hello.steps)
        self._ladder, self._events, path = (self._table(section) for section in hello.sections)
        self._path: F64 = path[0]
        self._columns = hello.sections[0].columns
        self._context = Context(self._grid, hello.alpha, self._columns, hello.seed)
        random.seed(hello.seed)
        np.random.seed([hello.seed & 0xFFFF_FFFF, hello.seed >> 32])

    def _table(self, section: Section) -> Any:
        shape = (len(section.columns), section.cap_rows)
        return np.ndarray(shape, dtype=section.dtype, buffer=self._memory, offset=section.offset)

    def _load(self, load: Load) -> Answer:
        guard = Guard(os.path.dirname(load.entry), import_names(), withheld_names())
        guard.hide()
        guard.install()
        try:
            kind = guard.load(load.entry).Predictor
            self._predictor = construct(kind, self._context)
        except BaseException as error:
            self._trace(error)
            return Failed(load.seq, load.nonce, type(error).__name__[:200], "")
        methods = tuple(name for name in _METHODS if callable(getattr(self._predictor, name, None)))
        self._observes = "observe" in methods
        return Loaded(load.seq, load.nonce, methods)

    def _fit(self, fit: Fit) -> Answer:
        code, warmups = "ok", self._warmups
        self._warmups = []
        try:
            self._predictor.fit(warmups)
        except BaseException as error:
            self._trace(error)
            code = "exception"
        return Fitted(fit.seq, fit.nonce, code, 0)

    def _view(self, anchor: int, rows: Sequence[int]) -> View:
        ladder, events, knots = rows
        return View(self._grid, self._columns, anchor, self._ladder[:, :ladder], self._events[:, :events], self._path[:knots])

    def step(self, step: Step) -> None:
        """Ask the predictor at one anchor."""
        view = self._view(step.anchor, step.rows)
        code, data, remaining = "ok", b"", self._grid.steps - step.anchor
        self._logs = 0
        try:
            values = consult(self._predictor, view, observes=self._observes, remaining=remaining)
            if values is None:
                code = "keep"
            else:
                data = _packed(values, remaining)
        except Refused as refused:
            code = refused.code
            if refused.__cause__ is not None:
                self._trace(refused.__cause__)
        if tripped:
            self._tell_trips()
        os.write(ANSWER, encode(Curve(step.seq, step.nonce, code, data)))

    def _answer(self, answer: Answer) -> None:
        self._tell_trips()
        os.write(ANSWER, encode(answer))

    def _tell_trips(self) -> None:
        for text in tripped:
            self._log("tripwire", text)
        tripped.clear()

    def _trace(self, error: BaseException) -> None:
        try:
            text = "".join(traceback.format_exception(error))
        except BaseException:
            text = type(error).__name__
        self._log("trace", text)

    def _log(self, level: str, text: str) -> None:
        """Say a text's last 4,096 bytes; what is over the caps is dropped (I-56)."""
        self._logs += 1
        self._logs_total += 1
        if self._logs <= LOGS_PER_REQUEST and self._logs_total <= LOGS_PER_CHILD:
            kept = text.encode("utf-8", "replace")[-LOG_BYTES:].decode("utf-8", "ignore")
            os.write(ANSWER, encode(Log(level, kept)))


def _packed(values: Sequence[float] | F64, remaining: int) -> bytes:
    if isinstance(values, np.ndarray):
        return values.astype("<f8").tobytes()
    return _doubles(remaining)(*values)


def _leave() -> NoReturn:
    """Leave without exit handlers (I-38); what was printed is let go first."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:
            break
    os._exit(0)
