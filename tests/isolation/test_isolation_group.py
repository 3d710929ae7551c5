"""`blindcast isolation test`, with the columns given instead of measured: tests/isolation/corpus measures."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from blindcast.cli import main
from blindcast.errors import DeniedError
from blindcast_isolation.corpus import launch as launching
from blindcast_isolation.corpus.launch import Arm
from blindcast_isolation.corpus.rows import Row

Run = Callable[..., int]


def column(rows: Sequence[Row], verdict: str) -> dict[str, Any]:
    shown = [
        {
            "id": row.id,
            "name": row.name,
            "verdict": verdict,
            "expected": row.cell("P"),
            "ok": row.agrees("P", verdict),
            "variants": [{"name": "open", "verdict": verdict, "why": "gave away: raw"}],
            "curves": "",
            "took_s": 0.1,
        }
        for row in rows
    ]
    return {"available": True, "reason": "", "column": "P", "class": "kernel", "rows": shown, "unfiltered": []}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run `isolation test` where every attack of every column comes to `verdict`."""

    def go(verdict: str, *argv: str) -> int:
        def launch(wanted: Sequence[Arm], tried: Sequence[Row], **_: object) -> dict[Arm, dict[str, Any]]:
            return {arm: column(tried, verdict) for arm in wanted}

        monkeypatch.setattr(launching, "launch", launch)
        return main(["isolation", "test", *argv])

    return go


def test_a_table_as_expected_exits_0(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """I-91."""
    assert run("B", "--attack", "A-02", "--backend", "hook", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == "blindcast.isolation.test/1"
    assert told["data"]["ok"]
    assert [row["id"] for row in told["data"]["columns"][0]["rows"]] == ["A-02"]


@pytest.mark.parametrize("verdict", ["M", "K"])
def test_a_cell_that_differs_exits_1(run: Run, capsys: pytest.CaptureFixture[str], verdict: str) -> None:
    """I-91, K-06."""
    assert run(verdict, "--attack", "A-02", "--backend", "hook") == 1
    assert f"{verdict}!=B" in capsys.readouterr().out


def test_anyones_predictor_is_tried_and_each_canary_is_told(run: Run, capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    """I-91: `--attack FILE` prints its row and expects nothing."""
    (tmp_path / "mine.py").write_text("class Predictor:\n    def predict(self, view): return 0.0\n")
    assert run("M", "--attack", str(tmp_path / "mine.py"), "--backend", "hook") == 0
    assert "M open: gave away: raw" in capsys.readouterr().out


@pytest.mark.parametrize("argv", [("--backend", "no-such"), ("--attack", "A-99")])
def test_an_unknown_backend_or_attack_is_a_usage_error(run: Run, argv: tuple[str, ...]) -> None:
    """F-05: exit 2, before anything is run."""
    assert run("B", *argv) == 2


def test_without_a_throw_away_namespace_nothing_is_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """I-92: `no_throwaway_namespace`, exit 5."""

    def launch(*_: object, **__: object) -> dict[Arm, dict[str, Any]]:
        raise DeniedError("no_throwaway_namespace", "none can be had here", expected="root", do="run it as root")

    monkeypatch.setattr(launching, "launch", launch)
    assert main(["isolation", "test", "--quick"]) == 5
    assert "error[no_throwaway_namespace]" in capsys.readouterr().err
