"""Splice, gaps and rows of the book replayer, by the vectors of data.md section 7."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from blindcast.errors import DataError
from blindcast_datasources.binance import Binance
from blindcast_datasources.columns import NULL

START_NS = 1_735_689_600_000 * 10**6
LATTICE: dict[str, Any] = {"tick": 1, "lot": 1, "levels": 2}


def test_a_snapshot_older_than_the_stream_in_step_is_ignored(tmp_path: Path, feed: Callable[..., Any], read: Callable[..., Any]) -> None:
    """DV-06, DR-08."""
    lines = (
        feed()
        .snapshot(50, {100: 1}, {101: 1})
        .diff(51, 51, {100: 2})
        .diff(52, 52, {100: 3})
        .snapshot(51, {100: 2}, {101: 1})
        .diff(53, 53, {99: 4})
    )
    got = read(Binance(**LATTICE), lines.write(tmp_path / "a"))
    assert [got.side(row, "bid") for row in range(3)] == [[(100, 2)], [(100, 3)], [(100, 3), (99, 4)]]
    assert got.counts["old_snapshots"] == 1
    assert not got.report.gaps


def test_stale_diffs_are_dropped_at_the_splice(tmp_path: Path, feed: Callable[..., Any], read: Callable[..., Any]) -> None:
    """DV-07, DR-09."""
    lines = feed().diff(48, 48, {101: 5}).diff(49, 50, {102: 7}).snapshot(50, {100: 1}, {102: 1}).diff(51, 51, {100: 2})
    got = read(Binance(**LATTICE), lines.write(tmp_path / "a"))
    assert len(got.rows) == 1
    assert (got.side(0, "bid"), got.side(0, "ask")) == ([(100, 2)], [(102, 1)])
    assert got.counts["stale_diffs"] == 2


def test_no_level_survives_a_second_snapshot(tmp_path: Path, feed: Callable[..., Any], read: Callable[..., Any]) -> None:
    """DV-08, DR-10."""
    lines = feed(futures=True).snapshot(50, {101: 1, 100: 1}, {103: 1}, at_ms=0).snapshot(60, {100: 2}, {103: 1}, at_ms=100)
    got = read(Binance(**LATTICE), lines.write(tmp_path / "a"))
    assert got.side(1, "bid") == [(100, 2)]


def test_a_snapshot_older_than_the_stream_waits_for_a_newer_one(tmp_path: Path, feed: Callable[..., Any], read: Callable[..., Any]) -> None:
    """DV-09, DR-12."""
    lines = feed().snapshot(50, {100: 1}, {101: 1}).diff(200, 201).snapshot(201, {100: 1}, {101: 1}).diff(202, 203, {100: 4})
    got = read(Binance(**LATTICE), lines.write(tmp_path / "a"))
    assert got.side(0, "bid") == [(100, 4)]
    assert got.rows.flags.tolist() == [11]
    assert got.counts["gaps"] == 1


def test_nothing_is_shown_between_a_break_and_the_snapshot_that_mends_it(
    tmp_path: Path, feed: Callable[..., Any], read: Callable[..., Any]
) -> None:
    """DV-10, DR-13."""
    lines = feed().snapshot(50, {100: 1}, {101: 1}).diff(51, 51, {100: 2}, at_ms=100).diff(53, 53, at_ms=200).diff(54, 54, at_ms=300)
    lines.snapshot(60, {98: 1}, {99: 1}).diff(61, 61, {98: 2}, at_ms=1000)
    got = read(Binance(**LATTICE), lines.write(tmp_path / "a"))
    assert (got.rows.ts - START_NS).tolist() == [100 * 10**6, 1000 * 10**6]
    assert got.rows.flags.tolist() == [9, 11]
    assert (got.side(1, "bid"), got.side(1, "ask")) == ([(98, 2)], [(99, 1)])
    (gap,) = got.report.gaps
    assert (gap.from_ns - START_NS, gap.to_ns - START_NS) == (100 * 10**6, 1000 * 10**6)


def test_gap_continue_flags_every_state_until_the_snapshot(tmp_path: Path, feed: Callable[..., Any], read: Callable[..., Any]) -> None:
    """B-05."""
    lines = feed().snapshot(50, {100: 1}, {101: 1}).diff(51, 51, {100: 2}).diff(53, 53, {100: 3}).diff(54, 54, {100: 4})
    lines.snapshot(54, {100: 5}, {101: 1}).diff(55, 55, {100: 6})
    got = read(Binance(**LATTICE, gap="continue"), lines.write(tmp_path / "a"))
    assert [got.side(row, "bid")[0][1] for row in range(4)] == [2, 3, 4, 6]
    assert (got.rows.flags & 2).tolist() == [0, 2, 2, 2]
    assert len(got.report.gaps) == 1


def test_a_gap_that_is_never_mended_has_no_end(tmp_path: Path, feed: Callable[..., Any], read: Callable[..., Any]) -> None:
    """B-05."""
    lines = feed().snapshot(50, {100: 1}, {101: 1}).diff(51, 51, {100: 2}).diff(99, 99)
    got = read(Binance(**LATTICE), lines.write(tmp_path / "a"))
    assert [gap.to_ns for gap in got.report.gaps] == [None]
    assert "after u 51" in got.report.gaps[0].reason


def test_overlapping_ranges_are_no_gap_on_spot(tmp_path: Path, feed: Callable[..., Any], read: Callable[..., Any]) -> None:
    """DR-11."""
    lines = feed().snapshot(50, {100: 1}, {101: 1}).diff(51, 55, {100: 2}).diff(53, 58, {100: 3})
    got = read(Binance(**LATTICE), lines.write(tmp_path / "a"))
    assert len(got.rows) == 2
    assert "gaps" not in got.counts


def test_futures_follow_by_the_previous_id(tmp_path: Path, feed: Callable[..., Any], read: Callable[..., Any]) -> None:
    """B-04: pu <= L first, then pu = last."""
    lines = feed(futures=True).diff(40, 45, pu=39).snapshot(50, {100: 1}, {101: 1}, at_ms=150)
    lines.diff(48, 60, {100: 2}, pu=45).diff(70, 80, {100: 3}, pu=60).diff(90, 95, {100: 4}, pu=81)
    got = read(Binance(**LATTICE), lines.write(tmp_path / "a"))
    assert [got.side(row, "bid")[0][1] for row in range(len(got.rows))] == [1, 2, 3]
    assert got.counts["stale_diffs"] == 1
    assert got.counts["gaps"] == 1


def test_a_crossed_snapshot_is_a_row_that_says_so(tmp_path: Path, feed: Callable[..., Any], read: Callable[..., Any]) -> None:
    """DV-12, DR-16."""
    lines = feed(futures=True).snapshot(50, {"40790.35": 1}, {"40789.41": 1}, at_ms=0)
    got = read(Binance(tick="0.01", lot=1, levels=2), lines.write(tmp_path / "a"))
    assert got.rows.flags.tolist() == [25]
    assert got.counts["crossed_states"] == 1


@pytest.mark.parametrize("zero", ["0", "0.000", "0E-8", "-0.0"])
def test_every_spelling_of_zero_deletes(tmp_path: Path, feed: Callable[..., Any], read: Callable[..., Any], zero: str) -> None:
    """DR-17."""
    lines = feed().snapshot(50, {100: 1, 99: 1}, {101: 1}).diff(51, 51, {100: zero})
    got = read(Binance(**LATTICE), lines.write(tmp_path / "a"))
    assert got.side(0, "bid") == [(99, 1)]


def test_missing_levels_are_null_at_the_tail(tmp_path: Path, feed: Callable[..., Any], read: Callable[..., Any]) -> None:
    """DV-13, DR-18."""
    lines = feed(futures=True).snapshot(50, {100 - k: 1 for k in range(20)}, {101 + k: 2 for k in range(8)}, at_ms=0)
    got = read(Binance(tick=1, lot=1), lines.write(tmp_path / "a"))
    assert got.rows.flags.tolist() == [9]
    assert got.rows.levels[0, 2].tolist() == [*range(101, 109), *[NULL] * 12]


def test_a_level_beyond_what_the_snapshot_covered_is_flagged_or_cut(
    tmp_path: Path, feed: Callable[..., Any], read: Callable[..., Any]
) -> None:
    """B-07, DR-07."""
    lines = feed().snapshot(50, {100: 1, 99: 1}, {101: 1, 102: 1}).diff(51, 51, {95: 7, 99: 0})
    path = lines.write(tmp_path / "a")
    kept = read(Binance(**LATTICE, snapshot_levels=2), path)
    assert (kept.side(0, "bid"), int(kept.rows.flags[0]) & 128) == ([(100, 1), (95, 7)], 128)
    cut = read(Binance(**LATTICE, snapshot_levels=2, beyond="null"), path)
    assert (cut.side(0, "bid"), int(cut.rows.flags[0]) & 136) == ([(100, 1)], 8)
    whole = read(Binance(**LATTICE, snapshot_levels=3), path)
    assert not int(whole.rows.flags[0]) & 128


def test_uncross_removes_the_older_level_only_when_asked(tmp_path: Path, feed: Callable[..., Any], read: Callable[..., Any]) -> None:
    """B-06."""
    path = feed().snapshot(50, {100: 1, 99: 1}, {102: 1, 103: 1}).diff(51, 51, {102: 3}).diff(52, 52, {103: 4}).write(tmp_path / "a")
    marked = read(Binance(**LATTICE), path)
    assert (marked.rows.flags & 64).tolist() == [64, 0]
    assert (marked.rows.flags & 16).tolist() == [0, 16]
    dropped = read(Binance(**LATTICE, uncross="drop_older"), path)
    assert (dropped.rows.flags & 20).tolist() == [0, 4]
    assert dropped.side(1, "ask") == [(103, 1)]
    assert dropped.counts["purged"] == 1


def test_a_falling_time_is_clamped_and_flagged(tmp_path: Path, feed: Callable[..., Any], read: Callable[..., Any]) -> None:
    """DR-22."""
    lines = feed().snapshot(50, {100: 1}, {101: 1}).diff(51, 51, {100: 2}, at_ms=200).diff(52, 52, {100: 3}, at_ms=150)
    got = read(Binance(**LATTICE), lines.write(tmp_path / "a"))
    assert (got.rows.ts - START_NS).tolist() == [200 * 10**6] * 2
    assert (got.rows.flags & 32).tolist() == [0, 32]
    assert got.counts["clock"] == 1


def test_rows_change_beats_once_a_second_through_a_quiet_feed(tmp_path: Path, feed: Callable[..., Any], read: Callable[..., Any]) -> None:
    """B-02."""
    lines = feed().snapshot(50, {100: 1}, {101: 1})
    for k in range(25):
        lines.diff(51 + k, 51 + k, {90: k + 1})
    path = lines.write(tmp_path / "a")
    got = read(Binance(tick=1, lot=1, levels=1), path)
    assert ((got.rows.ts - START_NS) // 10**6).tolist() == [100, 1100, 2100]
    assert got.counts["unchanged"] == 22
    assert len(read(Binance(tick=1, lot=1, levels=1, rows="message"), path).rows) == 25


def test_rows_on_a_grid_show_the_newest_state_none_older_than_ten_seconds(
    tmp_path: Path, feed: Callable[..., Any], read: Callable[..., Any]
) -> None:
    """B-02."""
    lines = (
        feed()
        .snapshot(50, {100: 1}, {101: 1})
        .diff(51, 51, {100: 2}, at_ms=900)
        .diff(52, 52, {100: 3}, at_ms=1900)
        .diff(53, 53, {100: 4}, at_ms=20_000)
    )
    got = read(Binance(**LATTICE, rows="grid:1000"), lines.write(tmp_path / "a"))
    seconds = ((got.rows.ts - START_NS) // 10**9).tolist()
    assert seconds == [1, *range(2, 12), 20]
    assert [got.side(row, "bid")[0][1] for row in (0, 1, -1)] == [2, 3, 4]


def test_the_grid_does_not_hand_on_a_frozen_book(tmp_path: Path, feed: Callable[..., Any], read: Callable[..., Any]) -> None:
    """B-02, DR-13."""
    lines = feed().snapshot(50, {100: 1}, {101: 1}).diff(51, 51, {100: 2}, at_ms=900).diff(60, 60, at_ms=1500)
    lines.snapshot(60, {98: 1}, {99: 1}).diff(61, 61, {98: 2}, at_ms=3500).diff(62, 62, {98: 3}, at_ms=4000)
    got = read(Binance(**LATTICE, rows="grid:1000"), lines.write(tmp_path / "a"))
    assert ((got.rows.ts - START_NS) // 10**9).tolist() == [4]


def test_diffs_without_any_snapshot_are_refused(tmp_path: Path, feed: Callable[..., Any], read: Callable[..., Any]) -> None:
    """DI-10."""
    with pytest.raises(DataError) as refused:
        read(Binance(), feed().diff(51, 51, {100: 1}).write(tmp_path / "a"))
    assert refused.value.code == "no_snapshot"
