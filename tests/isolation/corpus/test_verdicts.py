"""Verdicts are a pure function of what a run left (attacks.md section 1)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blindcast_isolation.corpus.verdicts import ORDER, Facts, agrees, judge, worst

OUTCOMES = st.sampled_from(["raised", "nothing", "got"])
NAMES = st.sampled_from(["open", "openat", "fopen"])
TEXTS = st.sampled_from(["", "EPERM", "isolation: a predictor reads only its own folder", "loot"])
FOUND = st.dictionaries(st.one_of(NAMES, st.just("")), st.just("gave away: raw"), max_size=2)


def verdict_of(outcome: str, loot: str = "", *, proof: str = "canary", is_harmless: bool = False, is_tripwire: bool = False) -> str:
    facts = Facts({"open": (outcome, loot)})
    (judged,) = judge(facts, ["open"], is_harmless=is_harmless, proof=proof, reasons=(), is_tripwire=is_tripwire)
    return judged.verdict


@given(st.lists(st.sampled_from(ORDER), min_size=1))
@settings(deadline=None)
def test_the_worst_is_one_of_them_and_none_is_worse(verdicts: list[str]) -> None:
    """K-03."""
    found = worst(verdicts)
    assert found in verdicts
    assert all(ORDER.index(one) <= ORDER.index(found) for one in verdicts)


def test_verdicts_stand_from_best_to_worst() -> None:
    """K-03: B K H D M."""
    assert [worst(pair) for pair in ("BK", "KH", "HD", "DM")] == ["K", "H", "D", "M"]


@given(st.sampled_from("BKHDM"), st.sampled_from("BKHDM?"))
@settings(deadline=None)
def test_a_cell_that_differs_in_either_direction_does_not_agree(expected: str, verdict: str) -> None:
    """K-06."""
    assert agrees(expected, verdict) == (expected == verdict)


@pytest.mark.parametrize(("verdict", "is_fine"), [("B", True), ("K", True), ("H", False), ("D", False), ("M", False), ("?", False)])
def test_a_small_b_takes_blocked_or_killed(verdict: str, is_fine: bool) -> None:
    """K-02, K-03."""
    assert agrees("b", verdict) == is_fine


@given(st.dictionaries(NAMES, st.tuples(OUTCOMES, TEXTS)), FOUND, FOUND, st.sampled_from(["", "signal:9"]), st.booleans(), st.booleans())
@settings(deadline=None)
def test_what_is_found_from_outside_is_a_miss_whatever_was_said(
    said: dict[str, tuple[str, str]], canaries: dict[str, str], outside: dict[str, str], ended: str, is_harmless: bool, is_tripwire: bool
) -> None:
    """K-04: loot is never judged by the predictor's word alone."""
    judged = judge(
        Facts(said, ended, canaries, outside),
        ["open", "openat", "fopen"],
        is_harmless=is_harmless,
        proof="canary",
        reasons=(),
        is_tripwire=is_tripwire,
    )
    missed = {one.variant for one in judged if one.verdict == "M"}
    assert missed == {name or "(run)" for name in {*canaries, *outside}}
    assert {one.variant for one in judged} >= {"open", "openat", "fopen"}


def test_a_word_without_proof_gained_nothing() -> None:
    """K-02, K-04."""
    assert verdict_of("got", "loot") == "B"
    assert verdict_of("got", "loot", proof="word") == "M"
    assert verdict_of("got", "loot", is_harmless=True) == "H"


def test_what_the_hook_refused_is_detected_only_where_nothing_stands_behind_it() -> None:
    """K-02, I-02: the hook is no barrier."""
    text = "PermissionError: [Errno 1] isolation: a predictor has no network"
    assert verdict_of("raised", text, is_tripwire=True) == "D"
    assert verdict_of("raised", text) == "B"
    assert verdict_of("raised", "PermissionError: [Errno 1] Operation not permitted", is_tripwire=True) == "B"


def test_an_ending_is_a_kill_only_with_a_reason_that_the_row_names() -> None:
    """K-02: the window or the run ends with the reason named."""

    def ended(reason: str) -> str:
        facts = Facts({}, reason)
        return judge(facts, ["spin"], is_harmless=False, proof="word", reasons=("step_deadline",), is_tripwire=False)[0].verdict

    assert [ended("step_deadline"), ended("signal:11"), ended("")] == ["K", "?", "?"]
