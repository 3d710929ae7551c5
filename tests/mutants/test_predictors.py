"""Each mutant of a submission fails its check and no other, in real children (conformance.md Q-01)."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blindcast.backends import appoint, close
from blindcast.buffer import RevealBuffer
from blindcast.contracts import Isolation
from blindcast.host import Host
from blindcast.local import LocalSeat
from blindcast.records import Limits, Policy
from blindcast.reveal import Reveal
from blindcast.testing import Check, Result, Subject, judge
from blindcast.testing.predictors import ACTS
from blindcast.testing.stage import MARKET, Stage, isolated
from blindcast.view import Context
from blindcast.wire import RunClock

POLICY = Policy(Limits(step_wall_s=0.5, output_bytes=1 << 16))

HONEST = """
import numpy as np

class Predictor:
    def __init__(self, context):
        self.random = np.random.default_rng(context.seed)
        self.scale = 1.0

    def fit(self, warmups):
        moves = [float(np.abs(np.diff(w.y)).mean()) for w in warmups]
        self.scale = 1.0 + float(np.mean(moves)) if moves else 1.0

    def predict(self, view):
        lean = np.tanh(view.y[-1] / self.scale) + 0.001 * self.random.uniform()
        return np.clip(lean * np.ones(len(view.horizons)), -1, 1)
"""

MUTANTS = {
    "one number short": ("np.clip(lean * np.ones(len(view.horizons)), -1, 1)", "[lean] * (len(view.horizons) - 1)", ["PR-01"]),
    "too sure": ("np.clip(lean * np.ones(len(view.horizons)), -1, 1)", "2.0", ["PR-01"]),
    "unseeded": ("default_rng(context.seed)", "default_rng()", ["PR-02", "PR-03"]),
    "imports torch": ("import numpy as np\n", "import numpy as np\nimport torch\n", ["PR-04"]),
    "imports torch late": ("        lean =", "        import torch\n        lean =", ["PR-04"]),
    "reads by file": ("        lean =", "        open('/etc/hostname').read()\n        lean =", ["PR-01"]),
    "sleeps once": ("        lean =", "        import time; time.sleep(5.0 * (view.anchor == 3))\n        lean =", ["PR-05"]),
    "caches a model": ("        lean =", "        open('/tmp/model', 'w').write('x')\n        lean =", ["PR-06"]),
    "prints on": ("        lean =", "        print('x' * 50_000)\n        lean =", ["PR-06"]),
    "divides by sd": ("1.0 + float(np.mean(moves)) if moves else 1.0", "float(np.mean(moves))", ["PR-07"]),
    "expects 15 steps": ("np.ones(len(view.horizons))", "np.ones(15)[view.anchor:]", ["PR-07"]),
}


@pytest.fixture(scope="module")
def backend() -> Iterator[Isolation]:
    found = appoint(Host({}), "any", POLICY, {}, root=os.geteuid() == 0)
    yield found.isolation
    close(found.isolation)


@pytest.fixture
def failing(backend: Isolation, tmp_path: Path) -> Callable[[str], dict[str, str]]:
    """The checks that a predictor's source fails."""

    def fails(source: str) -> dict[str, str]:
        (tmp_path / "predictor").mkdir()
        (tmp_path / "predictor" / "predictor.py").write_text(source)
        os.chmod(tmp_path, 0o755)
        stage = stage_of(tmp_path / "predictor", isolated(backend, tmp_path / "predictor"))
        return {one.id: one.detail for one in played(stage) if one.result == "fail"}

    return fails


def stage_of(folder: Path, seat: Any) -> Stage:
    host = Host({})
    source = host.make(host.find("datasources", "synthetic"), MARKET)
    return Stage(folder, seat, source, host.make(host.find("anonymizers", "bps"), {}), POLICY)


def played(stage: Stage) -> list[Result]:
    def on_stage(act: Callable[[Stage], None]) -> Callable[[Subject], None]:
        return lambda _subject: act(stage)

    subject = Subject("predictors", "mutant", lambda: stage.folder)
    return [judge(Check(id_, title, on_stage(act)), subject) for id_, title, act in ACTS]


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_fails_its_check_and_no_other(name: str, failing: Callable[[str], dict[str, str]]) -> None:
    """PR-01, PR-02, PR-04 to PR-07."""
    old, new, ids = MUTANTS[name]
    assert old in HONEST
    failed = failing(HONEST.replace(old, new, 1))
    assert list(failed) == ids, failed


def test_the_honest_twin_fails_none(failing: Callable[[str], dict[str, str]]) -> None:
    """Q-01."""
    assert failing(HONEST) == {}


class Peeks:
    """Follows the part of the path that lies behind the array it is shown: what no isolated child can do."""

    def predict(self, view: Any) -> Any:
        behind = view.y if view.y.base is None else view.y.base
        return float(np.sign(behind[-1] - view.y[-1]))


class Looks:
    """Follows the last move that it was shown."""

    def predict(self, view: Any) -> float:
        return float(np.sign(view.y[-1] - view.y[0]))


@pytest.mark.parametrize(("kind", "ids"), [(Peeks, ["PR-03"]), (Looks, [])])
def test_a_predictor_that_reads_what_is_not_revealed_fails_where_nothing_isolates_it(kind: type, ids: list[str], tmp_path: Path) -> None:
    """PR-03: in a child the rows are not there to be read, so its mutant is played in this process."""

    def seat(policy: Policy, context: Context, buffer: RevealBuffer, warmups: Sequence[Reveal], clock: RunClock) -> LocalSeat:
        return LocalSeat(kind, context, warmups)

    assert [one.id for one in played(stage_of(tmp_path, seat)) if one.result == "fail"] == ids


def test_the_sources_are_as_indented_as_they_look() -> None:
    """A mutant that does not compile would fail for another reason."""
    for old, new, _ in MUTANTS.values():
        compile(textwrap.dedent(HONEST.replace(old, new, 1)), "mutant", "exec")
