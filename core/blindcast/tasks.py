"""Windows to splits to tasks: pure arithmetic over window positions (grading.md section 2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from attrs import field, frozen
from attrs.validators import ge

from blindcast.errors import DataError, UsageError

__all__ = ["Counts", "Split", "SplitKind", "Task", "cap", "check_pool", "counts", "overlap", "overlap_line", "task"]

SplitKind = Literal["train", "test"]


@frozen
class Split:
    """The `[split]` table, in windows: the last `test_windows` are test; `warmups` are revealed before `targets`."""

    test_windows: int = field(default=96, validator=ge(0))
    targets: int = field(default=96, validator=ge(1))
    warmups: int = field(default=4, validator=ge(1))
    embargo_windows: int = field(default=0, validator=ge(0))


class Counts(NamedTuple):
    """How many tasks a split makes (G-11)."""

    train: int
    test: int


class Task(NamedTuple):
    """Positions of a task's windows, in time order (G-12)."""

    warmups: tuple[int, ...]
    targets: range


def _split(split: Split | Mapping[str, int]) -> Split:
    return split if isinstance(split, Split) else Split(**split)


def _train_pool(windows: int, split: Split) -> int:
    return windows - split.test_windows - split.embargo_windows if split.test_windows else windows


def counts(windows: int, split: Split | Mapping[str, int]) -> Counts:
    """How many train and test tasks `windows` windows make. Raises DataError `pool_too_small` (G-11, G-16).

    >>> counts(288, Split())
    Counts(train=93, test=1)
    """
    split = _split(split)
    check_pool(windows, split)
    lead = split.warmups + split.embargo_windows
    train = max(0, _train_pool(windows, split) - lead - split.targets + 1)
    return Counts(train, 1 if split.test_windows else 0)


def check_pool(windows: int, split: Split) -> None:
    """Refuse a pool that makes no task at all; it is never shrunk to fit (G-16)."""
    lead = split.warmups + split.embargo_windows
    needed = split.test_windows + lead if split.test_windows else lead + split.targets
    if windows >= needed:
        return
    largest = max(0, windows - lead)
    key = "test_windows" if split.test_windows else "targets"
    remedy = f"at most {key} = {largest} fits beside {split.warmups} warm-ups" if largest else "lower `warmups` too"
    raise DataError(
        "pool_too_small",
        f"the pool has {windows} windows, this split needs at least {needed}",
        expected=f"test_windows {split.test_windows} + embargo_windows {split.embargo_windows} + warmups {split.warmups}"
        + ("" if split.test_windows else f" + targets {split.targets}"),
        do=f"import more data, or edit [split]: {remedy}; shorter windows ([grid] window_s) make more of them",
        windows=windows,
        needed=needed,
        largest_targets=largest,
    )


def task(windows: int, split: Split | Mapping[str, int], kind: SplitKind, index: int, seed: int) -> Task:
    """The positions of task `(kind, index)`: the same in every process and on every machine (G-12, G-14, G-15).

    Raises UsageError `bad_index` unless index is an int with 0 <= index < count (G-17).

    >>> task(288, Split(), "train", 50, 0)
    Task(warmups=(17, 30, 31, 42), targets=range(54, 150))
    """
    split = _split(split)
    if kind not in ("train", "test"):
        raise UsageError("bad_split", f"there is no split {kind!r}", expected="train or test", do="name one of the two")
    count = getattr(counts(windows, split), kind)
    if type(index) is not int or not 0 <= index < count:
        raise UsageError(
            "bad_index",
            f"there is no {kind} task {index!r}",
            expected=f"a whole number from 0 to {count - 1}" if count else f"nothing: this pool and split make no {kind} task",
            do="`blindcast task show` lists how many tasks there are",
            index=repr(index),
            tasks=count,
        )
    k, embargo = split.warmups, split.embargo_windows
    if kind == "test":
        first = windows - split.test_windows
        return Task(tuple(range(first - embargo - k, first - embargo)), range(first, windows))
    start = k + embargo + index
    targets = range(start, start + split.targets)
    assert targets.stop <= _train_pool(windows, split), "purge: a train window would reach into the test day (G-13)"
    return Task(_draw(k, index, seed), targets)


def _draw(warmups: int, index: int, seed: int) -> tuple[int, ...]:
    """`warmups` positions out of [0, warmups + index), from raw generator words (G-14)."""
    generator = np.random.PCG64(np.random.SeedSequence([seed, index]))
    pool = list(range(warmups + index))
    for a in range(warmups):
        b = a + int(generator.random_raw()) % (warmups + index - a)
        pool[a], pool[b] = pool[b], pool[a]
    return tuple(sorted(pool[:warmups]))


def overlap(tasks: int, targets: int) -> dict[str, Any] | None:
    """How much `tasks` sliding tasks of `targets` windows share; None where there is no task (G-19).

    >>> overlap(93, 96)["independent_sets"], overlap(93, 96)["mean_overlap"]
    (1.96, 0.6736)
    """
    tasks, targets = int(tasks), int(targets)
    if tasks == 0:
        return None
    distinct = tasks - 1 + targets
    shared = sum((tasks - lag) * (targets - lag) for lag in range(1, min(tasks, targets)))
    pairs = tasks * (tasks - 1) // 2
    return {
        "tasks": tasks,
        "targets": targets,
        "distinct_windows": distinct,
        "independent_sets": round(distinct / targets, 2),
        "disjoint_tasks": (tasks - 1) // targets + 1,
        "neighbour_overlap": round((targets - 1) / targets, 4) if tasks > 1 else 0.0,
        "mean_overlap": round(shared / targets / pairs, 4) if pairs else 0.0,
    }


def overlap_line(meter: Mapping[str, Any] | None) -> str:
    """The meter as one line for people (G-19)."""
    if meter is None:
        return "0 train tasks"
    if meter["tasks"] == 1:
        return f"1 task = 1.0 independent target sets ({meter['distinct_windows']} distinct windows)"
    return (
        f"{meter['tasks']} tasks = {meter['independent_sets']} independent target sets ({meter['distinct_windows']} distinct windows; "
        f"neighbours share {meter['targets'] - 1} of {meter['targets']}, two random ones {100 * meter['mean_overlap']:.0f} %)"
    )


def cap(text: str | None, targets: int) -> int | None:
    """BLINDCAST_MAX_TARGETS as a cap on a task of `targets`; None where it changes nothing (G-18).

    Raises UsageError `max_targets_invalid` for anything but a whole number >= 1.

    >>> cap("2", 96), cap("500", 96), cap("", 96)
    (2, None, None)
    """
    if text is None or not text.strip():
        return None
    if not text.strip().isascii() or not text.strip().isdigit() or len(text.strip()) > 18 or int(text) < 1:
        raise UsageError(
            "max_targets_invalid",
            f"BLINDCAST_MAX_TARGETS is {text!r}",
            expected="a whole number >= 1, or empty",
            do="unset it, or set it to how many targets of a task to walk",
        )
    return int(text) if int(text) < targets else None
