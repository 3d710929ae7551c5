"""What each kind of plugin must do: one Protocol a seam (plugins.md section 6).

Constants are `ClassVar`, options read-only properties. No isinstance on a Protocol at run time: the conformance kit
(`blindcast.testing`) is the run-time test. Optional members are named in the docstrings and read with `getattr`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from blindcast.records import (
    F64,
    Blinded,
    Dropped,
    Grid,
    IsolationReport,
    Outcome,
    Policy,
    SpawnSpec,
    Usage,
    Window,
    WindowGrade,
    WindowRef,
)

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import pyarrow as pa

__all__ = [
    "Anonymizer",
    "Child",
    "DataSource",
    "Grader",
    "ImportReport",
    "Importer",
    "Isolation",
    "Predictor",
    "View",
]


class DataSource(Protocol):
    """A history cut into windows. Optional: `selection(grid) -> Selection` (data.md DK-05)."""

    def windows(self, grid: Grid) -> Sequence[WindowRef]:
        """Every valid window in time order; reads no book rows."""
        ...

    def window(self, ref: str, grid: Grid) -> Window:
        """One window's truth. Raises WindowUnknown."""
        ...

    def dropped(self, grid: Grid) -> Sequence[Dropped]:
        """Every slot that is no window, with its reasons."""
        ...

    def digest(self) -> str:
        """sha256 hex of the pool's content: not of paths, not of times."""
        ...


class ImportReport(Protocol):
    """Where an importer says what it met (DI-11)."""

    def count(self, name: str, n: int = 1) -> None:
        """Add `n` to a named count."""
        ...

    def gap(self, from_ns: int, to_ns: int | None, reason: str) -> None:
        """Note a stretch of which nothing is known; an open one has no end."""
        ...

    def missing(self, name: str, why: str) -> None:
        """Note a file that was left out."""
        ...

    def instrument(self, **known: str | None) -> None:
        """State what is known of the instrument: venue, symbol, base, quote, tick_size, lot_size, clock .."""
        ...


class Importer(Protocol):
    """A reader of raw recordings."""

    def sniff(self, path: Path) -> float:
        """0.0 "not mine" .. 1.0 "surely mine"; never raises."""
        ...

    def read(self, paths: Sequence[Path], report: ImportReport) -> Iterator[pa.RecordBatch]:
        """Batches of the pool's two schemas, each kind in time order. Raises ImportDamaged."""
        ...


class Anonymizer(Protocol):
    """What turns a window into something nameless.

    Optional: `cap(grid, rows, prints) -> (ladder, events)` rows at most in any window; `describe() -> str`;
    `secrets(window, salt)` for the owner's audit.
    """

    strength: ClassVar[Literal["basic", "strong"]] = "basic"

    def blind(self, window: Window, salt: bytes) -> Blinded:
        """The window as it may be shown; `salt` is 32 bytes."""
        ...


class Grader(Protocol):
    """What pays the curves of a window.

    Optional: `grade_all(ys F64[W, G+1], curves F64[W, G, G+1]) -> F64[W]` with the same bits, and `parts_all(ys, curves)`,
    the parts summed over the windows: with both, a task is graded in one pass. `describe()`; `pairs`;
    `explain(ys, curves, warmup_ys, trials) -> Mapping`.
    """

    version: ClassVar[int] = 1
    unit: ClassVar[str] = "bps"
    total: ClassVar[Literal["sum", "mean"]] = "sum"
    properties: ClassVar[frozenset[str]] = frozenset()

    def grade(self, outcome: Outcome, curves: F64) -> WindowGrade:
        """Pay `curves` F64[G, G+1]: c[i, j] in [-1, 1] stands at anchor i for knot j; 0 where j <= i."""
        ...

    def diagnostics(self, parts: Mapping[str, float]) -> Mapping[str, float | None]:
        """Numbers of a task from the parts summed over its windows; undefined is None, never NaN."""
        ...


class Child(Protocol):
    """One locked-down process. `request` and `answer` are pipe descriptors of the parent; `pidfd` may be -1.

    Optional: `cpu` and `uid`, the CPU it is bound to and the user it runs as.
    """

    @property
    def entry(self) -> str:
        """The path of the submission's `.py` as the child sees it (I-52)."""
        ...

    @property
    def request(self) -> int:
        """Where the parent writes frames."""
        ...

    @property
    def answer(self) -> int:
        """Where the parent reads frames."""
        ...

    @property
    def pidfd(self) -> int:
        """A descriptor that becomes readable when the process has ended."""
        ...

    def kill(self, reason: str) -> None:
        """End it with everything it started, and wait until it is gone. Safe to repeat."""
        ...

    def usage(self) -> Usage:
        """How it ended and what it took; while it lives, what is known so far."""
        ...


class Isolation(Protocol):
    """What runs hostile code. Optional: `close()`, which ends the backend's own processes."""

    def probe(self, policy: Policy) -> IsolationReport:
        """What is in force here, tried by doing the forbidden thing; leaves nothing behind."""
        ...

    def spawn(self, spec: SpawnSpec) -> Child:
        """A locked-down child whose first frame is `ready` or `setup_failed`. Raises DeniedError."""
        ...


class View(Protocol):
    """What a predictor sees at an anchor (data.md DA-01)."""

    @property
    def t(self) -> float:
        """The fraction i/G of the window that has passed."""
        ...

    @property
    def clock_s(self) -> float:
        """Seconds since the window's start."""
        ...

    @property
    def anchor(self) -> int:
        """i; G in a warm-up."""
        ...

    @property
    def horizons(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The remaining knots i+1..G; none in a warm-up."""
        ...

    @property
    def ladder(self) -> pd.DataFrame:
        """The revealed book rows, read-only."""
        ...

    @property
    def events(self) -> pd.DataFrame:
        """The revealed signed prints, read-only."""
        ...

    @property
    def y(self) -> F64:
        """The path at knots 0..i, bps of the window's start."""
        ...


class Predictor(Protocol):
    """A submission. Optional: `__init__(context)`, `fit(warmups)`, `observe(view)` (DESIGN 6)."""

    def predict(self, view: View) -> float | Sequence[float] | F64 | None:
        """None to keep the standing curve, a number, or one number per remaining horizon; all in [-1, 1]."""
        ...
