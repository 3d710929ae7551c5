"""A plain function as a plugin object: it *is* the one method of its kind (P-32)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial, update_wrapper
from types import MappingProxyType

from blindcast.kinds import Kind

__all__ = ["Plain"]


class Plain:
    """An object whose one method is the function, its options bound once; constants take the Protocol's defaults."""

    def __init__(self, kind: Kind, function: Callable[..., object], options: Mapping[str, object]) -> None:
        bound = partial(function, **options)
        call = _graded(bound) if kind.name == "graders" else bound
        update_wrapper(call, function)
        shown = inspect.signature(function)
        positional = [p for p in shown.parameters.values() if p.kind is not p.KEYWORD_ONLY]
        call.__signature__ = shown.replace(parameters=positional)  # type: ignore[attr-defined]  # what inspect.signature reads
        setattr(self, kind.method, call)
        for name, value in kind.constants.items():
            setattr(self, name, value)
        if kind.name == "graders":
            self.diagnostics = _no_diagnostics

    def __repr__(self) -> str:
        return f"Plain({', '.join(sorted(vars(self)))})"


def _no_diagnostics(parts: Mapping[str, float]) -> Mapping[str, float | None]:
    """A plain function has no parts, so it has no diagnostics."""
    return MappingProxyType({})


def _graded(bound: Callable[..., object]) -> Callable[..., object]:
    """A grader's function may return the reward alone; it is not converted, so that GR-05 sees what it is."""

    def grade(*args: object, **kwargs: object) -> object:
        from blindcast.records import WindowGrade

        paid = bound(*args, **kwargs)
        return paid if isinstance(paid, WindowGrade) else WindowGrade(reward=paid)  # type: ignore[arg-type]  # the kit and the grader's caller check it

    return grade
