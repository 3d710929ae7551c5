"""Units by magnitude (DI-03)."""

from __future__ import annotations

import numpy as np
import pytest

from blindcast.errors import DataError
from blindcast_datasources.columns import NULL
from blindcast_datasources.times import Clock


def test_units_go_by_magnitude_value_by_value() -> None:
    """DV-01, DR-01: milliseconds became microseconds."""
    clock = Clock()
    assert clock.ns(1735689599999) == 1735689599999000000
    assert clock.ns(1735689600000000) == 1735689600000000000
    values = np.array([1735689599, 1735689599999, 1735689600000000, 1735689600000000001, 0, NULL])
    assert clock.array_ns(values, "x").tolist() == [
        1735689599000000000, 1735689599999000000, 1735689600000000000, 1735689600000000001, NULL, NULL
    ]  # fmt: skip


@pytest.mark.parametrize(("value", "unit"), [(1735689600000, "ns"), (17356896, ""), (-5, ""), (10**19, ""), (4102444800, "")])
def test_times_out_of_any_band_or_life_are_refused(value: int, unit: str) -> None:
    """DV-02, DR-02."""
    for call in (
        lambda: Clock(unit).ns(value),
        lambda: Clock(unit).array_ns(np.array([value]) if value < 2**63 else np.array([2**63 - 1]), "x"),
    ):
        with pytest.raises(DataError) as refused:
            call()
        assert refused.value.code == "time_unit"


@pytest.mark.parametrize(
    ("text", "tz", "ns"),
    [
        ("1735689600.123456789", "UTC", 1735689600123456789),
        ("2025-01-01T00:00:00Z", "America/New_York", 1735689600000000000),
        ("2025-01-01 01:00:00.000000001+01:00", "UTC", 1735689600000000001),
        ("2024-12-31T19:00:00.5", "America/New_York", 1735689600500000000),
    ],
)
def test_decimal_seconds_and_iso_text_are_read_exactly(text: str, tz: str, ns: int) -> None:
    """DI-03."""
    assert Clock(tz=tz).text_ns(text) == ns


@pytest.mark.parametrize("text", ["", "yesterday", "nan", "1e400"])
def test_what_is_no_time_is_refused(text: str) -> None:
    """DI-03."""
    with pytest.raises(DataError):
        Clock().text_ns(text)
