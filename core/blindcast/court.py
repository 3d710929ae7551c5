"""A task spec bound to its plugins: windows, tasks, identity, and windows made ready to be revealed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import numpy as np
from attrs import asdict, evolve, field, frozen

from blindcast.backends import check_word
from blindcast.blinding import check_causal, salt_of, secret_of
from blindcast.contracts import Anonymizer, DataSource, Grader
from blindcast.entries import canonical
from blindcast.errors import DataError
from blindcast.host import Host, Offered
from blindcast.names import grade_id
from blindcast.records import F64, Dropped, Grid, Policy, WindowRef
from blindcast.reveal import Reveal, ready
from blindcast.spec import SCHEMA, PluginTable, TaskSpec
from blindcast.survey import own_roots
from blindcast.tasks import Counts, SplitKind, Task, counts, overlap, task

__all__ = ["Court", "convene"]

DATA_MOUNT: Final = Path("/orwd_data/markets")  # the brief's mount, looked at last (DESIGN 8)
_KINDS: Final = {"source": "datasources", "anonymizer": "anonymizers", "grader": "graders"}


@frozen(eq=False)
class Court:
    """A task spec and its plugins, built once a process.

    `refs` lists the pool's windows in time order; `form` is the canonical form that the identity hashes.
    """

    spec: TaskSpec
    source: DataSource
    anonymizer: Anonymizer
    grader: Grader
    grader_id: str
    used: tuple[tuple[str, str], ...]  # (kind, qualified name), for the lock
    form: Mapping[str, Any]
    pool_digest: str
    refs: tuple[WindowRef, ...]
    home: Path
    warnings: tuple[str, ...] = ()
    raw_roots: tuple[Path, ...] = ()  # what no child may reach: the source's paths, the home, the ledger's file (I-23)
    _secret: bytes | None = field(default=None, alias="secret", repr=False)

    @property
    def grid(self) -> Grid:
        """The task's grid."""
        return self.spec.grid

    @property
    def policy(self) -> Policy:
        """What the task asks of its isolation, and what no child may reach."""
        return evolve(self.spec.policy, raw_roots=self.raw_roots)

    @property
    def alpha(self) -> float | None:
        """The grader's alpha; None where it has none."""
        alpha = getattr(self.grader, "alpha", None)
        return float(alpha) if isinstance(alpha, int | float) else None

    def identity(self, capped: int | None = None) -> str:
        """sha256 hex of the canonical form, a line feed and the pool's digest; a cap belongs to it (DESIGN 5, G-18)."""
        form = dict(self.form) | ({"capped": capped} if capped is not None else {})
        return sha256(f"{canonical(form)}\n{self.pool_digest}".encode()).hexdigest()

    def counts(self) -> Counts:
        """How many tasks there are. Raises DataError `pool_too_small`."""
        return counts(len(self.refs), self.spec.split)

    def task(self, kind: SplitKind, index: int) -> Task:
        """Positions of one task's windows. Raises UsageError `bad_index`."""
        return task(len(self.refs), self.spec.split, kind, index, self.spec.seed)

    def overlap(self) -> dict[str, Any] | None:
        """The overlap meter of the train tasks (G-19)."""
        return overlap(self.counts().train, self.spec.split.targets)

    def dropped(self) -> tuple[Dropped, ...]:
        """Every slot that is no window."""
        return tuple(self.source.dropped(self.grid))

    def path(self, position: int) -> F64:
        """F64[G+1]: the truth of one window, bps of its start."""
        return self.source.window(self.refs[position].ref, self.grid).y

    def reveal(self, position: int, *, audited: bool = False) -> tuple[F64, Reveal]:
        """One window's truth, and its rows ready to be revealed; `audited` also tests causality at a random cut (DA-02)."""
        window = self.source.window(self.refs[position].ref, self.grid)
        salt = salt_of(self._secret, self.identity(), self.spec.seed, window.start_ns)
        if audited:
            check_causal(self.anonymizer, window, salt, 1 + int.from_bytes(os.urandom(2)) % max(1, self.grid.steps - 1))
        return window.y, ready(self.anonymizer.blind(window, salt))

    def caps(self) -> tuple[int, int]:
        """The most ladder rows and events that any window of the pool may show: no window is read for it (I-40)."""
        rows, prints = max(ref.rows for ref in self.refs), max(ref.prints for ref in self.refs)
        cap = getattr(self.anonymizer, "cap", None)
        return tuple(cap(self.grid, rows, prints)) if cap is not None else (rows, prints)


