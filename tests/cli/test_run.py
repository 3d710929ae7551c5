"""`run` and `submit`: what is counted, what a failure does, and what it shows (grading.md section 6)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from blindcast.ledger import Ledger
from blindcast.testing.runner import Said

Cli = Callable[..., Said]
Write = Callable[[str], Path]

GRADE_KEYS = (
    "run_id dry task grader predictor_sha256 stage state seed status reason complete wall_s chain_head report reward_bps reward_wmean_bps "
    "mean_reward_per_market_bps targets window_rewards_bps verdict probe_verdict overlap warnings interval windows refused failures_total "
    "failures_by_code failures diagnostics baselines concentration waterfall companion inference trial isolation"
).split()
DIAGNOSTICS = "direction_accuracy coverage skill_score_vs_flat pnl_bps persistence_pnl_bps skill_vs_persistence_bps".split()


def ledger_rows(tmp_path: Path) -> list[str]:
    return [entry.kind for entry in Ledger(tmp_path / "home" / "ledger.sqlite").entries()]


def test_a_run_returns_the_whole_grade_object(blindcast_cli: Cli, blindcast_task: Path) -> None:
    """G-90, G-91: every key present, what is not built yet null."""
    said = blindcast_cli("run", "persistence", "--task", blindcast_task, "--json")
    assert said.exit_code == 0, said.stderr
    assert said.document["schema"] == "blindcast.run/1"
    assert sorted(said.data) == sorted([*GRADE_KEYS, "folder", "traceback", "stdout"])
    assert sorted(said.data["diagnostics"]) == sorted(DIAGNOSTICS)
    assert [said.data[key] for key in ("interval", "inference", "verdict", "companion", "probe_verdict")] == [None] * 5
    assert said.data["warnings"][0].startswith("inference_not_built")
    assert said.data["windows"] == {"ok": 3, "degraded": 0, "crashed": 0, "not_run": 0, "restarts": 0}


def test_a_run_leaves_a_whole_directory(blindcast_cli: Cli, blindcast_task: Path) -> None:
    """DESIGN 7."""
    said = blindcast_cli("run", "persistence", "--task", blindcast_task, "--json")
    folder = Path(said.data["folder"])
    names = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
    assert names == [
        "artifacts/metrics.csv",
        "commits.parquet",
        "log.jsonl",
        "predictor/predictor.py",
        "run.json",
        "state.json",
        "windows.parquet",
    ]
    assert json.loads((folder / "state.json").read_text())["status"] == "success"
    commits = pq.read_table(folder / "commits.parquet")
    assert commits.column_names == ["window", "anchor", "kind", "code", "curve", "prefix_sha256", "link"]
    assert commits.num_rows == 3 * 5
    assert pq.read_table(folder / "windows.parquet").column_names == ["window", "start_ns", "y", "status", "code", "reason", "reward_bps"]
    assert commits["link"][-1].as_py() == said.data["chain_head"] == json.loads((folder / "run.json").read_text())["chain_head"]


def test_equal_runs_earn_equal_bits(blindcast_cli: Cli, blindcast_task: Path) -> None:
    """G-15, PF-05."""
    first, second = (blindcast_cli("run", "imbalance", "--task", blindcast_task, "--json").data for _ in range(2))
    assert first["window_rewards_bps"] == second["window_rewards_bps"]
    assert first["chain_head"] == second["chain_head"]


@pytest.mark.parametrize("backend", ["privdrop", "hook"])
def test_every_backend_gives_the_same_number(
    blindcast_cli: Cli, blindcast_task: Path, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I-33."""
    monkeypatch.setenv("BLINDCAST_REQUIRE_ISOLATION", backend)
    said = blindcast_cli("run", "imbalance", "--task", blindcast_task, "--json")
    if said.exit_code == 5:
        pytest.skip(f"{backend} is not available here: {said.document['error']['message']}")
    assert said.data["isolation"] == {"backend": backend, "class": "tripwire" if backend == "hook" else "kernel"}
    monkeypatch.delenv("BLINDCAST_REQUIRE_ISOLATION")
    assert said.data["chain_head"] == blindcast_cli("run", "imbalance", "--task", blindcast_task, "--json").data["chain_head"]


