"""DS-01 to DS-10: what a source of windows must do so that a task means the same everywhere (conformance.md, data.md 1, 2)."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np

from blindcast.contracts import DataSource
from blindcast.errors import BlindcastError, DataError, WindowUnknown
from blindcast.records import Grid, Window, WindowRef
from blindcast.testing.copies import contents, copied, flipped
from blindcast.testing.kit import Check, Skip, Subject
from blindcast.testing.tables import check_book, levels_of

__all__ = ["CHECKS"]

STEPS: Final = (1, 15, 90)
LENGTHS_S: Final = (900, 60, 10, 1)  # the first that gives two windows is used
LOOKED_AT: Final = 5  # windows that are read
FOREIGN: Final = ("", "-1", 0, "0123456789ab-0", "another-source-0")
LISTING: Final = """
import json, sys
from blindcast.testing.datasources import listing
from blindcast.testing.copies import contents, copied, flipped
from blindcast.testing.kit import subject_of
name, options = json.loads(sys.argv[1])
print(json.dumps(listing(subject_of("datasources", name, options).make())))
"""


def _listed(source: DataSource, steps: int = 15) -> tuple[Grid, Sequence[WindowRef]]:
    """A grid whose window length gives at least two windows, and these windows."""
    for window_s in LENGTHS_S:
        grid = Grid(window_s, steps)
        try:
            refs = source.windows(grid)
        except DataError:
            continue  # too long for its slots
        if len(refs) >= 2:
            return grid, refs
    raise AssertionError(f"expected at least two windows of {', '.join(map(str, LENGTHS_S))} s, got none")


def _picked(refs: Sequence[WindowRef]) -> list[WindowRef]:
    """A few refs, the first and the last among them."""
    places = np.unique(np.linspace(0, len(refs) - 1, LOOKED_AT).round().astype(int))
    return [refs[place] for place in places.tolist()]


def listing(source: DataSource) -> list[list[Any]]:
    """Every window as plain JSON: ref, start, rows, prints."""
    return [[ref.ref, ref.start_ns, ref.rows, ref.prints] for ref in _listed(source)[1]]


def has_order_and_identity(subject: Subject) -> None:
    """DS-01: the second process is one, where the source is installed; else a second object."""
    first = listing(subject.make())
    for (one, start_ns, *_), (other, next_ns, *_) in pairwise(first):
        assert next_ns > start_ns, f"expected starts that rise, got {other!r} at {next_ns} after {one!r} at {start_ns}"
    refs = [ref for ref, *_ in first]
    twice = sorted({ref for ref in refs if refs.count(ref) > 1})[:3] if len(set(refs)) < len(refs) else []
    assert not twice, f"expected ids that are unique, got several windows called {twice}"
    where, second = _elsewhere(subject)
    differs = next((k for k, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second)))
    assert first == second, f"expected {where} to list the same, got {len(first)} and {len(second)} windows that differ at place {differs}"


def _elsewhere(subject: Subject) -> tuple[str, list[list[Any]]]:
    if subject.offer is None or not isinstance(subject.offer.target, str):
        return "a second object", listing(subject.make())
    order = json.dumps([subject.name, dict(subject.options)], default=str)
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONHASHSEED": "7", "TZ": "Pacific/Apia"}
    done = subprocess.run([sys.executable, "-c", LISTING, order], capture_output=True, text=True, env=environ, check=False)
    assert done.returncode == 0, f"a second process could not list the windows: {done.stderr.strip()[-500:]}"
    told: list[list[Any]] = json.loads(done.stdout)
    return "a second process", told


def y_is_well_formed(subject: Subject) -> None:
    """DS-02."""
    source = subject.make()
    for steps in STEPS:
        grid, refs = _listed(source, steps)
        for ref in _picked(refs):
            y = source.window(ref.ref, grid).y
            said = f"window {ref.ref!r} of {grid.window_s} s, G {steps}"
            got = type(y).__name__, str(getattr(y, "dtype", "")), getattr(y, "shape", ())
            assert got == ("ndarray", "float64", (steps + 1,)), f"{said}: expected y F64[{steps + 1}], got {got}"
            assert np.isfinite(y).all(), f"{said}: expected a finite y, got {y.tolist()[:5]}"
            assert y[0] == 0.0, f"{said}: expected y[0] exactly 0, got {float(y[0])!r}"
            assert not y.flags.writeable, f"{said}: expected y read-only, got a writeable array"


def grids_agree(subject: Subject) -> None:
    """DS-03."""
    source = subject.make()
    grid, refs = _listed(source)
    fine = Grid(grid.window_s, 90)
    for ref in _picked(refs):
        coarse, every = source.window(ref.ref, grid).y, source.window(ref.ref, fine).y[::6]
        knot = next((j for j in range(16) if coarse[j].tobytes() != every[j].tobytes()), None)
        said = f"window {ref.ref!r} of {grid.window_s} s"
        assert knot is None, (
            f"{said}: expected y at G 15 to be every sixth y at G 90, got {coarse[knot]!r} and {every[knot]!r} at knot {knot}"
        )


def refuses_unknown_refs(subject: Subject) -> None:
    """DS-04."""
    source = subject.make()
    grid, refs = _listed(source)
    for ref in [ref for ref in FOREIGN if ref not in {one.ref for one in refs}]:
        try:
            given = source.window(ref, grid)
        except WindowUnknown:
            continue
        except Exception as error:
            raise AssertionError(f"ref {ref!r}: expected WindowUnknown, got {type(error).__name__}: {error}") from error
        raise AssertionError(f"ref {ref!r}: expected WindowUnknown, got the window that starts at {given.start_ns}")


def is_half_open(subject: Subject) -> None:
    """DS-05."""
    for ref, window in _windows(subject.make()):
        end_ns = window.start_ns + window.grid.window_ns
        for name, table in (("book", window.book), ("trades", window.trades)):
            ts = table.column("ts_ns").to_numpy()
            said = f"window {ref!r}, {name}"
            outside = np.flatnonzero((ts < window.start_ns) | (ts >= end_ns))
            span = f"{window.start_ns} <= ts < {end_ns}"
            assert not len(outside), f"{said}: expected {span}, got row {outside[:1]} at {ts[outside[:1]]}"
            falls = np.flatnonzero(np.diff(ts) < 0)
            assert not len(falls), f"{said}: expected times in order, got a fall of {np.diff(ts)[falls[:1]]} ns after row {falls[:1]}"


def _windows(source: DataSource) -> list[tuple[str, Window]]:
    grid, refs = _listed(source)
    return [(ref.ref, source.window(ref.ref, grid)) for ref in _picked(refs)]


def book_is_sane(subject: Subject) -> None:
    """DS-06."""
    for ref, window in _windows(subject.make()):
        for name, table in (("opening", window.opening), ("book", window.book)):
            check_book(f"window {ref!r}, {name}", table)
        assert window.opening.num_rows == 1, f"window {ref!r}: expected an opening of one row, got {window.opening.num_rows}"
        bid, ask = (levels_of(window.opening, side) for side in ("bid_px", "ask_px"))
        is_valid = bool(bid[1][0, 0] and ask[1][0, 0] and bid[0][0, 0] <= ask[0][0, 0])
        assert is_valid, f"window {ref!r}: expected a two-sided opening with bid <= ask, got {bid[0][0, 0]} and {ask[0][0, 0]}"


def tiles_the_span(subject: Subject) -> None:
    """DS-07: slots lie evenly, so one that is neither a window nor dropped shows."""
    source = subject.make()
    grid, refs = _listed(source)
    dropped = source.dropped(grid)
    silent = [one.start_ns for one in dropped if not one.reasons or not all(isinstance(word, str) and word for word in one.reasons)]
    assert not silent, f"expected a reason for every dropped slot, got none at {silent[:3]}"
    starts = sorted([*(ref.start_ns for ref in refs), *(one.start_ns for one in dropped)])
    gaps = np.diff(np.array(starts, dtype=np.int64))
    every = int(gaps.min())
    assert every >= grid.window_ns, f"expected slots of at least {grid.window_s} s that do not overlap, got starts {every} ns apart"
    skipped = np.flatnonzero(gaps != every)
    lost = [starts[k] + every for k in skipped[:3].tolist()]
    assert not lost, f"expected a window or a drop every {every / 1e9:g} s, got neither at {lost}"


def _paths(subject: Subject) -> dict[str, Path]:
    """The options that name something on disk."""
    named = {key: Path(value) for key, value in subject.options.items() if isinstance(value, str | Path)}
    return {key: path for key, path in named.items() if path.is_absolute() and path.exists()}


def digest_is_content(subject: Subject) -> None:
    """DS-08: a copy under other names and times; a copy with one byte changed is another content, or is refused as damaged."""
    first, again = subject.make().digest(), subject.make().digest()
    is_hex = isinstance(first, str) and re.fullmatch("[0-9a-f]{64}", first) is not None
    assert is_hex, f"expected a digest of sha256 in hex, got {first!r}"
    assert again == first, f"two objects with the same options: expected one digest, got {first} and {again}"
    build, paths = subject.build, _paths(subject)
    if build is None or not paths:
        return
    with TemporaryDirectory(prefix="blindcast-") as folder:
        moved = copied(paths, Path(folder) / "moved" / "elsewhere")
        got = build({**subject.options, **moved}).digest()
        assert got == first, f"a copy in another folder, touched: expected {first}, got {got}"
        changed = copied(paths, Path(folder) / "changed")
        where = flipped(changed.values())
        got = _told(lambda: build({**subject.options, **changed}))
        assert got != first, f"a copy with one byte of {where} changed: expected another digest or a refusal, got {got}"


def _told(make: Callable[[], DataSource]) -> str:
    """The digest of a source that was read, or the code of its refusal."""
    try:
        source = make()
        grid, refs = _listed(source)
        for ref in refs:
            source.window(ref.ref, grid)
        return source.digest()
    except BlindcastError as refusal:
        return refusal.code


def reads_only(subject: Subject) -> None:
    """DS-09."""
    paths = _paths(subject)
    before = contents(paths.values())
    source = subject.make()
    grid, refs = _listed(source)
    source.dropped(grid)
    source.digest()
    for ref in refs[:200]:
        source.window(ref.ref, grid)
    after = contents(paths.values())
    changed = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
    assert not changed, f"everything read: expected the pool's bytes, times and listing as before, got another {', '.join(changed[:5])}"


def outcome_has_no_say(subject: Subject) -> None:
    """DS-10: `mirror()` gives the same source with every price mirrored about its start."""
    source = subject.make()
    mirrored = source.mirror()
    if mirrored is None:
        raise Skip("its mirror() gives nothing")
    grid, refs = _listed(source)
    starts, others = [ref.start_ns for ref in refs], [ref.start_ns for ref in mirrored.windows(grid)]
    assert starts == others, f"prices mirrored: expected the same windows, got {sorted(set(starts) ^ set(others))[:3]} in one of the two"
    drops, other_drops = ({(one.start_ns, one.reasons) for one in each.dropped(grid)} for each in (source, mirrored))
    assert drops == other_drops, f"prices mirrored: expected the same drops, got {sorted(drops ^ other_drops)[:3]} in one of the two"


CHECKS: tuple[Check, ...] = (
    Check("DS-01", "order and identity", has_order_and_identity),
    Check("DS-02", "y well formed", y_is_well_formed),
    Check("DS-03", "grids agree", grids_agree),
    Check("DS-04", "unknown ref refused", refuses_unknown_refs),
    Check("DS-05", "half-open", is_half_open),
    Check("DS-06", "book sane", book_is_sane),
    Check("DS-07", "tiles the span", tiles_the_span),
    Check("DS-08", "digest is content", digest_is_content),
    Check("DS-09", "reads only", reads_only),
    Check("DS-10", "outcome has no say (needs mirror)", outcome_has_no_say, needs="mirror"),
)
