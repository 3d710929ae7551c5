"""The launcher of the corpus, one for the command and for pytest: each column in a throw-away namespace of its own (I-92)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import IO, Any, Final

from attrs import frozen

from blindcast.errors import DeniedError, FaultError
from blindcast_isolation.corpus.honest import compared, curves
from blindcast_isolation.corpus.inside import NO_NAMESPACE, outermost
from blindcast_isolation.corpus.rows import Row, plain, rows

__all__ = ["Arm", "arms", "launch", "mutate"]

UID_RANGE: Final = (61_900, 61_999)  # the end of the default's: servers outside take the lowest first
_COLUMNS: Final = 7  # that root measures
LIMIT_S: Final = 900.0
_AT_ONCE: Final = 2
_AGAIN: Final = 3  # variants of each row that is measured again under the ordinary uid
_SLOW: Final = "bwrap"  # it imports the libraries anew for every child
_PACKAGES: Final = ("blindcast", "blindcast_isolation", "msgspec", "attrs", "numpy", "pandas", "pyarrow")


@frozen
class Arm:
    """One column to be measured: a backend, the uids of its runs, and the uid its server runs under; None is the caller's own.

    Two columns at once share no uid: the kernel counts processes by it, across namespaces. `is_again`: the same backend is
    measured as root too; of the rows that start a run for each variant three are tried.
    """

    backend: str
    uid_range: tuple[int, int] = UID_RANGE
    uid: int | None = None
    is_again: bool = False

    @property
    def title(self) -> str:
        """`userns`, or `userns (user)` where root measures it under an ordinary uid."""
        return self.backend if self.uid is None else f"{self.backend} (user)"


def arms(backends: Iterable[str] = ()) -> tuple[Arm, ...]:
    """The columns for this user; of the named backends alone where any is named. A stranger's backend gets one column.

    Started by root a column's server is root, or is dropped to the last uid of its range.
    """
    wanted, users = tuple(backends), ("userns", "bwrap", "landlock", "hook")
    if os.geteuid() == 0:
        first = ("privdrop", "userns", "bwrap")
        every = [Arm(name, _block(i)) for i, name in enumerate(first)]
        every += [Arm(name, _block(i), _block(i)[1], name in first) for i, name in enumerate(users, len(first))]
    else:
        every = [Arm(name) for name in users]
    known = {arm.backend for arm in every}
    return tuple(arm for arm in every if not wanted or arm.backend in wanted) + tuple(Arm(name) for name in wanted if name not in known)


def _block(at: int) -> tuple[int, int]:
    """A column's uids: the last is that of the whole range for the last column, ten less for the one before."""
    last = UID_RANGE[1] - 10 * (_COLUMNS - 1 - at)
    return last - 9, last


def _roots() -> list[str]:
    """What a server must be able to import from, wherever it lies."""
    places = [os.path.abspath(path) for path in sys.path if path and os.path.isdir(path)]
    specs = [find_spec(name) for name in _PACKAGES]
    places += [os.path.dirname(os.path.abspath(p)) for spec in specs if spec for p in spec.submodule_search_locations or ()]
    return outermost(places)


def launch(
    wanted: Sequence[Arm],
    tried: Sequence[Row],
    *,
    variants: int | None = None,
    is_talking: bool = False,
    told: Callable[[Arm, dict[str, Any]], object] = lambda *_: None,
) -> dict[Arm, dict[str, Any]]:
    """Each column's plain table, two columns at a time, the slow ones first. Raises DeniedError `no_throwaway_namespace`.

    `variants`: how many are tried of a row that starts a run for each; None all. `told` hears of each column when it is done.
    """
    control = next(row for row in rows() if row.id == "C-01")

    def one(arm: Arm) -> tuple[Arm, dict[str, Any]]:
        done = _column(arm, tried, control, variants or (_AGAIN if arm.is_again else None), is_talking)
        told(arm, done)
        return arm, done

    controls = [row for row in tried if row.is_control]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        honest = pool.submit(curves, controls)
        measured = dict(pool.map(one, sorted(wanted, key=lambda arm: arm.backend != _SLOW)))
    columns = {arm: measured[arm] for arm in wanted}
    compared({arm.title: column for arm, column in columns.items()}, honest.result())
    return columns


def _column(arm: Arm, tried: Sequence[Row], control: Row, variants: int | None, is_talking: bool) -> dict[str, Any]:
    order = {
        "backend": arm.backend,
        "uid": arm.uid,
        "uid_range": arm.uid_range,
        "rows": [plain(row) for row in tried],
        "control": plain(control),
        "variants": variants,
        "is_talking": is_talking,
    }
    return _answered(arm, order, is_talking)


def mutate(wanted: Sequence[Arm], told: Callable[[Arm, dict[str, Any]], object] = lambda *_: None) -> dict[Arm, dict[str, Any]]:
    """Each backend's controls switched off in turn, as `mutation.column` tells it, two backends at a time (I-93)."""

    def one(arm: Arm) -> tuple[Arm, dict[str, Any]]:
        done = _answered(arm, {"backend": arm.backend, "uid": arm.uid, "uid_range": arm.uid_range, "mutates": True}, is_talking=False)
        told(arm, done)
        return arm, done

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return dict(pool.map(one, wanted))


def _answered(arm: Arm, order: dict[str, Any], is_talking: bool) -> dict[str, Any]:
    """What the server of an order says, in a namespace of its own. Raises DeniedError, FaultError `corpus_failed`."""
    order = order | {"roots": _roots()}
    with tempfile.TemporaryFile("w+") as said:
        code, text = _asked(json.dumps(order), None if is_talking else said)
        said.seek(0)
        words = said.read()[-2_000:].strip()
    if code == NO_NAMESPACE:
        raise DeniedError(
            "no_throwaway_namespace",
            f"the attacks need a throw-away namespace, and none can be had here: {words}",
            expected="root, or a user who may make user namespaces",
            do="run it as root, or on a host that allows user namespaces",
        )
    if code != 0 or not text:
        raise FaultError(
            "corpus_failed",
            f"the server of column {arm.title} ended with {code}: {words}",
            expected="one line of JSON",
            do="run it again with -v",
        )
    done: dict[str, Any] = json.loads(text)
    return done


def _asked(order: str, said: IO[str] | None) -> tuple[int, str]:
    """(exit status, answer) of a server in its namespace; the order and the answer go by descriptors of our own."""
    reading, writing = os.pipe()
    with os.fdopen(reading) as answer, tempfile.TemporaryFile("w+") as asked:
        asked.write(order)
        asked.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "blindcast_isolation.corpus.inside", str(asked.fileno()), str(writing)],
            env=_environment(),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            pass_fds=(asked.fileno(), writing),
        )
        os.close(writing)
        watch = threading.Timer(LIMIT_S, process.kill)
        watch.start()
        try:
            text = answer.read()  # to its end: when the server is gone
            return process.wait(), text
        finally:
            watch.cancel()
            process.kill()
            process.wait()


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "BLINDCAST_TRACE") if name in os.environ}
    threads = {"OPENBLAS_NUM_THREADS": "1"}  # a process of several threads gets no user namespace: EINVAL
    return kept | threads | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
