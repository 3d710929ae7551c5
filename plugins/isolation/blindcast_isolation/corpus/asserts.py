"""Further checks of rows whose outcome no canary shows, by the name that their data row gives."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np

from blindcast.printable import printable
from blindcast_isolation.corpus.stage import Stage
from blindcast_isolation.corpus.trial import Trial
from blindcast_isolation.corpus.verdicts import Judged
from blindcast_isolation.order import ENVIRONMENT

__all__ = ["CHECKS", "applied", "gap", "oracles"]

Check = Callable[[Trial, Stage], dict[str, str]]  # variant -> what was found wrong

GUESSES: Final = 10_000
_CHANCE: Final = 0.05  # how far from one half the agreement with the truth may lie: 10 standard deviations
_TIMES: Final = 1.2  # mean times within 20 % (A-06)
_SEALED: Final = 0.5  # what the crashing attacks answer before they crash
_WINDOW_ENDINGS: Final = re.compile(r"signal:\d+|exit:\d+|step_deadline")


def output_printable(trial: Trial, _stage: Stage) -> dict[str, str]:
    """What is kept of a flood shows no control character (A-32)."""
    kept = trial.walk.output
    return {} if printable(kept) == kept else {trial.variant: "what was kept of its output has control characters"}


def sealed_stands(trial: Trial, _stage: Stage) -> dict[str, str]:
    """What was sealed before a crash stands; from it on the curve is flat, and the next window has a new child (A-34)."""
    if not _WINDOW_ENDINGS.fullmatch(trial.walk.ended):
        return {}
    for walked in trial.walk.walked:
        if walked.reason is not None and (walked.curves[0, 1:] != _SEALED).any():
            return {trial.variant: f"target {walked.ordinal}: what was sealed at anchor 0 is gone"}
        if walked.reason is not None and walked.curves[1:].any():
            return {trial.variant: f"target {walked.ordinal}: its curve is not flat from the crash on"}
    return {} if len(trial.walk.walked) == trial.windows else {trial.variant: "the next window was not walked"}


def oracles(output: str) -> Iterator[tuple[str, str, str, str]]:
    """(call, kind, digits, means) of each line `oracle|CALL|answers|BITS|` or `oracle|CALL|quarters|DIGITS|NS,NS,NS,NS|`."""
    for line in output.splitlines():
        words = line.split("|")
        if len(words) >= 5 and words[0] == "oracle":
            yield words[1], words[2], words[3], words[4]


def _digits(text: str, bits: int) -> np.ndarray[tuple[int], np.dtype[np.int64]] | None:
    """One number of `bits` bits a name; None where the text is no such line."""
    if not re.fullmatch(rf"[0-9a-f]{{{GUESSES * bits // 4}}}", text):
        return None
    plain = np.unpackbits(np.frombuffer(bytes.fromhex(text), np.uint8)).reshape(GUESSES, bits).astype(np.int64)
    return plain @ (1 << np.arange(bits - 1, -1, -1))


def gap(
    quarters: np.ndarray[tuple[int], np.dtype[np.int64]], means_ns: Sequence[float], exists: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> float:
    """The greater mean time over the smaller, of the names that exist and of those that do not."""
    times = np.asarray(means_ns, float)[quarters]
    there, not_there = times[exists].mean(), times[~exists].mean()
    return float(max(there, not_there) / max(min(there, not_there), 1e-9))


def half_and_half(trial: Trial, stage: Stage) -> dict[str, str]:
    """The answers and the times tell nothing of which half of the names exists (A-06)."""
    exists = np.array([f"n{i:05}" in stage.half for i in range(GUESSES)])
    told: dict[str, str] = {}
    for call, kind, digits, means in oracles(trial.walk.output):
        values = _digits(digits, 1 if kind == "answers" else 2)
        if values is None:
            continue
        if kind == "answers" and abs(float((values == exists).mean()) - 0.5) > _CHANCE:
            told[call] = f"{(values == exists).mean():.1%} of its answers tell which names exist"
        elif kind == "quarters" and (ratio := gap(values, [float(ns) for ns in means.split(",")], exists)) > _TIMES:
            told.setdefault(call, f"one half takes {ratio:.2f} times as long as the other")
    return told


def only_revealed(trial: Trial, _stage: Stage) -> dict[str, str]:
    """What was read is zeros and rows revealed so far; the attack compares with what it was shown, and says LEAK (A-08)."""
    return {name: loot for name, (_, loot) in trial.facts.said.items() if "LEAK" in loot}


def curves_of_constant(trial: Trial, _stage: Stage) -> dict[str, str]:
    """The curves are those of 0.5 everywhere sent without tricks (A-36)."""
    for walked in trial.walk.walked:
        steps = len(walked.curves)
        if not np.array_equal(walked.curves, np.triu(np.full((steps, steps + 1), 0.5), 1)):
            return {trial.variant: f"target {walked.ordinal}: its curves are not those of a constant 0.5"}
    return {}


def fresh_is_empty(trial: Trial, _stage: Stage) -> dict[str, str]:
    """In `fresh` no window knows of an earlier one (A-37)."""
    if trial.state != "fresh":
        return {}
    return {name: f"a window knows of an earlier one: {loot}" for name, (outcome, loot) in trial.facts.said.items() if outcome == "got"}


def lists_libraries(trial: Trial, _stage: Stage) -> dict[str, str]:
    """The guard's message says what is allowed (A-38)."""
    _, text = trial.facts.said.get("by_name", ("", ""))
    wanted = "is not among the libraries of this court: numpy, "
    return {} if wanted in text else {"by_name": f"the guard does not list the libraries: {text}"}


