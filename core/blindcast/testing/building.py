"""CO-01 to CO-04: what every plugin object must do, whatever its kind (conformance.md)."""

from __future__ import annotations

import inspect
import io
import os
import random
import sys
import threading
import warnings
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout

from blindcast.errors import BlindcastError, DataError
from blindcast.kinds import KINDS
from blindcast.targets import imported
from blindcast.testing.kit import Check, Skip, Subject

__all__ = ["CHECKS"]


def builds(subject: Subject) -> None:
    """CO-01."""
    try:
        made = subject.make()
    except BlindcastError as error:
        raise AssertionError(f"{subject.name} with options {dict(subject.options)} does not build: [{error.code}] {error}") from error
    assert made is not None, f"{subject.name} built None"


def refuses_unknown_options(subject: Subject) -> None:
    """CO-02."""
    if subject.build is None or subject.offer is None:
        raise Skip("made by a factory, which takes no options")
    target = subject.offer.target
    swallows = _swallows(imported(target) if isinstance(target, str) else target)
    assert not swallows, f"{subject.name} takes **{swallows}: without the host, a misspelt option would pass"
    refusal: DataError | None = None
    try:
        subject.build({**subject.options, "zz_none": 1})
    except DataError as error:
        refusal = error
    assert refusal is not None, "option zz_none = 1 was taken; expected config_unknown_key"
    named = [fault["path"] for fault in refusal.detail.get("errors", ()) if fault["code"] == "config_unknown_key"]
    assert any(str(path).endswith("zz_none") for path in named), f"expected config_unknown_key at zz_none, got {refusal.code}: {refusal}"


def _swallows(target: object) -> str:
    """The name of the `**parameter` of a class's `__init__` or of a function, or ""."""
    function = target.__init__ if inspect.isclass(target) else target
    if not inspect.isfunction(function) or function.__module__ == "typing":  # a Protocol's stand-in
        return ""
    return "".join(p.name for p in inspect.signature(function).parameters.values() if p.kind is p.VAR_KEYWORD)


def _surroundings() -> Mapping[str, object]:
    """What building must leave as it was."""
    facts: dict[str, object] = {
        "working folder": os.getcwd(),
        "environment": dict(os.environ),
        "threads": sorted(thread.name for thread in threading.enumerate()),
        "warning filters": list(warnings.filters),
        "random state": random.getstate(),
    }
    if os.path.isdir("/proc/self/fd"):
        facts["descriptors"] = len(os.listdir("/proc/self/fd"))
    if "numpy" in sys.modules:
        import numpy as np

        state = np.random.get_state(legacy=False)
        facts["numpy random state"] = repr((state["state"]["pos"], state["state"]["key"].tobytes()))
    return facts


def building_is_quiet(subject: Subject) -> None:
    """CO-03: measured on a second building, so that imports are not blamed."""
    kept = [subject.make()]
    printed = io.StringIO()
    before = _surroundings()
    with redirect_stdout(printed), redirect_stderr(printed):
        kept.append(subject.make())
    after = _surroundings()
    changed = [name for name in before if before[name] != after[name]]
    assert not changed, f"building changed: {', '.join(changed)}"
    assert not printed.getvalue(), f"building printed {printed.getvalue()[:200]!r}"


def has_the_methods(subject: Subject) -> None:
    """CO-04: every member of the Protocol, each method called by position and by name."""
    from blindcast import contracts

    name = subject.protocol or KINDS[subject.kind].protocols[0]
    protocol = getattr(contracts, name, None)
    if protocol is None:
        raise Skip(f"Protocol {name} is not in this version")
    made = subject.make()
    members = [member for member in {**vars(protocol), **inspect.get_annotations(protocol)} if not member.startswith("_")]
    absent = [member for member in members if not hasattr(made, member)]
    assert not absent, f"{subject.name} lacks {', '.join(absent)} of {name}"
    for member in members:
        if inspect.isfunction(vars(protocol).get(member)):
            _binds(getattr(made, member), member, vars(protocol)[member])


def _binds(method: object, member: str, wanted: object) -> None:
    assert callable(method), f"{member} is not callable"
    assert callable(wanted)
    parameters = list(inspect.signature(wanted).parameters.values())[1:]  # without self
    required = [p for p in parameters if p.kind is not p.KEYWORD_ONLY]
    named = {p.name: None for p in parameters}
    signature = inspect.signature(method)
    for how, args, kwargs in (("position", required, {}), ("name", (), named)):
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            words = ", ".join(named) or "nothing"
            raise AssertionError(f"{member}{signature} does not take ({words}) by {how}: {error}") from error


CHECKS: tuple[Check, ...] = (
    Check("CO-01", "builds", builds),
    Check("CO-02", "unknown option refused", refuses_unknown_options),
    Check("CO-03", "building is quiet", building_is_quiet),
    Check("CO-04", "has the methods", has_the_methods),
)
