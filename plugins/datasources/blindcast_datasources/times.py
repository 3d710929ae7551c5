"""Times of recordings as ns since 1970 UTC: units by magnitude, value by value (DI-03)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
from numpy.typing import NDArray

from blindcast.entries import now_utc
from blindcast.errors import DataError
from blindcast.records import I64
from blindcast_datasources.columns import NULL

__all__ = ["UNITS", "Clock", "check_zone", "latest_ns"]

UNITS: Final = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_BANDS: Final = ((10**8, 10**11, 10**9), (10**11, 10**14, 10**6), (10**14, 10**17, 10**3), (10**17, 10**20, 1))
EARLIEST_NS: Final = 1_230_940_800 * 10**9  # 2009-01-03, the first block: no market on this page is older
DAY_NS: Final = 86_400 * 10**9


def latest_ns() -> int:
    """The last time that a recording may hold: now + 1 day."""
    return int(now_utc().timestamp()) * 10**9 + DAY_NS


def check_zone(name: str) -> None:
    """Raises ValueError for a time zone that is not known."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError, ValueError):
        raise ValueError(f"tz must name a time zone such as UTC or Europe/Berlin, got {name!r}") from None


def _refused(value: object, place: str, unit: str) -> DataError:
    return DataError(
        "time_unit",
        f"{place}: the time {value} {'in ' + unit + ' ' if unit else ''}lies outside 2009-01-03 .. now + 1 day",
        expected="s, ms, us or ns since 1970 UTC",
        do="state the unit: --set unit=s, ms, us or ns",
        value=str(value),
        place=place,
    )


class Clock:
    """Reads times. `unit` overrides the magnitude ("": by magnitude), `tz` is for texts without an offset."""

    def __init__(self, unit: str = "", tz: str = "UTC") -> None:
        self._unit = unit
        self._factor = UNITS[unit] if unit else 0
        self._zone = ZoneInfo(tz)
        self._latest = latest_ns()

    def ns(self, value: int, place: str | Callable[[], str] = "input") -> int:
        """One integer time. Raises DataError `time_unit`."""
        if self._factor:
            found = value * self._factor
        elif 10**11 <= value < 10**14:
            found = value * 10**6
        else:
            found = next((value * factor for low, high, factor in _BANDS if low <= value < high), 0)
        if not EARLIEST_NS <= found <= self._latest:
            raise _refused(value, place if isinstance(place, str) else place(), self._unit)
        return found

    def text_ns(self, text: str, place: str = "input") -> int:
        """One time as text: an integer, decimal seconds, or ISO. Raises DataError `time_unit`."""
        try:
            number = Decimal(text)
        except InvalidOperation:
            return self._iso_ns(text, place)
        if not number.is_finite():
            raise _refused(text, place, self._unit)
        if number == number.to_integral_value():
            return self.ns(int(number), place)
        factor = self._factor or next((factor for low, high, factor in _BANDS if low <= number < high), 0)
        found = int((number * factor).to_integral_value())
        if not EARLIEST_NS <= found <= self._latest:
            raise _refused(text, place, self._unit)
        return found

    def _iso_ns(self, text: str, place: str) -> int:
        head, dot, rest = text.strip().partition(".")
        digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
        try:
            at = datetime.fromisoformat(head + rest[len(digits) :] if dot else head)
        except ValueError:
            raise _refused(text, place, self._unit) from None
        at = at.replace(tzinfo=self._zone) if at.tzinfo is None else at
        since = at.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
        found = (since.days * 86_400 + since.seconds) * 10**9 + int((digits + "0" * 9)[:9])
        if not EARLIEST_NS <= found <= self._latest:
            raise _refused(text, place, self._unit)
        return found

    def array_ns(self, values: NDArray[np.int64] | NDArray[np.float64], place: str) -> I64:
        """Many times; NULL, NaN and 0 stay NULL. Raises DataError `time_unit`."""
        if np.issubdtype(values.dtype, np.floating):
            return self._seconds_ns(values.astype(np.float64), place)
        known = (values != NULL) & (values != 0)
        factors = np.zeros(len(values), dtype=np.int64)
        if self._factor:
            factors[:] = self._factor
        else:
            for low, high, factor in _BANDS:
                factors[(values >= low) & (values < min(high, 2**63 - 1))] = factor
        fits = (values > 0) & (values <= self._latest // np.maximum(factors, 1)) & (factors > 0)
        found = np.where(fits, values * factors, 0)
        return self._checked(found, known, values, place)

    def _seconds_ns(self, values: NDArray[np.float64], place: str) -> I64:
        """Floats: whole numbers go by magnitude, decimal ones keep what a double holds."""
        known = ~np.isnan(values) & (values != 0)
        found = np.zeros(len(values), dtype=np.int64)
        for index in np.flatnonzero(known):
            found[index] = self.text_ns(repr(float(values[index])), place)
        return np.where(known, found, NULL)

    def _checked(self, found: I64, known: NDArray[np.bool_], values: NDArray[np.int64] | NDArray[np.float64], place: str) -> I64:
        bad = known & ((found < EARLIEST_NS) | (found > self._latest))
        if bad.any():
            first = int(np.flatnonzero(bad)[0])
            raise _refused(values[first], f"{place}, row {first}", self._unit)
        return np.where(known, found, NULL)
