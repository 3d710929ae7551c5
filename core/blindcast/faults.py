"""Faults of a table: facts collected while it is structured, worded once (P-30)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

import attrs
from attrs import frozen

from blindcast.errors import DataError

__all__ = ["Fault", "Faults", "constructor_fault", "refused"]

SAID = {
    "config_unknown_key": "unknown key",
    "config_missing_key": "missing key",
    "config_wrong_type": "wrong type",
    "config_bad_value": "bad value",
}


@frozen
class Fault:
    """One fault: where below the table, its code, the value met, what was expected, the nearest known word."""

    path: tuple[str | int, ...]
    code: str
    value: object
    expected: str
    near: str | None = None


class Faults(Exception):
    """All faults of a value."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__(f"{len(faults)} faults")
        self.faults = tuple(faults)

    def under(self, step: str | int) -> list[Fault]:
        """The same faults, seen from the table that holds the value under `step`."""
        return [attrs.evolve(fault, path=(step, *fault.path)) for fault in self.faults]


def constructor_fault(error: Exception, values: Mapping[str, object]) -> Fault:
    """`config_bad_value` of a validator's or constructor's error; attrs' own texts begin with the field's name."""
    words = str(error.args[0] if error.args else error) or type(error).__name__
    quoted = re.match(r"'(\w+)' (.*)", words, re.DOTALL)
    if quoted is None or quoted[1] not in values:
        return Fault((), "config_bad_value", dict(values), words)
    return Fault((quoted[1],), "config_bad_value", values[quoted[1]], quoted[2])


def refused(faults: Faults, path: str = "", where: str = "") -> DataError:
    """The error of a table: `code` is that of the first fault by path, all stand in `detail["errors"]`."""
    told = sorted(faults.faults, key=lambda fault: [(isinstance(step, str), step) for step in fault.path])
    lines = [f"{_dotted(path, fault.path)}: {_words(fault)}" for fault in told]
    hints = [f"did you mean {fault.near!r}?" for fault in told if fault.near]
    return DataError(
        told[0].code,
        (f"{where}: " if where else "") + "; ".join(lines),
        expected="; ".join(dict.fromkeys(f"{_dotted(path, f.path)}: {f.expected}" if len(told) > 1 else f.expected for f in told)),
        do=" ".join(dict.fromkeys(hints)) or "change the value, or leave it out where there is a default",
        errors=[_told(fault, path) for fault in told],
    )


def _told(fault: Fault, path: str) -> dict[str, object]:
    place = _dotted(path, fault.path)
    return {"path": place, "code": fault.code, "value": _shown(fault.value), "expected": fault.expected, "nearest": fault.near}


def _words(fault: Fault) -> str:
    if fault.code == "config_missing_key":
        return SAID[fault.code]
    return f"{SAID[fault.code]}, got {_shorn(repr(fault.value))}" + (f", {fault.expected}" if fault.code == "config_bad_value" else "")


def _shorn(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + ".."


def _shown(value: object) -> object:
    if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return _shorn(repr(value))


def _dotted(path: str, steps: tuple[str | int, ...]) -> str:
    said = path
    for step in steps:
        said += f"[{step}]" if isinstance(step, int) else f".{step}" if said else step
    return said or "table"
