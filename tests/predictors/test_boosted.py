"""The LightGBM reference: it learns what is there to be learnt, from the warm-ups alone, the same way each time."""

from __future__ import annotations

from typing import Any

import numpy as np


def test_it_finds_an_edge_that_the_warm_ups_show(invented: Any, seated: Any) -> None:
    """A drift that runs through every warm-up is learnt as upward convictions."""
    windows = [invented(seed=seed) for seed in range(5)]
    for window in windows:
        drift = np.linspace(0, 300, window.table.shape[1], dtype=np.float32)
        window.table = window.table + np.where(np.arange(81)[:, None] % 2 == 1, drift, np.float32(0))
    predictor = seated("boosted", warmups=[window.view(15) for window in windows[:4]])
    assert predictor.model is not None
    answers = [predictor.predict(windows[4].view(anchor)) for anchor in range(1, 15)]
    assert min(float(np.mean(answer)) for answer in answers) > 0.3
    assert all(len(answer) == 15 - anchor for anchor, answer in enumerate(answers, start=1))


def test_without_warm_ups_or_on_paths_that_never_move_it_stays_flat(invented: Any, seated: Any) -> None:
    """PR-07."""
    assert seated("boosted").predict(invented().view(5)) == 0.0
    flat = invented(flat=True).view(15)
    assert seated("boosted", warmups=[flat, flat]).predict(invented().view(5)) == 0.0


def test_the_seed_of_the_task_is_the_seed_of_the_model(invented: Any, seated: Any) -> None:
    """PR-02: two seeds, two models; a seed of 63 bits is taken."""
    warm = [invented(seed=seed).view(15) for seed in range(4)]
    one, other = (seated("boosted", seed=seed, warmups=warm).predict(invented(seed=9).view(5)) for seed in (1, 2**63 - 1))
    assert (one != other).any()


def test_what_comes_after_an_instant_has_no_say_in_its_features(invented: Any, seated: Any) -> None:
    """PR-03: the features of a whole window at an anchor's clock equal those of the prefix."""
    predictor, window = seated("boosted"), invented(seed=6)
    for anchor in (1, 7, 14):
        at = np.array([anchor * 60.0])
        views = window.view(15), window.view(anchor)
        whole, prefix = (predictor._state(view.ladder.to_numpy(), view.events.to_numpy(), at) for view in views)
        assert whole.tobytes() == prefix.tobytes()
