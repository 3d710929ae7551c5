"""What every shipped predictor owes: answers on any grid, the same ones again, no future, no import of ours (PR-01 to PR-07)."""

from __future__ import annotations

import ast
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import blindcast_predictors
from blindcast.protocol import Walk, walk_answers

OFFERS = {offer.name: str(offer.target) for offer in blindcast_predictors.predictors()}
MODULES = [target.removeprefix("blindcast_predictors.").removesuffix(":Predictor") for target in OFFERS.values()]
LIBRARIES = {"numpy", "pandas", "scipy", "sklearn", "lightgbm"}


def walk(predictor: Any, window: Any) -> Walk:
    steps = window.grid.steps
    return walk_answers(steps, [predictor.predict(window.view(anchor)) for anchor in range(steps)])


def test_the_offers_are_named_and_target_a_class_called_predictor() -> None:
    """P-25, FE-82."""
    assert {"flat", "always-long", "always-short", "persistence", "warmup-drift", "imbalance", "lightgbm"} <= OFFERS.keys()
    assert {"before-market", "observe", "tiled", "peek"} <= OFFERS.keys()
    for target in OFFERS.values():
        module, _, attribute = target.partition(":")
        assert find_spec(module) is not None
        assert attribute == "Predictor"


@pytest.mark.parametrize("module", MODULES)
def test_a_submission_imports_the_listed_libraries_and_nothing_of_ours(module: str) -> None:
    """PR-04, P-25."""
    spec = find_spec(f"blindcast_predictors.{module}")
    assert spec is not None
    assert spec.origin is not None
    imported: set[str] = set()
    for node in ast.walk(ast.parse(Path(spec.origin).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            imported.add((node.module or "").split(".")[0])
    assert imported <= LIBRARIES | sys.stdlib_module_names


@pytest.mark.parametrize("steps", [1, 2, 15, 90])
@pytest.mark.parametrize("module", MODULES)
def test_every_grid_is_answered_with_and_without_warm_ups_and_on_a_flat_path(module: str, steps: int, invented: Any, seated: Any) -> None:
    """PR-01, PR-07."""
    windows = [invented(steps, seed=3), invented(steps, flat=True)]
    warm = [invented(steps, seed=seed).view(steps) for seed in (1, 2)]
    for warmups in ([], warm, [invented(steps, flat=True).view(steps)]):
        predictor = seated(module, steps, warmups=warmups)
        for window in windows:
            walked = walk(predictor, window)
            assert walked.status == "ok"
            assert np.isfinite(walked.curves).all()


@pytest.mark.parametrize("module", MODULES)
def test_the_same_seed_gives_the_same_curves(module: str, invented: Any, seated: Any) -> None:
    """PR-02."""
    warm = [invented(seed=seed).view(15) for seed in (1, 2, 3, 4)]
    first, again = (walk(seated(module, seed=7, warmups=warm), invented(seed=9)).curves for _ in range(2))
    assert first.tobytes() == again.tobytes()


@pytest.mark.parametrize("module", MODULES)
def test_a_predictor_walks_one_window_after_another_without_carrying_anything(module: str, invented: Any, seated: Any) -> None:
    """G-28: a window's curves do not depend on the ones before it."""
    warm = [invented(seed=seed).view(15) for seed in (1, 2)]
    predictor = seated(module, warmups=warm)
    walk(predictor, invented(seed=5))
    assert walk(predictor, invented(seed=9)).curves.tobytes() == walk(seated(module, warmups=warm), invented(seed=9)).curves.tobytes()


@pytest.mark.parametrize("module", MODULES)
def test_a_window_shorter_than_its_steps_need_not_have_a_row_in_each(module: str, invented: Any, seated: Any) -> None:
    """PR-07: 10 s cut in 40 steps leaves most steps empty."""
    warm = [invented(40, seed=1, window_s=10).view(40)]
    assert walk(seated(module, 40, window_s=10, warmups=warm), invented(40, seed=2, window_s=10)).status == "ok"


@pytest.mark.parametrize("module", MODULES)
def test_nothing_is_written_and_nothing_printed(
    module: str, invented: Any, seated: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """PR-06: the working folder and the home stay empty."""
    walk(seated(module, warmups=[invented(seed=1).view(15)]), invented(seed=2))
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")
