"""Rows of the ledger and their chain (roles.md R-13, R-61, R-63, RV-33)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from attrs import asdict, evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from blindcast.entries import GENESIS, Entry, canonical, digest, now_utc
from blindcast.errors import UsageError

BODY = {"agent_id": "exe", "roles": ["research_executor"]}
RV_33 = "dd65716cbf9fd131947fde06653400406265cbf76341b25ef3767e5b0deb436a"


def test_the_digest_of_the_first_row_is_the_pinned_one() -> None:
    """RV-33."""
    assert digest(GENESIS, 1, "2026-01-01T00:00:00.000000Z", "agent", "g1", None, BODY) == RV_33


def test_a_row_is_sound_as_long_as_nothing_of_it_changes() -> None:
    """R-61: every field is in the digest."""
    row = Entry(1, "2026-01-01T00:00:00.000000Z", "agent", "g1", None, BODY, GENESIS, RV_33)
    assert row.is_sound()
    other = Entry(2, "2026-01-01T00:00:00.000001Z", "goal", None, "k", {}, "1" * 64, "0" * 64)
    for name, value in asdict(other, recurse=False).items():
        assert not evolve(row, **{name: value}).is_sound()


def test_canonical_form_has_sorted_keys_no_spaces_and_plain_unicode() -> None:
    """R-13."""
    assert canonical({"b": [1, 2.5, None, True], "a": {"z": "é\n", "y": "→"}}) == '{"a":{"y":"→","z":"é\\n"},"b":[1,2.5,null,true]}'


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_canonical_form_is_strict_json(value: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        canonical({"a": value})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.dictionaries(st.text(st.characters(codec="utf-8")), JSON, max_size=4))
def test_canonical_form_does_not_know_the_order_of_keys(body: dict[str, object]) -> None:
    turned = dict(reversed(body.items()))
    assert digest(GENESIS, 1, "", "note", None, None, body) == digest(GENESIS, 1, "", "note", None, None, turned)


@pytest.mark.parametrize("text", ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05", "2026-01-02T05:04:05+02:00"])
def test_the_clock_of_a_test_is_read_as_utc(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """DESIGN 8: BLINDCAST_CLOCK."""
    monkeypatch.setenv("BLINDCAST_CLOCK", text)
    assert now_utc() == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_a_clock_that_cannot_be_read_is_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLINDCAST_CLOCK", "noon")
    with pytest.raises(UsageError) as caught:
        now_utc()
    assert (caught.value.code, caught.value.exit_code) == ("clock_invalid", 2)


def test_without_it_the_clock_is_that_of_the_system() -> None:
    assert now_utc().tzinfo is UTC
