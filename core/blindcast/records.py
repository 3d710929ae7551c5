"""Frozen values that flow between the rooms. Arrays are C-ordered and read-only; times are integer ns since 1970 UTC."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "F32",
    "F64",
    "I64",
    "Blinded",
    "Control",
    "Dropped",
    "Grid",
    "IsolationReport",
    "Limits",
    "Outcome",
    "Policy",
    "RunFacts",
    "Selection",
    "SpawnSpec",
    "Usage",
    "Window",
    "WindowFacts",
    "WindowGrade",
    "WindowRef",
    "read_only",
]

F64: TypeAlias = NDArray[np.float64]
F32: TypeAlias = NDArray[np.float32]
I64: TypeAlias = NDArray[np.int64]


def read_only(array: NDArray[np.generic]) -> None:
    """Make an array read-only in place."""
    array.flags.writeable = False


@frozen
class Grid:
    """A window of `window_s` whole seconds cut in `steps` equal steps (G-01)."""

    window_s: int
    steps: int

    @property
    def window_ns(self) -> int:
        """The window's length in ns."""
        return self.window_s * 1_000_000_000

    def knots_ns(self, start_ns: int) -> I64:
        """I64[steps + 1]: the time of each knot, start + (i * T) // G in integer ns."""
        return np.array([start_ns + i * self.window_ns // self.steps for i in range(self.steps + 1)], dtype=np.int64)


@frozen
class WindowRef:
    """A window that a source has: opaque `ref`, start, and upper bounds of its book rows and prints."""

    ref: str
    start_ns: int
    rows: int
    prints: int


@frozen
class Dropped:
    """A slot that is no window, with every reason that holds (W-02)."""

    start_ns: int
    reasons: tuple[str, ...]


@frozen(eq=False)
class Window:
    """The truth of one window; it never leaves the parent (W-04).

    `y` F64[G+1] bps of the window's start; `book` and `trades` hold the pool's columns over [start, start + window_s);
    `opening` is the valid state at the start, one row; `tick_size` and `lot_size` are decimal text.
    """

    ref: str
    start_ns: int
    grid: Grid
    y: F64
    book: pa.Table
    trades: pa.Table
    opening: pa.Table
    tick_size: str
    lot_size: str


@frozen(eq=False)
class Blinded:
    """What a predictor may see of one window, in time order.

    `ladder` F32[N, len(columns)], `events` F32[M, 2], `y` F64[G+1] as shown; `ladder_until[i]` and `events_until[i]`
    I64[G+1] count the rows with a time before knot i. `sign` -1 where the window was mirrored (DA-06).
    """

    columns: tuple[str, ...]
    ladder: F32
    events: F32
    y: F64
    ladder_until: I64
    events_until: I64
    sign: Literal[1, -1] = 1


@frozen
class Selection:
    """What a source says of the slots it dropped (data.md section 11)."""

    slots: int
    dropped: int
    source: str
    p_abs: float | None
    p_signed: float | None
    verdict: str


@frozen(eq=False)
class Outcome:
    """What a grader is told of a window: `y` F64[G+1] bps, `scale_bps` the rms step of the warm-ups."""

    y: F64
    scale_bps: float


@frozen
class WindowGrade:
    """What a grader pays for one window; `parts` are summed over windows for the diagnostics."""

    reward: float
    parts: Mapping[str, float] = field(factory=dict)


@frozen
class RunFacts:
    """What an observer may know of a run (P-13)."""

    run_id: str
    task_digest: str
    split: str
    stage: str
    targets: int


@frozen
class WindowFacts:
    """What an observer may know of a scored window (P-13); `reward_bps` is null on test."""

    ordinal: int
    reward_bps: float | None
    code: str | None


@frozen
class Limits:
    """What a child may use (isolation.md section 8)."""

    run_wall_s: float = 900.0
    step_wall_s: float = 10.0
    memory_mb: int = 4096
    threads: int = 64
    open_files: int = 64
    output_bytes: int = 1 << 20
    spawn_wall_s: float = 10.0
    train_wall_s: float = 300.0  # of a `run_code`
    workspace_mb: int = 512


@frozen
class Policy:
    """What a task asks of its isolation: the `[isolation]` table and the limits of `[budget]`."""

    limits: Limits = Limits()
    uid_range: tuple[int, int] = (61000, 61999)
    raw_roots: tuple[Path, ...] = ()  # what no child may reach: the pool, BLINDCAST_HOME, the ledger (I-23)


@frozen
class Control:
    """One control of an isolation backend and what was measured of it (I-01)."""

    id: str
    state: Literal["active", "unavailable", "failed"]
    detail: str = ""


@frozen
class IsolationReport:
    """What a backend really has in force here (I-06)."""

    backend: str
    classed: Literal["kernel", "tripwire"]
    available: bool
    controls: tuple[Control, ...]
    reason: str = ""  # why it is not available
    kill: str = ""  # the kill method in use (I-70)
    uid: int | None = None
    detail: Mapping[str, object] = field(factory=dict)  # interpreter, kernel, arch, filter digest; warnings[], quarantined[{uid, reason}]


@frozen
class SpawnSpec:
    """What a backend needs to start one locked-down child.

    `submission` is the host's private copy (a `.py` file, or a folder with `predictor.py`); `buffer_fd` a read-only
    description of the sealed reveal buffer of `buffer_bytes`. A child of task `code` runs `submission` as `__main__` in
    `workspace`; it has no buffer: `buffer_fd` is where its standard error goes.
    """

    submission: Path
    buffer_fd: int
    buffer_bytes: int
    policy: Policy
    cpu: int | None = None  # the slot's CPU; None: the backend takes the caller's
    task: Literal["predictor", "code"] = "predictor"
    workspace: Path | None = None  # of `code`: the one writable folder (I-85)
    data: Path | None = None  # of `code`: what the session was shown anyway, read-only


@frozen
class Usage:
    """How a child ended and what it took: `reason` of I-73's list, captured output already stripped of controls."""

    reason: str
    cpu_s: float | None = None
    peak_mib: float | None = None
    output: str = ""
