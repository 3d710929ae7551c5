"""An answer as numbers: its type and length, looked at where the predictor runs (G-22, and the first half of G-23)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Final, Literal

import numpy as np

from blindcast.records import F64

__all__ = ["Code", "Refused", "flatten"]

Code = Literal["exception", "wrong_type", "wrong_length", "not_finite", "out_of_range", "deadline", "died"]


class Refused(Exception):
    """An answer that is no commitment: `code` of G-23 and the index of the first offending value, if there is one."""

    def __init__(self, code: Code, position: int | None = None) -> None:
        super().__init__(code)
        self.code: Code = code
        self.position = position


def _number(value: object) -> float:
    """The double a real number stores; NaN for `pd.NA`, infinity beyond float64. TypeError for anything else (G-22)."""
    if isinstance(value, float):
        return float.__pos__(value)  # a subclass is the double it stores: its methods are not asked
    if isinstance(value, int) and not isinstance(value, bool):
        try:
            return int.__float__(value)
        except OverflowError:
            return float("inf")
    is_scalar = isinstance(value, np.integer | np.floating) and not isinstance(value, np.timedelta64)  # numpy derives it from integer
    if is_scalar or (isinstance(value, np.ndarray) and _is_plain_array(value) and value.ndim == 0):
        return float(np.asarray(value).astype(np.float64)[()])
    pandas = sys.modules.get("pandas")
    if pandas is not None and value is pandas.NA:
        return float("nan")
    raise TypeError


def _is_plain_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "iuf" and not isinstance(value, np.ma.MaskedArray)


def _column(value: Any) -> F64 | None:
    """A numeric array or Series as F64 of its own shape; None if it is neither."""
    if isinstance(value, np.ndarray):
        if not _is_plain_array(value):
            raise Refused("wrong_type")
        return np.asarray(value).astype(np.float64)
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(value, pandas.Series):
        if getattr(value.dtype, "kind", "O") not in "iuf":
            raise Refused("wrong_type")
        column: F64 = value.to_numpy(dtype=np.float64, na_value=np.nan)
        return column
    return None


def _members(value: Sequence[object]) -> list[float]:
    """The doubles of a list or tuple. Raises Refused("wrong_type") at the first member that is no number."""
    values = []
    for position, member in enumerate(value):
        try:
            values.append(member + 0.0 if type(member) is float else _number(member))
        except TypeError:
            raise Refused("wrong_type", position) from None
    return values


_FLOATS: Final = frozenset((float,))


def flatten(value: object, remaining: int) -> Sequence[float] | F64 | None:
    """One double per remaining horizon, not yet bounded; None keeps the standing curve. Raises Refused (G-22, G-23)."""
    if value is None:
        return None
    kind = type(value)
    if kind is float:
        return [value] * remaining  # type: ignore[list-item]  # `kind` narrows nothing
    if isinstance(value, list | tuple):
        if (kind is list or kind is tuple) and len(value) == remaining and _FLOATS.issuperset(map(type, value)):
            return list(value)  # the usual answer, at the price of two passes in C
        values = _members(value)
        if len(values) != remaining:
            raise Refused("wrong_length")
        return values
    try:
        return [_number(value)] * remaining
    except TypeError:
        pass
    column = _column(value)
    if column is None:
        raise Refused("wrong_type")
    if column.shape != (remaining,):
        raise Refused("wrong_length")
    return column if remaining > 32 else column.tolist()
