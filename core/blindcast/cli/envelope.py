"""The one JSON document of a command: strict, with a schema, `ok`, and `data` or `error` (DESIGN 8, F-05)."""

from __future__ import annotations

import datetime
import json
import math
import os
from collections.abc import Mapping
from decimal import Decimal
from enum import Enum
from typing import Any

import attrs
import click

from blindcast.errors import FaultError

__all__ = ["answered", "dump", "failed", "put", "strict"]


def put(text: str) -> None:
    """Write to stdout. Raises FaultError where it takes no more (a full disk); a reader that left is click's affair."""
    try:
        click.echo(text, nl=False)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise FaultError(
            "output_not_written",
            f"the answer could not be written to stdout: {error.strerror}",
            expected="a terminal, a pipe or a file with room",
            do="free some space and ask again; what was run and charged stands: `blindcast runs list`",
        ) from error


def strict(value: object) -> Any:
    """`value` as plain JSON: attrs values as objects, arrays as lists, paths as text, non-finite numbers as null.

    Raises TypeError for what has no plain form.
    """
    if value is None or isinstance(value, bool | str):
        return value.value if isinstance(value, Enum) else value
    if isinstance(value, int) and not isinstance(value, Enum):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): strict(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((strict(item) for item in value), key=str)
    if isinstance(value, list | tuple):
        return [strict(item) for item in value]
    cls = type(value)
    if attrs.has(cls):
        return {a.name.lstrip("_"): strict(getattr(value, a.name)) for a in attrs.fields(cls)}
    return _strict_leaf(value)


def _strict_leaf(value: object) -> Any:
    if isinstance(value, Enum):
        return strict(value.value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal):
        return str(value)
    to_list = getattr(value, "tolist", None)  # a numpy array or scalar, without importing numpy
    if callable(to_list):
        return strict(to_list())
    raise TypeError(f"no plain JSON form for {type(value).__qualname__}")


def dump(document: Mapping[str, Any]) -> str:
    """One strict JSON document and a line feed."""
    return json.dumps(strict(document), allow_nan=False, indent=2) + "\n"


def answered(schema: str, data: Mapping[str, Any]) -> str:
    """The envelope of an answer."""
    return dump({"schema": schema, "ok": True, "data": data})


def failed(schema: str, code: str, message: str, *, expected: str = "", hint: str = "", detail: Mapping[str, Any] | None = None) -> str:
    """The envelope of an error; what was expected stands in `detail.expected`."""
    error = {"code": code, "message": message, "hint": hint, "detail": {"expected": expected, **(detail or {})}}
    return dump({"schema": schema, "ok": False, "error": error})
