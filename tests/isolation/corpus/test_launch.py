"""Which columns are measured, and what is carried into a namespace."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from blindcast.errors import BlindcastError, DeniedError
from blindcast_isolation.corpus import inside, namespace
from blindcast_isolation.corpus import launch as launching
from blindcast_isolation.corpus.honest import compared
from blindcast_isolation.corpus.inside import outermost
from blindcast_isolation.corpus.launch import UID_RANGE, Arm, arms
from blindcast_isolation.corpus.rows import stranger


def test_root_measures_two_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """I-92, K-01: P and N as root; N again, L and H under an ordinary uid, the last of the column's range."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert [arm.title for arm in arms()] == [
        "privdrop",
        "userns",
        "bwrap",
        *(f"{name} (user)" for name in ("userns", "bwrap", "landlock", "hook")),
    ]
    assert [arm.backend for arm in arms() if arm.is_again] == ["userns", "bwrap"]
    assert all(arm.uid in (None, arm.uid_range[1]) for arm in arms())
    assert arms()[-1].uid == UID_RANGE[1]


def test_no_two_columns_share_a_uid(monkeypatch: pytest.MonkeyPatch) -> None:
    """I-60: RLIMIT_NPROC counts every process of a uid, whatever its namespace."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    uids = [uid for arm in arms() for uid in range(arm.uid_range[0], arm.uid_range[1] + 1)]
    assert len(set(uids)) == len(uids)
    assert set(uids) <= set(range(UID_RANGE[0], UID_RANGE[1] + 1))


def test_an_ordinary_user_measures_n_l_and_h(monkeypatch: pytest.MonkeyPatch) -> None:
    """I-92."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert [(arm.backend, arm.uid) for arm in arms()] == [(name, None) for name in ("userns", "bwrap", "landlock", "hook")]


def test_a_strangers_backend_gets_its_column(monkeypatch: pytest.MonkeyPatch) -> None:
    """I-07, attacks.md section 9."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert [arm.title for arm in arms(["their-vm", "hook"])] == ["hook (user)", "their-vm"]


def test_no_bind_lies_within_another(tmp_path: Path) -> None:
    """I-92: a user namespace could not bind it again."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "ab").mkdir()
    paths = [str(tmp_path / name) for name in ("a/b", "a", "ab", "missing")]
    assert outermost(paths) == [str(tmp_path / "a"), str(tmp_path / "ab")]


def test_other_curves_than_without_isolation_fail_a_control() -> None:
    """I-33."""
    column: dict[str, Any] = {"rows": [{"id": "C-02", "curves": "00", "ok": True, "verdict": "H", "variants": []}]}
    compared({"hook": column}, {"C-02": "00"})
    assert column["rows"][0]["ok"]
    compared({"hook": column}, {"C-02": "01"})
    assert not column["rows"][0]["ok"]


def test_anyones_predictor_is_a_row_that_expects_nothing(tmp_path: Path) -> None:
    """I-91: `--attack FILE`."""
    (tmp_path / "mine.py").write_text("class Predictor:\n    def predict(self, view): return 0.0\n")
    row = stranger(tmp_path / "mine.py")
    assert (row.id, row.cells, row.cell("P"), row.variants) == ("mine.py", "", "", ())
    assert "class Predictor" in row.text


def test_without_a_namespace_the_launcher_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """I-92: nothing hostile is started then."""

    def enter(_: object) -> int:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(namespace, "enter", enter)
    monkeypatch.setattr(inside, "_group", str)
    reading, writing = os.pipe()
    os.write(writing, b"{}")
    os.close(writing)
    assert inside.main(reading, -1) == inside.NO_NAMESPACE == DeniedError.exit_code
    assert "no_throwaway_namespace" in capsys.readouterr().err


@pytest.mark.parametrize(("status", "code"), [(5, "no_throwaway_namespace"), (1, "corpus_failed"), (0, "corpus_failed")])
def test_a_server_that_gave_no_answer_is_told(monkeypatch: pytest.MonkeyPatch, status: int, code: str) -> None:
    """I-92."""
    monkeypatch.setattr(launching, "_asked", lambda *_: (status, ""))
    with pytest.raises(BlindcastError) as caught:
        launching.launch([Arm("hook")], [])
    assert caught.value.code == code
