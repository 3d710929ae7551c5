"""Choices made by rule."""

from __future__ import annotations

import pytest

import blindcast_isolation
from blindcast.errors import BudgetError, DeniedError, UsageError
from blindcast_isolation.choice import STATE_BYTES, choose, fresh_mode

ALL = ("privdrop", "userns", "bwrap", "landlock", "hook")


def test_only_the_hook_is_not_a_kernel_backend() -> None:
    """IV-09."""
    with pytest.raises(DeniedError) as caught:
        choose("any", "kernel", root=False, available={"hook"})
    assert (caught.value.code, caught.value.exit_code) == ("isolation_unavailable", 5)


def test_two_names_conflict() -> None:
    """IV-10."""
    with pytest.raises(DeniedError) as caught:
        choose("privdrop", "userns", root=True, available=set(ALL))
    assert (caught.value.code, caught.value.exit_code) == ("isolation_conflict", 5)


@pytest.mark.parametrize(("root", "chosen"), [(False, "userns"), (True, "privdrop")])
def test_the_first_available_is_chosen(root: bool, chosen: str) -> None:
    """IV-11, I-03."""
    assert choose("any", "", root=root, available=set(ALL)) == chosen


def test_an_unknown_word_is_a_usage_error() -> None:
    """I-03."""
    with pytest.raises(UsageError):
        choose("any", "strong", root=True, available=set(ALL))


@pytest.mark.parametrize(
    ("blob", "mode"), [(0, "none"), (295_000, "state"), (STATE_BYTES, "state"), (STATE_BYTES + 1, "refit"), (None, "refit")]
)
def test_how_fresh_windows_start(blob: int | None, mode: str) -> None:
    """I-35."""
    assert fresh_mode(blob, fit_s=1.0, windows=96, left_s=96.0) == mode


def test_refits_that_cannot_end_are_refused_at_once() -> None:
    """I-35: exit 7."""
    with pytest.raises(BudgetError) as caught:
        fresh_mode(None, fit_s=1.5, windows=96, left_s=143.9)
    assert (caught.value.code, caught.value.exit_code) == ("refit_too_slow", 7)


def test_the_pure_functions_are_the_packages_public_names() -> None:
    """I-08."""
    for name in ("judge", "layout", "choose", "nproc", "fresh_mode"):
        assert callable(getattr(blindcast_isolation, name))
    with pytest.raises(AttributeError):
        blindcast_isolation.nothing  # noqa: B018  # the access is the test
