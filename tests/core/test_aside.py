"""A run directory while it is written (DESIGN 7, grading.md G-27 and G-95)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from blindcast.aside import COMMITS, Aside, new_run_id, read_commits, write_json
from blindcast.errors import FaultError
from blindcast.journal import Journal

RUN_ID = "20260102T030405Z-00ff00"


def begun(home: Path, run_id: str = RUN_ID) -> Aside:
    return Aside.begin(home, run_id, {"run_id": run_id})


def sealed(aside: Aside, links: int) -> None:
    journal = Journal(aside.folder / "journal.bin")
    for k in range(links):
        window, anchor = divmod(k, 2)
        label = b"refused:died" if k == links - 1 else b"set:"
        journal.store(window, anchor, label, np.full(2 - anchor, 0.5 + k).tobytes(), bytes([k % 256]) * 32, bytes(32))
    journal.close()


def test_a_run_id_says_when_and_six_digits() -> None:
    """DESIGN 7: `<UTC>-<6 hex>`."""
    run_id = new_run_id(datetime(2026, 1, 2, 3, 4, 5, 999_999, tzinfo=UTC))
    assert run_id[:17] == "20260102T030405Z-"
    assert len(run_id) == 23
    int(run_id[17:], 16)


def test_a_run_id_follows_the_one_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLINDCAST_CLOCK", "2026-01-02T03:04:05Z")
    assert new_run_id().startswith("20260102T030405Z-")


def test_what_is_begun_is_hidden_and_the_owners_alone(tmp_path: Path) -> None:
    aside = begun(tmp_path)
    assert aside.folder == tmp_path / "runs" / f".{RUN_ID}"
    assert aside.folder.stat().st_mode & 0o777 == 0o700
    assert json.loads((aside.folder / "begun.json").read_text()) == {"run_id": RUN_ID}
    aside.release()
    aside.release()


def test_what_is_finished_is_renamed_and_holds_the_record_alone(tmp_path: Path) -> None:
    aside = begun(tmp_path)
    sealed(aside, 3)
    aside.write_commits()
    write_json(aside.folder / "state.json", {"status": "success"})
    final = aside.finish()
    assert final == tmp_path / "runs" / RUN_ID
    assert sorted(path.name for path in final.iterdir()) == ["commits.parquet", "state.json"]
    assert [path.name for path in (tmp_path / "runs").iterdir()] == [RUN_ID]


def test_what_is_discarded_leaves_nothing(tmp_path: Path) -> None:
    aside = begun(tmp_path)
    (aside.folder / "predictor").mkdir()
    aside.discard()
    assert list((tmp_path / "runs").iterdir()) == []


def test_an_id_that_is_taken_leaves_the_other_run_alone(tmp_path: Path) -> None:
    first = begun(tmp_path)
    with pytest.raises(FaultError) as caught:
        begun(tmp_path)
    assert caught.value.code == "run_not_written"
    assert (first.folder / "begun.json").exists()
    first.release()


def test_a_home_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    with pytest.raises(FaultError) as caught:
        begun(tmp_path / "home")
    assert (caught.value.code, caught.value.exit_code) == ("run_not_written", 6)


def test_commits_hold_a_row_per_link(tmp_path: Path) -> None:
    """G-27: `window, anchor, kind, code, curve`, and DESIGN 7's prefix_sha256 and link."""
    aside = begun(tmp_path)
    sealed(aside, 3)
    aside.write_commits()
    table = pq.read_table(aside.folder / "commits.parquet")
    assert table.schema == COMMITS
    assert table.to_pylist() == [
        dict(zip(COMMITS.names, row, strict=True))
        for row in (
            (0, 0, "set", None, [0.5, 0.5], "00" * 32, "00" * 32),
            (0, 1, "set", None, [1.5], "01" * 32, "00" * 32),
            (1, 0, "refused", "died", [2.5, 2.5], "02" * 32, "00" * 32),
        )
    ]
    aside.release()


def test_commits_are_written_in_chunks_and_none_is_lost(tmp_path: Path) -> None:
    aside = begun(tmp_path)
    sealed(aside, 9001)
    aside.write_commits()
    file = pq.ParquetFile(aside.folder / "commits.parquet")
    assert file.metadata.num_rows == 9001
    assert file.num_row_groups > 1
    windows = pq.read_table(aside.folder / "commits.parquet", columns=["window"])["window"].to_pylist()
    assert windows == [k // 2 for k in range(9001)]
    aside.release()


def test_a_run_without_a_link_has_empty_commits(tmp_path: Path) -> None:
    aside = begun(tmp_path)
    sealed(aside, 0)
    aside.write_commits()
    assert pq.read_table(aside.folder / "commits.parquet").num_rows == 0
    assert not read_commits(aside.folder / "commits.parquet", 2, 2).any()
    aside.release()


def test_curves_are_flat_where_nothing_was_sealed(tmp_path: Path) -> None:
    """G-24: after a window's last row, and in windows that were not reached."""
    aside = begun(tmp_path)
    sealed(aside, 3)
    aside.write_commits()
    curves = read_commits(aside.folder / "commits.parquet", 3, 2)
    assert curves.tolist() == [[[0, 0.5, 0.5], [0, 0, 1.5]], [[0, 2.5, 2.5], [0, 0, 0]], [[0, 0, 0], [0, 0, 0]]]
    aside.release()


def test_digests_cover_the_record_and_nothing_that_will_go(tmp_path: Path) -> None:
    """G-95: sha256 of each file, by POSIX path."""
    aside = begun(tmp_path)
    sealed(aside, 1)
    (aside.folder / "predictor" / "model").mkdir(parents=True)
    (aside.folder / "predictor" / "model" / "w.bin").write_bytes(b"w")
    (aside.folder / "run.json").write_bytes(b"{}")
    write_json(aside.folder / "state.json", {})
    assert aside.digests() == {"predictor/model/w.bin": sha256(b"w").hexdigest(), "run.json": sha256(b"{}").hexdigest()}
    aside.release()


def test_json_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    """DESIGN 8: strict JSON; a document that cannot be told leaves the old file."""
    write_json(tmp_path / "run.json", {"a": "é"})
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "run.json", {"a": float("nan")})
    assert json.loads((tmp_path / "run.json").read_text(encoding="utf-8")) == {"a": "é"}
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]
