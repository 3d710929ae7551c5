"""The lattice that prices and sizes lie on (DI-04): decimal text to exact integers, tick and lot stated or inferred."""

from __future__ import annotations

from decimal import ROUND_DOWN, Context, Decimal, InvalidOperation
from math import gcd
from typing import Final

import numpy as np
from numpy.typing import NDArray

from blindcast.errors import DataError
from blindcast.records import F64, I64
from blindcast_datasources.columns import NULL

__all__ = ["FINE", "FinerNeeded", "Floats", "Grain", "Inference", "exact", "float_steps", "off_grid", "plain", "step_of"]

FINE: Final = 8  # decimals that a recording is read with before its own are known
FINEST: Final = 18
ENOUGH_PRICES: Final = 200  # distinct ones before a tick other than a power of ten is believed
_MULTIPLES: Final = (15_625, 3_125, 625, 125, 25, 5, 2)
_EXACT: Final = Context(prec=60)


class FinerNeeded(Exception):
    """A value has more decimals than the grain it is read with, or is too large for it."""

    def __init__(self, kind: str, decimals: int) -> None:
        super().__init__(f"{kind}: {decimals} decimals")
        self.kind = kind
        self.decimals = decimals


def exact(text: str) -> Decimal:
    """The number that a text states. Raises ValueError for what is no finite plain number."""
    if "_" in text:
        raise ValueError(f"no number: {text!r}")
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise ValueError(f"no number: {text!r}") from None
    if not value.is_finite():
        raise ValueError(f"no finite number: {text!r}")
    return value


def step_of(value: str | int | float | None, name: str) -> Decimal | None:
    """A stated tick or lot; a float means its shortest decimal. Raises ValueError unless it is positive."""
    if value is None:
        return None
    step = exact(str(value))
    if step <= 0:
        raise ValueError(f"{name} must be a positive number, got {value}")
    return step.normalize(_EXACT)


def plain(step: Decimal) -> str:
    """A tick or lot as decimal text without an exponent."""
    return format(step.normalize(_EXACT), "f")


def off_grid(value: Decimal, step: Decimal, name: str, place: str) -> DataError:
    """A value that is no multiple of the tick or lot."""
    text = format(value.normalize(_EXACT), "f")
    return DataError(
        "off_grid",
        f"{place}: {text} is no whole number of {name}s of {plain(step)}",
        expected=f"multiples of {plain(step)}",
        do=f"state a finer one: --set {name}=.., or leave it out to have it inferred",
        value=text,
        place=place,
    )