def test_kernel_isolation_is_refused_before_anything_is_counted(
    blindcast_cli: Cli, blindcast_task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I-03: the hook is none of the kernel's."""
    blindcast_task.write_text(blindcast_task.read_text() + '[isolation]\nrequire = "kernel"\n')
    monkeypatch.setenv("BLINDCAST_REQUIRE_ISOLATION", "hook")
    said = blindcast_cli("run", "flat", "--task", blindcast_task, "--json")
    assert (said.exit_code, said.document["error"]["code"]) == (5, "isolation_conflict")
    assert ledger_rows(tmp_path) == []


def test_an_unknown_isolation_word_is_a_usage_error(blindcast_cli: Cli, blindcast_task: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """I-03."""
    monkeypatch.setenv("BLINDCAST_REQUIRE_ISOLATION", "kernal")
    said = blindcast_cli("run", "flat", "--task", blindcast_task, "--json")
    assert said.exit_code == 2
    assert "kernel" in said.document["error"]["hint"]


def test_a_run_charges_one_trial_and_a_submit_one_query_too(blindcast_cli: Cli, blindcast_task: Path, tmp_path: Path) -> None:
    """G-51, FE-14."""
    blindcast_cli("run", "flat", "--task", blindcast_task)
    assert ledger_rows(tmp_path) == ["trial", "score"]
    said = blindcast_cli("submit", "flat", "--task", blindcast_task, "--json")
    assert ledger_rows(tmp_path) == ["trial", "score", "trial", "holdout_query", "score"]
    assert said.data["trial"] == {"index": 1, "holdout_query": 1, "holdout_left": 2}
    assert said.data["stage"] == "holdout"


def test_a_submit_on_test_shows_no_window(blindcast_cli: Cli, blindcast_task: Path) -> None:
    """G-54, G-90."""
    said = blindcast_cli("submit", "imbalance", "--task", blindcast_task, "--json")
    assert said.data["window_rewards_bps"] is None
    assert said.data["overlap"] is None


def test_the_fourth_look_is_refused_whatever_the_spec_is_called(blindcast_cli: Cli, blindcast_task: Path, tmp_path: Path) -> None:
    """G-66, FE-15: queries count by the pool's content."""
    for _ in range(3):
        assert blindcast_cli("submit", "flat", "--task", blindcast_task).exit_code == 0
    renamed = tmp_path / "renamed.toml"
    renamed.write_text(blindcast_task.read_text().replace('"small"', '"other"').replace("steps = 5", "steps = 4"))
    said = blindcast_cli("submit", "flat", "--task", renamed, "--json")
    assert (said.exit_code, said.document["error"]["code"]) == (7, "holdout_budget_spent")
    assert ledger_rows(tmp_path).count("holdout_query") == 3


def test_run_does_not_walk_the_test_split(blindcast_cli: Cli, blindcast_task: Path) -> None:
    """G-52."""
    said = blindcast_cli("run", "flat", "--task", blindcast_task, "--split", "test", "--json")
    assert (said.exit_code, said.document["error"]["code"]) == (2, "use_submit")


@pytest.mark.parametrize("index", ["-1", "99"])
def test_an_index_that_is_not_there_is_a_usage_error(blindcast_cli: Cli, blindcast_task: Path, index: str) -> None:
    """G-17."""
    said = blindcast_cli("run", "flat", "--task", blindcast_task, "--index", index, "--json")
    assert (said.exit_code, said.document["error"]["code"]) == (2, "bad_index")


BROKEN_AT_LOAD = {
    "raises at import": "raise RuntimeError('not today')",
    "does not compile": "class Predictor:\n    def predict(self, view) return 0",
    "imports what is not listed": "import torch\nclass Predictor:\n    def predict(self, view): return 0",
    "has no Predictor": "x = 1",
    "has no predict": "class Predictor:\n    pass",
    "ends the process at import": "import os\nos._exit(0)",
}


@pytest.mark.parametrize("name", BROKEN_AT_LOAD)
def test_a_predictor_that_does_not_load_costs_nothing(
    blindcast_cli: Cli, blindcast_task: Path, tmp_path: Path, submission: Write, name: str
) -> None:
    """G-55: refused before the first reveal, exit 3, no trial, nothing half-written."""
    said = blindcast_cli("run", submission(BROKEN_AT_LOAD[name]), "--task", blindcast_task, "--json")
    assert (said.exit_code, said.document["error"]["code"]) == (3, "load_failed")
    assert ledger_rows(tmp_path) == []
    assert blindcast_cli("runs", "list", "--json").data["runs"] == []
    assert list((tmp_path / "home" / "runs").iterdir()) == []


def test_a_fit_that_raises_costs_nothing(blindcast_cli: Cli, blindcast_task: Path, tmp_path: Path, submission: Write) -> None:
    """G-55, and `run` shows the whole traceback (G-51)."""
    text = "class Predictor:\n    def fit(self, warmups): return 1 / 0\n    def predict(self, view): return 0\n"
    said = blindcast_cli("run", submission(text), "--task", blindcast_task, "--json")
    assert (said.exit_code, said.document["error"]["code"]) == (3, "fit_failed")
    assert "ZeroDivisionError" in said.document["error"]["message"]
    assert ledger_rows(tmp_path) == []


def test_a_submit_keeps_the_text_of_a_failed_fit_to_itself(blindcast_cli: Cli, blindcast_task: Path, submission: Write) -> None:
    """G-54: nothing of the child's words leaves."""
    text = "class Predictor:\n    def fit(self, warmups): raise ValueError(repr(warmups[0].y))\n    def predict(self, view): return 0\n"
    said = blindcast_cli("submit", submission(text), "--task", blindcast_task, "--json")
    assert said.exit_code == 3
    assert "array" not in said.stdout


ANSWERS = {
    "float('nan')": "not_finite",
    "1.5": "out_of_range",
    "'long'": "wrong_type",
    "[1.0]": "wrong_length",
    "1 / 0": "exception",
    "exit()": "exception",
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_bad_answer_stops_a_run_at_once(blindcast_cli: Cli, blindcast_task: Path, submission: Write, answer: str) -> None:
    """G-51, G-52: exit 1, the sealed part stands, the rest is not run."""
    text = f"class Predictor:\n    def predict(self, view):\n        return {answer}\n"
    said = blindcast_cli("run", submission(text), "--task", blindcast_task, "--json")
    assert said.exit_code == 1, said.stderr
    assert (said.data["status"], said.data["reason"], said.data["complete"]) == ("failed", "stopped_at_failure", False)
    assert said.data["failures_by_code"] == {ANSWERS[answer]: 1}
    assert said.data["windows"] == {"ok": 0, "degraded": 0, "crashed": 1, "not_run": 2, "restarts": 0}


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_bad_answer_is_a_counted_zero_in_a_submit(blindcast_cli: Cli, blindcast_task: Path, submission: Write, answer: str) -> None:
    """G-24, G-25, G-50: three in a row end each window; crashed windows alone do not fail a submit."""
    text = f"class Predictor:\n    def predict(self, view):\n        return {answer}\n"
    said = blindcast_cli("submit", submission(text), "--task", blindcast_task, "--json")
    assert said.exit_code == 0, said.stderr
    assert (said.data["status"], said.data["reward_bps"]) == ("success", 0.0)
    assert said.data["refused"] == {ANSWERS[answer]: 9}
    assert said.data["windows"] == {"ok": 0, "degraded": 0, "crashed": 3, "not_run": 0, "restarts": 2}


def test_a_located_failure_names_file_line_and_type_and_no_word_more(blindcast_cli: Cli, blindcast_task: Path, submission: Write) -> None:
    """G-54, FE-29: a class name of one's own can spell data, so it is `Exception`."""
    text = "class Secret(Exception): pass\nclass Predictor:\n    def predict(self, view):\n        raise Secret(repr(view.y))\n"
    said = blindcast_cli("submit", submission(text), "--task", blindcast_task, "--json")
    assert said.data["failures"][0] == {
        "target": 0,
        "anchor": 0,
        "code": "exception",
        "type": "Exception",
        "file": "predictor.py",
        "line": 4,
    }
    assert "Secret" not in said.stdout


def test_run_shows_the_whole_traceback_and_what_was_printed(blindcast_cli: Cli, blindcast_task: Path, submission: Write) -> None:
    """G-51."""
    text = "class Predictor:\n    def predict(self, view):\n        print('here I am')\n        raise KeyError('lost')\n"
    said = blindcast_cli("run", submission(text), "--task", blindcast_task, "--json")
    assert "KeyError: 'lost'" in said.data["traceback"]
    assert "here I am" in said.data["stdout"]


def test_a_predictor_that_never_answers_is_killed_and_counted(
    blindcast_cli: Cli, blindcast_task: Path, blindcast_predictors: dict[str, Path]
) -> None:
    """G-23, G-25: a deadline ends the window, the next one gets a new child."""
    short = blindcast_task.with_name("short.toml")
    short.write_text(blindcast_task.read_text().replace("step_wall_s = 2", "step_wall_s = 0.4"))
    said = blindcast_cli("submit", blindcast_predictors["late"], "--task", short, "--json")
    assert said.exit_code == 0, said.stderr
    assert said.data["failures_by_code"] == {"deadline": 1}
    assert said.data["windows"]["crashed"] == 1


def test_a_predictor_that_kills_itself_is_dead_until_the_restarts_are_spent(
    blindcast_cli: Cli, blindcast_task: Path, tmp_path: Path, blindcast_predictors: dict[str, Path]
) -> None:
    """G-25, I-34."""
    longer = tmp_path / "longer.toml"
    longer.write_text(blindcast_task.read_text().replace("windows = 12", "windows = 16").replace("targets = 3", "targets = 6"))
    said = blindcast_cli("submit", blindcast_predictors["hostile"], "--split", "train", "--task", longer, "--json")
    assert said.exit_code == 0, said.stderr
    assert said.data["failures_by_code"] == {"died": 4, "restarts_spent": 2}
    assert said.data["windows"] == {"ok": 0, "degraded": 0, "crashed": 6, "not_run": 0, "restarts": 3}


def test_a_predictor_that_prints_a_hundred_megabytes_is_ended(blindcast_cli: Cli, blindcast_task: Path, submission: Write) -> None:
    """Isolation.md section 8: past the cap the child is killed, reason `output`."""
    text = """
        class Predictor:
            def predict(self, view):
                for _ in range(100):
                    print("x" * 1_000_000)
                return 1.0
    """
    said = blindcast_cli("submit", submission(text), "--task", blindcast_task, "--json")
    assert said.exit_code == 0, said.stderr
    assert said.data["windows"]["crashed"] == 3
    reasons = pq.read_table(Path(said.data["folder"]) / "windows.parquet")["reason"].to_pylist()
    assert set(reasons) == {"output"}


def test_a_cap_is_marked_and_has_another_identity(blindcast_cli: Cli, blindcast_task: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """G-18."""
    whole = blindcast_cli("run", "flat", "--task", blindcast_task, "--json").data
    monkeypatch.setenv("BLINDCAST_MAX_TARGETS", "2")
    capped = blindcast_cli("run", "flat", "--task", blindcast_task, "--json").data
    assert (capped["task"]["capped"], capped["task"]["targets"]) == (2, 2)
    assert capped["task"]["digest"] != whole["task"]["digest"]


def test_a_fresh_predictor_remembers_no_window(blindcast_cli: Cli, blindcast_task: Path, submission: Write) -> None:
    """G-28, GV-121: in `carry` state is carried, in `fresh` each window meets a new one."""
    text = """
        class Predictor:
            seen = 0
            def predict(self, view):
                self.seen += view.anchor == 0
                return 1.0 if self.seen == 1 else -1.0
    """
    path = submission(text)
    fresh = blindcast_task.with_name("fresh.toml")
    fresh.write_text(blindcast_task.read_text() + '[isolation]\nstate = "fresh"\n')
    carried = blindcast_cli("run", path, "--task", blindcast_task, "--json").data
    renewed = blindcast_cli("run", path, "--task", fresh, "--json").data
    long = blindcast_cli("run", "always-long", "--task", blindcast_task, "--json").data["window_rewards_bps"]
    assert renewed["window_rewards_bps"] == long
    assert carried["window_rewards_bps"] == [long[0], -long[1], -long[2]]
    assert renewed["windows"]["restarts"] == 0


def test_a_seed_is_told_to_the_predictor_alone(blindcast_cli: Cli, blindcast_task: Path, submission: Write) -> None:
    """G-70: `--seed` sets context.seed and nothing else."""
    text = "class Predictor:\n    def __init__(self, context): self.c = context.seed / 10\n    def predict(self, view): return self.c\n"
    path = submission(text)
    first = blindcast_cli("run", path, "--task", blindcast_task, "--seed", "5", "--json").data
    second = blindcast_cli("run", path, "--task", blindcast_task, "--seed", "10", "--json").data
    assert second["reward_bps"] == pytest.approx(2 * first["reward_bps"], rel=1e-12)
    assert first["task"]["digest"] == second["task"]["digest"]


def test_a_dry_run_counts_nothing(blindcast_cli: Cli, blindcast_task: Path, tmp_path: Path) -> None:
    """G-53."""
    said = blindcast_cli("run", "imbalance", "--task", blindcast_task, "--warmups", "--json")
    assert said.exit_code == 0, said.stderr
    assert said.data["dry"] is True
    assert [fold["window"] for fold in said.data["folds"]] == ["w0", "w1"]
    assert ledger_rows(tmp_path) == []
    assert blindcast_cli("runs", "list", "--json").data["runs"] == []


def test_a_dry_run_fits_on_the_other_warmups(blindcast_cli: Cli, blindcast_task: Path, submission: Write) -> None:
    """GV-122 (G-53): 4 warm-ups, each walked by a predictor fitted on the three others in time order."""
    text = """
        class Predictor:
            def fit(self, warmups):
                self.fitted = len(warmups)
            def predict(self, view):
                return 1.0 if self.fitted == 3 else 0.0
    """
    four = blindcast_task.with_name("four.toml")
    four.write_text(re.sub(r"warmups = \d+", "warmups = 4", blindcast_task.read_text()))
    said = blindcast_cli("run", submission(text), "--task", four, "--warmups", "--json")
    assert said.exit_code == 0, said.stderr
    long = blindcast_cli("run", "always-long", "--task", four, "--warmups", "--json")
    assert [fold["reward_bps"] for fold in said.data["folds"]] == [fold["reward_bps"] for fold in long.data["folds"]]
    assert len(said.data["folds"]) == 4
    assert any(fold["reward_bps"] for fold in said.data["folds"])


def test_a_run_past_its_wall_keeps_its_number_and_ends_with_7(blindcast_cli: Cli, blindcast_task: Path, submission: Write) -> None:
    """G-55, I-73: what was sealed stands, the rest is not run."""
    text = "import time\nclass Predictor:\n    def predict(self, view):\n        time.sleep(0.2)\n        return 1.0\n"
    short = blindcast_task.with_name("short.toml")
    short.write_text(blindcast_task.read_text().replace("step_wall_s = 2", "step_wall_s = 2\nrun_wall_s = 1.5"))
    said = blindcast_cli("submit", submission(text), "--task", short, "--json")
    assert said.exit_code == 7, said.stderr
    assert (said.data["status"], said.data["reason"], said.data["complete"]) == ("failed", "run_deadline", False)
    assert said.data["windows"]["ok"] == 1
    assert said.data["windows"]["not_run"] == 1
    assert said.data["reward_bps"] is not None


def test_a_forged_frame_ends_the_run_with_4(blindcast_cli: Cli, blindcast_task: Path, submission: Write) -> None:
    """I-57: nothing after a violation counts; what was sealed stands."""
    text = """
        import os
        class Predictor:
            def predict(self, view):
                if view.anchor == 1:
                    os.write(4, bytes([1, 0, 0, 0, 0xC0]))
                return 1.0
    """
    said = blindcast_cli("submit", submission(text), "--task", blindcast_task, "--json")
    assert said.exit_code == 4, said.stderr
    assert said.data["reason"].startswith("protocol.")
    assert said.data["windows"] == {"ok": 0, "degraded": 0, "crashed": 1, "not_run": 2, "restarts": 0}


def test_a_name_longer_than_any_file_name_is_an_unknown_predictor(blindcast_cli: Cli, blindcast_task: Path) -> None:
    """F-07."""
    said = blindcast_cli("run", "a" * 5000, "--task", blindcast_task, "--json")
    assert (said.exit_code, said.document["error"]["code"]) == (2, "plugin_unknown")
