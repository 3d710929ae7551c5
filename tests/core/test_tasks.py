"""Windows to splits to tasks (grading.md section 2, GV-48 to GV-63, GV-108 to GV-120)."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blindcast.errors import DataError, UsageError
from blindcast.tasks import Counts, Split, SplitKind, cap, check_pool, counts, overlap, overlap_line, task

DAY = Split()  # 96 test windows, 96 targets, 4 warm-ups


def split_of(test: int, targets: int, warmups: int, embargo: int) -> Split:
    return Split(test_windows=test, targets=targets, warmups=warmups, embargo_windows=embargo)


@pytest.mark.parametrize(
    ("windows", "split", "train", "test"),
    [
        (288, DAY, 93, 1),  # GV-48
        (288, split_of(96, 96, 4, 1), 91, 1),  # GV-49
        (196, DAY, 1, 1),  # GV-50
        (195, DAY, 0, 1),  # GV-51
        (40, split_of(8, 10, 2, 0), 21, 1),  # GV-53
        (288, split_of(96, 96, 4, 4), 85, 1),  # GV-54
        (288, split_of(96, 140, 4, 0), 49, 1),  # GV-55
        (288, split_of(0, 96, 4, 0), 189, 0),  # GV-56
        (100, DAY, 0, 1),
        (100, split_of(0, 96, 4, 0), 1, 0),
    ],
)
def test_a_split_makes_so_many_tasks(windows: int, split: Split, train: int, test: int) -> None:
    """G-11, GV-48 to GV-56."""
    assert counts(windows, split) == Counts(train, test)


def test_a_split_may_be_the_table_itself() -> None:
    """Grading.md section 0: `split` is the `[split]` table."""
    assert counts(288, {"test_windows": 96, "targets": 96, "warmups": 4, "embargo_windows": 0}) == (93, 1)


@pytest.mark.parametrize(
    ("windows", "split", "needed", "largest"),
    [
        (99, DAY, 100, 95),  # GV-52
        (103, split_of(96, 96, 4, 4), 104, 95),
        (99, split_of(0, 96, 4, 0), 100, 95),
        (0, DAY, 100, 0),
    ],
)
def test_a_pool_that_is_too_small_is_refused_with_what_would_do(windows: int, split: Split, needed: int, largest: int) -> None:
    """G-16, GV-52: never shrunk to fit; the smallest pool and the largest count are named."""
    with pytest.raises(DataError) as caught:
        counts(windows, split)
    assert (caught.value.code, caught.value.exit_code) == ("pool_too_small", 3)
    assert caught.value.detail == {"windows": windows, "needed": needed, "largest_targets": largest}
    assert str(needed) in caught.value.what
    check_pool(needed, split)


@pytest.mark.parametrize(
    ("kind", "index", "seed", "embargo", "warmups", "targets"),
    [
        ("train", 0, 0, 0, (0, 1, 2, 3), range(4, 100)),  # GV-57
        ("train", 50, 0, 0, (17, 30, 31, 42), range(54, 150)),  # GV-58
        ("train", 92, 0, 0, (0, 14, 25, 89), range(96, 192)),  # GV-59
        ("test", 0, 0, 0, (188, 189, 190, 191), range(192, 288)),  # GV-60
        ("train", 50, 1, 0, (1, 13, 25, 53), range(54, 150)),  # GV-61
        ("test", 0, 0, 4, (184, 185, 186, 187), range(192, 288)),  # GV-62
        ("train", 1, 0, 0, (0, 1, 3, 4), range(5, 101)),  # GV-63
    ],
)
def test_a_task_names_its_windows(kind: SplitKind, index: int, seed: int, embargo: int, warmups: tuple[int, ...], targets: range) -> None:
    """G-12, G-14, GV-57 to GV-63."""
    assert task(288, split_of(96, 96, 4, embargo), kind, index, seed) == (warmups, targets)


def test_the_test_task_holds_every_test_window_whatever_targets_says() -> None:
    """G-12."""
    assert task(288, split_of(96, 10, 4, 0), "test", 0, 0).targets == range(192, 288)


def test_a_task_is_the_same_in_another_process() -> None:
    """G-15."""
    code = "from blindcast.tasks import *; print([task(288, Split(), 'train', i, 7) for i in range(93)])"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "5"}).stdout
    assert told.strip() == str([task(288, DAY, "train", i, 7) for i in range(93)])


SPLITS = st.builds(split_of, st.integers(0, 20), st.integers(1, 20), st.integers(1, 6), st.integers(0, 5))


@settings(deadline=None)
@given(SPLITS, st.integers(0, 80), st.integers(0, 2**63 - 1))
def test_warm_ups_end_before_the_targets_and_train_before_the_test_day(split: Split, more: int, seed: int) -> None:
    """G-12, G-13: the embargo lies unused, no train window reaches into it or into the test day."""
    windows = split.test_windows + split.embargo_windows + split.warmups + (0 if split.test_windows else split.targets) + more
    made = counts(windows, split)
    for kind, count in (("train", made.train), ("test", made.test)):
        for index in range(count):
            warmups, targets = task(windows, split, kind, index, seed)  # type: ignore[arg-type]  # a Literal in a loop
            assert len(warmups) == len(set(warmups)) == split.warmups
            assert list(warmups) == sorted(warmups)
            assert warmups[0] >= 0
            assert warmups[-1] < targets.start - split.embargo_windows
            assert len(targets) == (split.test_windows if kind == "test" else split.targets)
            end = windows if kind == "test" or not split.test_windows else windows - split.test_windows - split.embargo_windows
            assert targets.stop <= end


@settings(deadline=None)
@given(st.integers(1, 6), st.integers(0, 2**63 - 1))
def test_index_0_gets_exactly_the_first_windows(warmups: int, seed: int) -> None:
    """G-14."""
    assert task(60, split_of(0, 10, warmups, 0), "train", 0, seed).warmups == tuple(range(warmups))


@pytest.mark.parametrize("index", [-1, 93, True, 0.0, "0", None])
def test_an_index_is_a_whole_number_below_the_count(index: Any) -> None:
    """G-17, GV-113 to GV-115."""
    with pytest.raises(UsageError) as caught:
        task(288, DAY, "train", index, 0)
    assert (caught.value.code, caught.value.exit_code) == ("bad_index", 2)


def test_the_last_index_is_one_below_the_count() -> None:
    """GV-116."""
    assert task(288, DAY, "train", 92, 0).targets == range(96, 192)


def test_there_is_no_train_task_where_the_count_is_0() -> None:
    """G-16, GV-51: allowed, and no index will do."""
    with pytest.raises(UsageError, match="no train task") as caught:
        task(195, DAY, "train", 0, 0)
    assert caught.value.code == "bad_index"


def test_an_unknown_split_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        task(288, DAY, "dev", 0, 0)  # type: ignore[arg-type]  # what a user may type
    assert caught.value.code == "bad_split"


@pytest.mark.parametrize(
    ("tasks", "targets", "distinct", "independent", "disjoint", "mean"),
    [
        (93, 96, 188, 1.96, 1, 0.6736),  # GV-48
        (91, 96, 186, 1.94, 1, None),  # GV-49
        (1, 96, 96, 1.0, 1, 0.0),  # GV-50
        (21, 10, 30, 3.0, 3, 0.3714),  # GV-53
        (49, 140, 188, 1.34, 1, 0.881),  # GV-55
        (189, 96, 284, 2.96, 2, None),  # GV-56
    ],
)
def test_the_meter_says_how_much_tasks_share(
    tasks: int, targets: int, distinct: int, independent: float, disjoint: int, mean: float | None
) -> None:
    """G-19."""
    meter = overlap(tasks, targets)
    assert meter is not None
    assert (meter["distinct_windows"], meter["independent_sets"], meter["disjoint_tasks"]) == (distinct, independent, disjoint)
    assert meter["neighbour_overlap"] == (round((targets - 1) / targets, 4) if tasks > 1 else 0.0)
    assert mean is None or meter["mean_overlap"] == mean


@settings(deadline=None)
@given(st.integers(2, 40), st.integers(1, 40))
def test_the_mean_overlap_is_that_of_all_pairs(tasks: int, targets: int) -> None:
    """G-19: the mean of max(0, n - |a - b|) / n over pairs."""
    pairs = [max(0, targets - (b - a)) / targets for a in range(tasks) for b in range(a + 1, tasks)]
    meter = overlap(tasks, targets)
    assert meter is not None
    assert abs(meter["mean_overlap"] - sum(pairs) / len(pairs)) <= 0.50001e-4


def test_no_task_has_no_meter() -> None:
    """G-19, GV-51."""
    assert overlap(0, 96) is None
    assert overlap_line(None) == "0 train tasks"


def test_the_meter_as_a_line() -> None:
    """G-19."""
    assert overlap_line(overlap(93, 96)) == (
        "93 tasks = 1.96 independent target sets (188 distinct windows; neighbours share 95 of 96, two random ones 67 %)"
    )
    assert overlap_line(overlap(1, 96)) == "1 task = 1.0 independent target sets (96 distinct windows)"


@pytest.mark.parametrize(("text", "expected"), [("2", 2), ("500", None), ("", None), (None, None), (" 7 ", 7), ("96", None), ("95", 95)])
def test_a_cap_counts_the_first_targets(text: str | None, expected: int | None) -> None:
    """G-18, GV-108, GV-109, GV-111."""
    assert cap(text, 96) == expected


@pytest.mark.parametrize("text", ["0", "-3", "1.0", "two", "1e3", "+2", "\u0663", "0x10", "1_0"])
def test_a_cap_that_is_no_whole_number_is_refused(text: str) -> None:
    """G-18, GV-110, GV-112."""
    with pytest.raises(UsageError) as caught:
        cap(text, 96)
    assert (caught.value.code, caught.value.exit_code) == ("max_targets_invalid", 2)


def test_the_meter_of_numpy_counts_is_plain_json() -> None:
    """G-19."""
    assert json.loads(json.dumps(overlap(np.int64(93), np.int64(96)))) == overlap(93, 96)  # type: ignore[arg-type]  # numpy on purpose
