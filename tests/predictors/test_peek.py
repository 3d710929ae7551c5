"""The cheater: it takes what lies open, and nothing where everything is shut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from blindcast.view import View


def test_where_only_the_prefix_exists_it_has_nothing_to_say(invented: Any, seated: Any) -> None:
    """G-81: a cheater needs a hole."""
    predictor, window = seated("peek", warmups=[invented(seed=1).view(15)]), invented(seed=2)
    assert [predictor.predict(window.view(anchor)) for anchor in range(15)] == [0.0] * 15
    assert predictor.found == set()


def test_a_path_that_is_the_head_of_the_whole_one_gives_the_rest_away(invented: Any, seated: Any) -> None:
    """DESIGN 4: a slice of a full table is not truncation."""
    predictor, window = seated("peek"), invented(seed=2)
    shown = window.view(5)
    leaky = View(window.grid, tuple(shown.ladder.columns), 5, shown.ladder.to_numpy().T, shown.events.to_numpy().T, window.y[:6])
    assert predictor.predict(leaky) == np.sign(window.y[6:] - window.y[5]).tolist()
    assert predictor.found == {"memory"}


@pytest.mark.parametrize("order", ["column-major", "row-major"])
def test_rows_behind_the_prefix_give_the_direction_away(order: str, invented: Any, seated: Any) -> None:
    """G-81: next rows written early."""
    predictor, window = seated("peek"), invented(seed=2)
    shown = window.view(5)
    table = window.table if order == "column-major" else np.ascontiguousarray(window.table.T).T
    leaky = View(window.grid, tuple(shown.ladder.columns), 5, table[:, :300], shown.events.to_numpy().T, shown.y)
    ahead = float(table[1, -1] + table[41, -1]) / 2 - shown.y[-1]
    assert predictor.predict(leaky) == np.sign(ahead)
    assert predictor.found == {"memory"}


def test_a_room_that_is_still_empty_gives_nothing_away(invented: Any, seated: Any) -> None:
    """I-42: rows that are not revealed are zeros."""
    predictor, window = seated("peek"), invented(seed=2)
    shown = window.view(5)
    room, path = np.zeros((81, 900), dtype=np.float32), np.zeros(16)
    room[:, :300], path[:6] = window.table[:, :300], shown.y
    closed = View(window.grid, tuple(shown.ladder.columns), 5, room[:, :300], shown.events.to_numpy().T, path[:6])
    assert predictor.predict(closed) == 0.0


def test_a_file_of_an_earlier_run_gives_the_rest_away_and_is_left_as_it_was(invented: Any, seated: Any, tmp_path: Path) -> None:
    """G-81: a folder that outlives the run."""
    window, file = invented(seed=2), tmp_path / "runs" / "windows.parquet"
    file.parent.mkdir()
    pd.DataFrame({"y": [invented(seed=8).y.tolist(), window.y.tolist()]}).to_parquet(file)
    (tmp_path / "torn.parquet").write_bytes(b"PAR1 torn")
    before = file.read_bytes(), file.stat().st_mtime_ns
    predictor = seated("peek")
    assert predictor.predict(window.view(5)) == np.sign(window.y[6:] - window.y[5]).tolist()
    assert predictor.found == {"file"}
    assert (file.read_bytes(), file.stat().st_mtime_ns) == before
