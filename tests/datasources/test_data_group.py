"""`blindcast data import` and `data describe`, as typed."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from blindcast.cli import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Types a command; gives exit code, stdout, stderr."""
    monkeypatch.setenv("BLINDCAST_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("BLINDCAST_PLUGINS", "blindcast")

    def typed(*words: object) -> tuple[int, str, str]:
        code = main([str(word) for word in words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return typed


@pytest.fixture
def recording(tmp_path: Path, feed: Callable[..., Any]) -> Path:
    """A folder with a recording and a note."""
    folder = tmp_path / "raw"
    folder.mkdir()
    lines = feed().snapshot(50, {100 - k: 1 for k in range(20)}, {101 + k: 2 for k in range(20)})
    for k in range(100):
        lines.diff(51 + k, 51 + k, {100: k + 1})
    lines.write(folder / "feed")
    (folder / "NOTES.md").write_text("about", encoding="utf-8")
    return folder


def test_an_import_says_what_it_read_and_left_out(run: Run, recording: Path, tmp_path: Path) -> None:
    """DK-01, DI-01: sniffed; stderr and stdout."""
    code, out, err = run("data", "import", recording, "-o", tmp_path / "p")
    assert code == 0
    assert "rows 100" in out
    assert "NOTES.md" in err
    assert err.rstrip().endswith(f"next: blindcast data describe {tmp_path / 'p'}")
    assert (tmp_path / "p" / "meta.json").exists()


def test_the_json_of_an_import_is_pool_meta_and_time(run: Run, recording: Path, tmp_path: Path) -> None:
    """DK-04."""
    code, out, _ = run("data", "import", f"binance:{recording}", "-o", tmp_path / "p", "--set", "levels=5", "--set", "tick=0.5", "--json")
    answer = json.loads(out)
    assert (code, answer["schema"], answer["ok"]) == (0, "blindcast.data.import/1", True)
    meta = json.loads((tmp_path / "p" / "meta.json").read_text(encoding="utf-8"))
    assert {key: value for key, value in answer["data"].items() if key not in ("pool", "elapsed_s")} == meta
    assert (meta["depth"], meta["tick_size"], meta["inferred"]["tick"]) == (5, "0.5", False)
    assert meta["importer"] == {"name": "binance", "version": meta["importer"]["version"], "options": {"levels": 5, "tick": 0.5}}


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        (["none"], 3, "path_missing"),
        (["s3://bucket/day"], 3, "path_missing"),
        (["lake:{raw}"], 3, "format_unknown"),
        (["nothing:{raw}"], 2, "plugin_unknown"),
        (["{raw}/NOTES.md"], 3, "format_unknown"),
        (["{raw}", "--set", "levles=5"], 3, "config_unknown_key"),
        (["{raw}", "--set", "levels=five"], 3, "config_wrong_type"),
        (["{raw}", "--set", "rows=some"], 3, "config_bad_value"),
        (["{raw}", "--set", "tick=3"], 3, "off_grid"),
    ],
)
def test_bad_input_has_a_code_and_leaves_nothing(
    run: Run, recording: Path, tmp_path: Path, words: list[str], code: int, error: str
) -> None:
    """DI-01, DI-02, DI-10."""
    got, out, _ = run("data", "import", *(word.format(raw=recording) for word in words), "-o", tmp_path / "out" / "p", "--json")
    answer = json.loads(out)
    assert (got, answer["ok"], answer["error"]["code"]) == (code, False, error)
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize("target", ["s3://bucket/pool", "file:///tmp/pool"])
def test_a_pool_is_a_local_folder(run: Run, recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    """Section 3: a URL after -o makes no folder of that name."""
    monkeypatch.chdir(tmp_path)
    before = sorted(path.name for path in tmp_path.iterdir())
    code, out, _ = run("data", "import", recording, "-o", target, "--json")
    assert (code, json.loads(out)["error"]["code"]) == (2, "usage")
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def _encrypted(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.csv", "x")
    data = bytearray(path.read_bytes())
    data[6] |= 1
    data[data.find(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _link(path: Path) -> None:
    path.symlink_to("nothing")


@pytest.mark.parametrize("make", [_encrypted, _pipe, _link])
def test_a_file_that_cannot_be_read_is_damaged(run: Run, tmp_path: Path, make: Callable[[Path], None]) -> None:
    """DI-06: an encrypted zip, a pipe that nobody fills, a link to nothing."""
    (tmp_path / "raw").mkdir()
    make(tmp_path / "raw" / "day.zip")
    code, out, _ = run("data", "import", f"binance:{tmp_path / 'raw'}", "-o", tmp_path / "p", "--json")
    assert (code, json.loads(out)["error"]["code"]) == (3, "import_damaged")
    assert not (tmp_path / "p").exists()


def test_a_path_longer_than_any_file_name_is_missing(run: Run, tmp_path: Path) -> None:
    """DI-10."""
    code, out, _ = run("data", "import", "a" * 5000, "-o", tmp_path / "p", "--json")
    assert (code, json.loads(out)["error"]["code"]) == (3, "path_missing")


def test_a_pool_is_not_overwritten_unasked(run: Run, recording: Path, tmp_path: Path) -> None:
    """DI-10, F-09."""
    words = ("data", "import", recording, "-o", tmp_path / "p")
    assert run(*words)[0] == 0
    code, _, err = run(*words)
    assert (code, "error[pool_exists]" in err) == (2, True)
    assert run(*words, "--force")[0] == 0


def test_describe_gives_instrument_and_numbers(run: Run, recording: Path, tmp_path: Path) -> None:
    """DK-04."""
    run("data", "import", recording, "-o", tmp_path / "p")
    code, out, _ = run("data", "describe", tmp_path / "p", "--json")
    data = json.loads(out)["data"]
    assert code == 0
    assert sorted(data) == ["instrument", "stats"]
    assert (data["instrument"]["symbol"], data["stats"]["sd_1s_bps"], data["stats"]["vr_10s"]) == ("XYUSDT", 0.0, None)
    assert run("data", "describe", tmp_path / "none")[0] == 3
    assert run("data", "describe", tmp_path / "p", "--set", "seed=1")[0] == 2


def test_describing_the_synthetic_market_states_the_truth(run: Run) -> None:
    """S-05."""
    code, out, _ = run("data", "describe", "synthetic", "--set", "windows=3", "--set", "signal_strength=0.0", "--json")
    data = json.loads(out)["data"]
    assert code == 0
    assert (data["truth"]["invented"], data["truth"]["signal_strength"]) == (True, 0.0)
    assert sorted(data["truth"]["ic"]["imb1"]) == ["10s", "1s", "60s"]
    assert data["stats"]["sd_1s_bps"] > 0
