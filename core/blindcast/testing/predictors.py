"""PR-01 to PR-07: what a submission must do to be walked, played on the synthetic market in real children; counts nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import numpy as np

from blindcast.host import Host
from blindcast.testing.copies import contents
from blindcast.testing.kit import Check, Skip, Subject, judge
from blindcast.testing.stage import Played, Stage, flat, replaced, staged
from blindcast.walk import Failure

__all__ = ["CHECKS", "examine"]

FORK: Final = 7  # the anchor after which PR-03 replaces everything
UNLISTED: Final = "is not among the libraries of this court"
REFUSED_WRITES: Final = ("a predictor writes no file", "Read-only file system", "File too large")
LATE: Final = frozenset({"deadline", "step_deadline", "run_deadline"})
NEVER_BEGAN: Final = frozenset({"load_failed", "fit_failed"})


def _culprit(failure: Failure) -> str:
    """The one check that a failure is the matter of."""
    if UNLISTED in failure.trace:
        return "PR-04"
    if failure.code in LATE:
        return "PR-05"
    return "PR-06" if failure.code == "output" or any(words in failure.trace for words in REFUSED_WRITES) else "PR-01"


def _told(failure: Failure) -> str:
    """Where a failure lies and the last line of what was raised; the text is the submission's own."""
    where = "at the start" if failure.anchor is None else f"window {failure.target}, anchor {failure.anchor}"
    knot = "" if failure.knot is None else f", knot {failure.knot}"
    raised = failure.trace.strip().splitlines()[-1:]
    return f"{failure.code} {where}{knot}" + (f": {raised[0].strip()[:300]}" if raised else "")


def _check_failures(own: str, expected: str, played: Played) -> None:
    """Raise AssertionError for the first failure that is this check's matter, Skip where another's kept the run from going on."""
    for failure in played.failures:
        assert _culprit(failure) != own, f"expected {expected}, got {_told(failure)}"
    for failure in played.failures:
        raise Skip(f"{_culprit(failure)} says why: {_told(failure)}")


def answers(stage: Stage) -> None:
    """PR-01."""
    _check_failures("PR-01", "at each anchor None, a number, or one number per remaining horizon, in [-1, 1]", stage.base())


def _begun(played: Played) -> Played:
    if played.broken is not None and played.broken.reason in NEVER_BEGAN:
        raise Skip(f"it does not start: {_told(played.failures[-1])}")
    return played


def _whole(played: Played) -> Played:
    """A run that no kill cut short: where one fell is a matter of the clock. Raises Skip."""
    for failure in played.failures:
        if played.broken is not None or any(walked.reason for walked in played.walked):
            raise Skip(f"{_culprit(failure)} comes first: {_told(failure)}")
    return played


def is_repeatable(stage: Stage) -> None:
    """PR-02: the sealed links too, which hold every answer's kind."""
    one, other = _whole(stage.base()), _whole(stage.base(1))
    for first, second in zip(one.walked, other.walked, strict=False):
        anchors = np.flatnonzero((first.curves != second.curves).any(axis=1))
        said = f"two fresh runs with seed 5, window {first.ordinal}: expected equal curves"
        assert not len(anchors), f"{said}, got others from anchor {anchors[:1]} on; draw from `context.seed`"
    assert list(one.links) == list(other.links), (
        f"two fresh runs with seed 5: expected equal links, got {len(one.links)} and {len(other.links)}, others"
    )


def sees_no_future(stage: Stage) -> None:
    """PR-03: the first target again, all that the fork had not been shown replaced."""
    one = _whole(stage.base())
    warmups, target = [stage.reveal(k) for k in range(3)], replaced(stage.reveal(8), stage.reveal(10), FORK)
    other = _whole(stage.play([target], warmups))
    before, after = (played.walked[0].curves[: FORK + 1] for played in (one, other))
    anchors = np.flatnonzero((before != after).any(axis=1))
    said = f"window 0, everything after anchor {FORK} replaced: expected equal curves up to it"
    assert not len(anchors), f"{said}, got others from anchor {anchors[:1]} on"