def reads_not_writes(trial: Trial, _stage: Stage) -> dict[str, str]:
    """Its model file can be read, not written (C-06)."""
    missing = [words for words in ("model read", "model not written") if words not in trial.walk.output]
    return {"(run)": f"it did not say: {', '.join(missing)}"} if missing else {}


def own_descriptors(trial: Trial, _stage: Stage) -> dict[str, str]:
    """The own table is that of I-11 (A-16)."""
    tables = {name: loot for name, (outcome, loot) in trial.facts.said.items() if name.startswith("own_") and outcome == "got"}
    return {name: f"open descriptors: {loot}" for name, loot in tables.items() if loot != "0 1 2 3 4"}


def census(trial: Trial, _stage: Stage) -> dict[str, str]:
    """The environment is I-12's, and no module of the server's is loaded (A-17)."""
    wanted = {"environment": json.dumps(sorted(ENVIRONMENT.items())), "modules": "[]"}
    said = {name: trial.facts.said.get(name, ("", ""))[1] for name in wanted}
    return {name: f"not the documented set: {said[name]}" for name, text in wanted.items() if said[name] != text}


def spawn_advice(trial: Trial, _stage: Stage) -> dict[str, str]:
    """The message tells an honest author what to do instead (A-24, K-12)."""
    told = any("n_jobs=1" in loot for _, loot in trial.facts.said.values())
    return {} if told else {"(run)": "no message says `n_jobs=1`"}


CHECKS: Final[dict[str, Check]] = {
    "census": census,
    "curves_of_constant": curves_of_constant,
    "fresh_is_empty": fresh_is_empty,
    "lists_libraries": lists_libraries,
    "only_revealed": only_revealed,
    "own_descriptors": own_descriptors,
    "reads_not_writes": reads_not_writes,
    "half_and_half": half_and_half,
    "output_printable": output_printable,
    "sealed_stands": sealed_stands,
    "spawn_advice": spawn_advice,
}


def applied(name: str, judged: Sequence[Judged], trial: Trial, stage: Stage) -> list[Judged]:
    """The verdicts with the check's own in their place: M where it found something wrong."""
    if name not in CHECKS:
        return [*judged, Judged(f"({name})", "?", "no such check")]
    wrong = CHECKS[name](trial, stage)
    named = {one.variant for one in judged}
    changed = [Judged(one.variant, "M", wrong[one.variant]) if one.variant in wrong else one for one in judged]
    return [*changed, *(Judged(variant or f"({name})", "M", what) for variant, what in wrong.items() if variant not in named)]
