"""Flat, always-long, always-short, persistence, momentum and warm-up drift: what each commits to (G-43)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from blindcast.protocol import walk_answers
from blindcast.records import F64
from blindcast_graders import EarlinessHorizon, baselines


@pytest.fixture
def truth(invented: Any) -> list[Any]:
    return [invented(seed=seed) for seed in range(12)]


def curves(predictor: Any, windows: list[Any]) -> F64:
    return np.array([walk_answers(15, [predictor.predict(window.view(anchor)) for anchor in range(15)]).curves for window in windows])


@pytest.mark.parametrize(
    ("module", "key"),
    [
        ("flat", "flat"),
        ("always_long", "always_long"),
        ("always_short", "always_short"),
        ("persistence", "persistence"),
        ("warmup_drift", "warmup_drift"),
    ],
)
def test_the_shipped_predictor_earns_its_baseline_to_the_bit(module: str, key: str, truth: list[Any], seated: Any) -> None:
    """G-43: the parent's number from y alone is the number of the predictor's own run."""
    warm, targets = truth[:4], truth[4:]
    ys = np.array([window.y for window in targets])
    predictor = seated(module, warmups=[window.view(15) for window in warm])
    paid = float(EarlinessHorizon().grade_all(ys, curves(predictor, targets)).sum())
    assert paid == baselines(ys, np.array([window.y for window in warm]), 1.0, 3)[key]


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        ([0.0], 0.0),
        ([0.0, 0.0, 0.0], 0.0),
        ([0.0, 5.0], 1.0),
        ([0.0, 5.0, 5.0, 5.0], 1.0),
        ([0.0, 5.0, 4.9, 4.9], -1.0),
        ([0.0, -1e-9], -1.0),
    ],
)
def test_persistence_looks_through_moves_of_zero(y: list[float], expected: float, seated: Any) -> None:
    """G-42, G-43."""

    class OnlyPath:
        def __init__(self, path: list[float]) -> None:
            self.y = np.array(path)

    assert seated("persistence").predict(OnlyPath(y)) == expected


def test_warm_up_drift_is_the_sign_of_the_sum_whatever_the_order(invented: Any, seated: Any) -> None:
    """G-43: one large fall outweighs many small rises."""

    class Ended:
        def __init__(self, last: float) -> None:
            self.y = np.array([0.0, last])

    assert seated("warmup_drift", warmups=[Ended(1.0), Ended(1.0), Ended(-3.0)]).sign == -1.0
    assert seated("warmup_drift", warmups=[Ended(0.1), Ended(0.2), Ended(-0.1), Ended(-0.2)]).sign == 0.0
    assert seated("warmup_drift").sign == 0.0


def test_momentum_follows_the_window_so_far(invented: Any, seated: Any) -> None:
    """The sign of y at each anchor, 0 before the window."""
    window = invented(seed=4)
    got = [seated("momentum").predict(window.view(anchor)) for anchor in range(15)]
    assert got == np.sign(window.y[:15]).tolist()


def test_path_readers_build_no_frame(invented: Any, seated: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """PF-26, BV-08: a predictor that reads `view.y` alone costs no DataFrame."""
    from blindcast import view

    monkeypatch.setattr(view, "shared_frame", lambda *_: pytest.fail("a DataFrame was built"))
    for module in ("flat", "always_long", "persistence", "momentum", "warmup_drift", "before_market", "observe", "tiled"):
        seated(module).predict(invented().view(7))