def imports_what_is_listed(stage: Stage) -> None:
    """PR-04."""
    _check_failures_of("PR-04", "imports from the libraries of this court and the standard library", stage)


def _check_failures_of(own: str, expected: str, stage: Stage) -> None:
    """As `_check_failures`, but a run that went on says enough whatever else failed in it."""
    played = stage.base()
    for failure in played.failures:
        assert _culprit(failure) != own, f"expected {expected}, got {_told(failure)}"
    _begun(played)


def is_in_time(stage: Stage) -> None:
    """PR-05."""
    limits = stage.policy.limits
    _check_failures_of("PR-05", f"every step within {limits.step_wall_s:g} s and the run within {limits.run_wall_s:g} s", stage)
    played = stage.base()
    assert played.slowest_s <= limits.step_wall_s, f"expected every step within {limits.step_wall_s:g} s, got {played.slowest_s:.3f} s"


def leaves_nothing(stage: Stage) -> None:
    """PR-06."""
    before = contents([stage.folder])
    _check_failures_of("PR-06", f"no file written and at most {stage.policy.limits.output_bytes} bytes printed", stage)
    changed = {name for name, fact in contents([stage.folder]).items() if before.get(name) != fact}
    assert not changed, f"expected its folder as it was, got another {', '.join(sorted(changed)[:5])}"


def takes_any_grid(stage: Stage) -> None:
    """PR-07."""
    for failure in stage.base().failures:
        raise Skip(f"{_culprit(failure)} comes first: {_told(failure)}")
    for steps in (1, 90):
        reveals = [stage.reveal(k, steps) for k in (0, 1, 8)]
        _check_grid(f"G {steps}", stage.play(reveals[2:], reveals[:2]))
    _check_grid("fit([])", stage.play([stage.reveal(8)], []))
    still = [flat(stage.reveal(k)) for k in (0, 1, 8)]
    _check_grid("a flat y and a still book", stage.play(still[2:], still[:2]))


def _check_grid(said: str, played: Played) -> None:
    for failure in played.failures:
        raise AssertionError(f"{said}: expected an answer at each anchor, got {_told(failure)}")


ACTS: Final[tuple[tuple[str, str, Callable[[Stage], None]], ...]] = (
    ("PR-01", "answers", answers),
    ("PR-02", "same seed, same curves", is_repeatable),
    ("PR-03", "no future", sees_no_future),
    ("PR-04", "listed imports", imports_what_is_listed),
    ("PR-05", "in time", is_in_time),
    ("PR-06", "leaves nothing", leaves_nothing),
    ("PR-07", "any grid", takes_any_grid),
)


def _alone(act: Callable[[Stage], None]) -> Callable[[Subject], None]:
    """A check with a stage of its own."""

    def run(subject: Subject) -> None:
        with staged(Path(subject.make()), Host({}), os.environ) as stage:
            act(stage)

    return run


CHECKS: tuple[Check, ...] = tuple(Check(id_, title, _alone(act)) for id_, title, act in ACTS)


def examine(path: Path, host: Host, environ: Mapping[str, str]) -> list[tuple[str, str, str, str, float]]:
    """(id, title, `pass` | `fail` | `skip`, detail, ms) of every check of a submission, on one stage.

    Raises DataError `submission_refused`, DeniedError where no isolation is to be had.
    """
    subject = Subject("predictors", path.name, lambda: path)
    with staged(path, host, environ) as stage:

        def on_stage(act: Callable[[Stage], None]) -> Callable[[Subject], None]:
            return lambda _subject: act(stage)

        results = [judge(Check(id_, title, on_stage(act)), subject) for id_, title, act in ACTS]
    return [(one.id, one.title, one.result, one.detail, one.ms) for one in results]
