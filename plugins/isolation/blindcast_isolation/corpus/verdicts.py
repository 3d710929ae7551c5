"""Verdicts: what a variant's outcome is worth, the worst of a row, and how it stands to the cell expected (K-02, K-03, K-06)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from attrs import field, frozen

__all__ = ["ORDER", "Facts", "Judged", "agrees", "judge", "worst"]

ORDER: Final = "BKHDM?"  # best to worst; ? is an outcome that no cell allows
_REFUSED_BY_HOOK: Final = "isolation: "
_NEVER: Final = "?"


@frozen
class Facts:
    """What one run of a row left, as seen from outside.

    `said` gives each reported variant's (outcome, loot), `ended` the reason that ended the window or the run ("" none),
    `canaries` and `outside` what was found of whom: a variant's name, or "" where it cannot be told whose it is.
    """

    said: Mapping[str, tuple[str, str]]
    ended: str = ""
    canaries: Mapping[str, str] = field(factory=dict)
    outside: Mapping[str, str] = field(factory=dict)


@frozen
class Judged:
    """One variant's verdict and why."""

    variant: str
    verdict: str
    why: str


def worst(verdicts: Iterable[str]) -> str:
    """The worst of several; B of none.

    >>> worst("BKB"), worst("BHD"), worst("")
    ('K', 'D', 'B')
    """
    return max(verdicts, key=ORDER.index, default="B")


def agrees(expected: str, verdict: str) -> bool:
    """Whether a verdict is the one expected; `b` takes B or K (K-03), "" takes any.

    >>> agrees("b", "K"), agrees("B", "K"), agrees("M", "B")
    (True, False, False)
    """
    return not expected or verdict in ("BK" if expected == "b" else expected)


def judge(
    facts: Facts, variants: Sequence[str], *, is_harmless: bool, proof: str, reasons: Sequence[str], is_tripwire: bool
) -> list[Judged]:
    """The verdict of each variant of a run, and of what belongs to none of them.

    A canary or a trace outside is M whatever was said. Without one `got` is M where the word counts, H where
    the cell says so (`is_harmless`), else B: it gained nothing. What the hook refused is D where nothing stands behind it, else B.
    """
    judged = [_one(facts, name, is_harmless, proof, reasons, is_tripwire) for name in (variants or tuple(facts.said))]
    known = {one.variant for one in judged}
    for found in (facts.canaries, facts.outside):
        judged += [Judged(name or "(run)", "M", what) for name, what in found.items() if name not in known]
    if not judged:
        judged.append(_ended("(run)", facts.ended, reasons) if facts.ended else Judged("(run)", "B", "nothing was found"))
    return judged


def _one(facts: Facts, name: str, is_harmless: bool, proof: str, reasons: Sequence[str], is_tripwire: bool) -> Judged:
    outcome, loot = facts.said.get(name, ("", ""))
    for found in (facts.canaries, facts.outside):
        if name in found:
            return Judged(name, "M", found[name])
    if not outcome:
        return _ended(name, facts.ended, reasons) if facts.ended else Judged(name, _NEVER, "it said nothing, and nothing ended it")
    if outcome == "got" and is_harmless:
        return Judged(name, "H", f"got {loot}")
    if outcome == "got":
        return Judged(name, "M" if proof == "word" else "B", f"got {loot}" if proof == "word" else f"got nothing that counts: {loot}")
    if outcome == "raised" and _REFUSED_BY_HOOK in loot and is_tripwire:
        return Judged(name, "D", loot)
    return Judged(name, "B", f"{outcome} {loot}".strip())


def _ended(name: str, ended: str, reasons: Sequence[str]) -> Judged:
    if reasons and ended not in reasons:
        return Judged(name, _NEVER, f"ended with {ended}, expected {' or '.join(reasons)}")
    return Judged(name, "K", f"ended with {ended}")