class Grain:
    """Reads decimal texts as integers of 10^-decimals, exactly; what was read is remembered."""

    MOST_KEPT = 300_000

    def __init__(self, kind: str, decimals: int = FINE) -> None:
        self.kind = kind
        self.decimals = decimals
        self._known: dict[str, int] = {}
        self._zeros = "0" * decimals

    def __call__(self, text: str) -> int:
        """The integer of one text. Raises FinerNeeded, ValueError for what is no number."""
        found = self._known.get(text)
        if found is None:
            if len(self._known) >= self.MOST_KEPT:
                self._known.clear()
            found = self._known[text] = self._read(text)
        return found

    def _read(self, text: str) -> int:
        whole, _, fraction = text.partition(".")
        if (
            len(fraction) <= self.decimals
            and whole.isdigit()
            and whole.isascii()
            and (not fraction or (fraction.isdigit() and fraction.isascii()))
        ):
            return int(whole + fraction + self._zeros[len(fraction) :])
        value = exact(text)
        scaled = value.scaleb(self.decimals, _EXACT)
        if scaled != scaled.to_integral_value(ROUND_DOWN):
            needed = -int(value.normalize(_EXACT).as_tuple().exponent)
            if needed > FINEST:
                raise ValueError(f"a number of more than {FINEST} decimals: {text!r}")
            raise FinerNeeded(self.kind, needed)
        return int(scaled)

    def coarse(self, values: I64, step: Decimal, name: str, place: str) -> I64:
        """Integers of 10^-decimals as multiples of `step`. Raises DataError `off_grid`."""
        scaled = step.scaleb(self.decimals, _EXACT)
        if scaled != scaled.to_integral_value():  # a step finer than the grain: values are whole grains
            return self._finer(values, step, name, place)
        unit = int(scaled)
        known = values != NULL
        quotient = np.where(known, values // unit, NULL)
        bad = known & (quotient * unit != values)
        if bad.any():
            at = np.argwhere(bad)[0]
            raise off_grid(Decimal(int(values[tuple(at)])).scaleb(-self.decimals, _EXACT), step, name, f"{place}, row {at[0]}")
        return quotient

    def _finer(self, values: I64, step: Decimal, name: str, place: str) -> I64:
        flat = []
        for value in values.ravel().tolist():
            if value == NULL:
                flat.append(NULL)
                continue
            number = Decimal(value).scaleb(-self.decimals, _EXACT)
            steps = _EXACT.divide(number, step)
            if steps != steps.to_integral_value():
                raise off_grid(number, step, name, place)
            flat.append(int(steps))
        return np.array(flat, dtype=np.int64).reshape(values.shape)


class Inference:
    """Finds tick or lot from integers of 10^-decimals: 10^-d, and for prices that times 5^6 .. 5, 2 (DI-04)."""

    def __init__(self, decimals: int) -> None:
        self.decimals = decimals
        self._divisor = 0
        self._distinct: set[int] = set()

    @property
    def is_settled(self) -> bool:
        """Nothing that follows can change the lattice, short of more decimals."""
        return self._divisor == 1 and len(self._distinct) >= ENOUGH_PRICES

    def see(self, values: I64) -> None:
        """Take values in; NULL counts as none."""
        known = values[values != NULL]
        if not known.size:
            return
        self._divisor = gcd(self._divisor, int(np.gcd.reduce(known)))
        for some in (known[: ENOUGH_PRICES * 8], known[ENOUGH_PRICES * 8 :]):  # the rest is seldom needed
            if len(self._distinct) < ENOUGH_PRICES:
                self._distinct.update(np.unique(some)[:ENOUGH_PRICES].tolist())

    def finer(self, decimals: int) -> None:
        """Go over to integers of a smaller 10^-decimals."""
        factor = 10 ** (decimals - self.decimals)
        self.decimals = decimals
        self._divisor *= factor
        self._distinct = {value * factor for value in self._distinct}

    def with_(self, other: Inference) -> Inference:
        """What two of one grain know together."""
        both = Inference(self.decimals)
        both._divisor = gcd(self._divisor, other._divisor)
        both._distinct = self._distinct | other._distinct
        return both

    def step(self, *, is_price: bool) -> Decimal:
        """The tick or lot of what was seen; 1 of nothing."""
        divisor, decimals = self._divisor or 10**self.decimals, self.decimals
        while decimals > 0 and divisor % 10 == 0:
            divisor //= 10
            decimals -= 1
        multiple = 1
        if is_price and len(self._distinct) >= ENOUGH_PRICES:
            multiple = next((m for m in _MULTIPLES if divisor % m == 0), 1)
        return Decimal(multiple).scaleb(-decimals, _EXACT)


class Floats:
    """Tick or lot of doubles: the fewest decimals at which each is a whole number, to within its own last bits."""

    SLACK = 2e-15  # relative: some ulps, as sums of decimals have

    def __init__(self) -> None:
        self.inference = Inference(0)

    def see(self, values: F64) -> None:
        """Take doubles in; NaN counts as none."""
        while True:
            scaled = values * 10.0**self.inference.decimals
            whole = np.rint(scaled)
            np.subtract(scaled, whole, out=scaled)
            off = np.abs(scaled, out=scaled) > self.SLACK * np.maximum(np.abs(whole), 1.0)  # false for NaN
            if self.inference.decimals >= FINEST - 4 or not off.any():
                break
            self.inference.finer(self.inference.decimals + 1)
        if not self.inference.is_settled:
            known = whole[np.abs(whole) < 2.0**63]
            self.inference.see(known.astype(np.int64))


def float_steps(values: F64, step: Decimal, name: str, place: str) -> I64:
    """Doubles as multiples of `step`, NaN as NULL. Raises DataError `off_grid` beyond 1e-3 + 4e-16 n of an integer n >= 1."""
    scaled = values / float(step)
    whole = np.rint(scaled)
    missing = np.isnan(values)
    bad: NDArray[np.bool_] = ~missing & ~(np.abs(scaled - whole) <= 1e-3 + 4e-16 * np.abs(whole))
    bad |= (whole == 0) & (values != 0)  # no size may vanish
    if bad.any():
        at = np.argwhere(bad)[0]
        raise off_grid(Decimal(repr(float(values[tuple(at)]))), step, name, f"{place}, row {at[0]}")
    return np.where(missing, float(NULL), whole).astype(np.int64)