def convene(host: Host, spec: TaskSpec, *, beside: Path, home: Path, environ: Mapping[str, str]) -> Court:
    """Build a spec's plugins and list its windows. `beside` is the task file's folder, where a relative pool may lie."""
    check_word(host, spec.isolation.require)
    tables: dict[str, PluginTable] = {name: getattr(spec, name) for name in _KINDS}
    found = {name: host.find(kind, tables[name].use, from_spec=True) for name, kind in _KINDS.items()}
    filled = {name: host.options(_KINDS[name], table.use, table.options, where=name, from_spec=True) for name, table in tables.items()}
    filled["source"] = {
        key: _place(value, beside, environ) if isinstance(value, Path) else value for key, value in filled["source"].items()
    }
    source: DataSource = host.make(found["source"], filled["source"], where="source")
    anonymizer: Anonymizer = host.make(found["anonymizer"], tables["anonymizer"].options, where="anonymizer")
    grader: Grader = host.make(found["grader"], tables["grader"].options, where="grader")
    refs = tuple(source.windows(spec.grid))
    _check_order(refs, spec.grid)
    return Court(
        spec=spec,
        source=source,
        anonymizer=anonymizer,
        grader=grader,
        grader_id=grade_id(found["grader"].name, found["grader"].distribution, grader.version, spec.grid.steps, filled["grader"]),
        used=tuple((kind, found[name].qualified) for name, kind in _KINDS.items()),
        form=_form(spec, {name: _plugin_form(found[name], filled[name]) for name in _KINDS}),
        pool_digest=source.digest(),
        refs=refs,
        home=home,
        warnings=_check_selection(source, spec),
        raw_roots=_raw_roots(filled["source"].values(), home, environ),
        secret=secret_of(home) if anonymizer.strength == "strong" else None,
    )


def _plugin_form(offered: Offered, options: Mapping[str, object]) -> dict[str, object]:
    """A plugin's table in the canonical form: a name of ours stays bare, paths are left out (DESIGN 5)."""
    name = offered.name if offered.distribution == "blindcast" else offered.qualified
    return {"use": name} | {key: value for key, value in options.items() if not isinstance(value, Path)}


def _form(spec: TaskSpec, plugins: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    budget = asdict(spec.budget)
    del budget["holdout_queries"]
    return {
        "schema": SCHEMA,
        "seed": spec.seed,
        **plugins,
        "grid": asdict(spec.grid),
        "split": asdict(spec.split),
        "budget": budget,
        "isolation": {"state": spec.isolation.state},
    }


def _place(path: Path, beside: Path, environ: Mapping[str, str]) -> Path:
    """Where a relative path of the source lies: BLINDCAST_DATA_DIR, beside the task file, the brief's mount (DESIGN 8)."""
    if path.is_absolute():
        return path
    folder = environ.get("BLINDCAST_DATA_DIR")
    if folder:
        return Path(folder) / path
    mounted = DATA_MOUNT / path
    return mounted if not (beside / path).exists() and mounted.exists() else (beside / path).absolute()


def _raw_roots(options: Iterable[object], home: Path, environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Every path that the source's options name, the home, and the ledger's file where it lies elsewhere (I-23)."""
    named = [path for value in options for path in (value if isinstance(value, list | tuple) else (value,)) if isinstance(path, Path)]
    return tuple(dict.fromkeys(path.absolute() for path in (*named, *own_roots(home, environ))))


def _check_order(refs: Iterable[WindowRef], grid: Grid) -> None:
    starts = np.array([ref.start_ns for ref in refs], dtype=np.int64)
    late = np.flatnonzero(np.diff(starts) < grid.window_ns)
    if len(late):
        raise DataError(
            "windows_overlap",
            f"windows {int(late[0])} and {int(late[0]) + 1} of the pool overlap",
            expected="windows in time order, each starting at or after the end of the one before (G-10)",
            do="cut the pool anew: raise `every_s` to at least window_s",
        )


def _check_selection(source: DataSource, spec: TaskSpec) -> tuple[str, ...]:
    """Refuse a pool whose missing windows are not missing at random (DK-05)."""
    selection = getattr(source, "selection", None)
    said = selection(spec.grid) if selection is not None else None
    if said is None or said.verdict != "FAIL":
        return ()
    if "missing_not_random" in spec.source.options.get("waive", ()):
        return ("missing_not_random: waived by the spec; returns of the dropped windows differ from those kept",)
    lowest = min((p for p in (said.p_abs, said.p_signed) if p is not None), default=1.0)
    raise DataError(
        "missing_not_random",
        f"the {said.dropped} dropped of {said.slots} slots are not missing at random (p {lowest:.4g})",
        expected="windows that are dropped whatever the price did",
        do='look at `blindcast data describe`; to go on all the same: waive = ["missing_not_random"] in [source]',
    )
