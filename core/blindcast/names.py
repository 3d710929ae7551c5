"""Names: how they are compared, which one was meant, and what a grade is called."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches

import attrs

__all__ = ["did_you_mean", "distribution_key", "grade_id", "name_key", "nearest"]


def name_key(name: str) -> str:
    """An offer's name as it is compared: `-` reads as `_` (P-10)."""
    return name.replace("-", "_")


def distribution_key(name: str) -> str:
    """A distribution's name as pip normalises it; `unknown` without one (P-20)."""
    return re.sub(r"[-_.]+", "-", name).lower() or "unknown"


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that is most like `word`, or None when none is like it."""
    spelt = {name_key(name).lower(): name for name in sorted(known, reverse=True)}
    close = get_close_matches(name_key(word).lower(), spelt, n=1, cutoff=0.5)
    if close:
        return spelt[close[0]]
    starts = [name for key, name in sorted(spelt.items()) if len(word) >= 3 and key.startswith(name_key(word).lower())]
    return starts[0] if starts else None


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """A `do:` line: the nearest known word, else `otherwise`."""
    near = nearest(word, known)
    return f"did you mean {near!r}? {otherwise}".rstrip() if near else otherwise


def grade_id(name: str, distribution: str, version: int, steps: int, options: Mapping[str, object]) -> str:
    """A grade's identity (P-33): `name/version;G=<steps>` and each option, sorted; foreign ones begin with `distribution/`.

    >>> grade_id("capped", "blindcast-capped", 1, 2, {"cap_bps": 25.0})
    'blindcast-capped/capped/1;G=2;cap_bps=25'
    """
    owner = "" if distribution == "blindcast" else f"{distribution}/"
    return f"{owner}{name}/{version};G={steps}" + "".join(f";{key}={_option_text(options[key])}" for key in sorted(options))


def _option_text(value: object) -> str:
    if isinstance(value, float):
        return repr(float(value) + 0.0).removesuffix(".0")  # + 0.0 turns -0.0 into 0.0
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{key}={_option_text(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(_option_text(item) for item in value) + "]"
    cls = type(value)
    if attrs.has(cls):
        return _option_text({a.name: getattr(value, a.name) for a in attrs.fields(cls)})
    return str(value)
