"""Options: the annotated keyword parameters of a class or of a plain function are its schema (P-31, P-32)."""

from __future__ import annotations

import dataclasses
import inspect
import sys
import typing
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Final

import attrs
from attrs import frozen

__all__ = ["REQUIRED", "Option", "options_of"]


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Final = _Required()


@frozen
class Option:
    """One option: its annotation, resolved, and its default or REQUIRED."""

    name: str
    annotation: object
    default: object = REQUIRED

    @property
    def default_words(self) -> str:
        """`, default ..` for messages."""
        return "" if self.default is REQUIRED else f", default {self.default!r}"


def options_of(target: Callable[..., object]) -> tuple[Option, ...]:
    """The options of a class (of its `__init__`) or of a plain function (its keyword-only parameters).

    Raises TypeError for an option without an annotation, or with one that does not resolve.
    """
    if not inspect.isclass(target):
        parameters = [p for p in inspect.signature(target).parameters.values() if p.kind is p.KEYWORD_ONLY]
        scopes = [getattr(inspect.unwrap(target), "__globals__", {})]
        return tuple(Option(p.name, _annotation(p.name, p.annotation, scopes), _default(p)) for p in parameters)
    scopes = [{**vars(sys.modules.get(owner.__module__, typing)), **vars(owner)} for owner in target.__mro__]
    if attrs.has(target):
        return tuple(
            Option(a.alias, _annotation(a.name, inspect.Parameter.empty if a.type is None else a.type, scopes), _attrs_default(a))
            for a in attrs.fields(target)
            if a.init
        )
    return _of_init(target, scopes)


def _of_init(target: type, scopes: Sequence[Mapping[str, object]]) -> tuple[Option, ...]:
    init = target.__dict__.get("__init__") or getattr(target, "__init__")  # noqa: B009  # mypy: reading it off the type is unsound
    if init is object.__init__:
        return ()
    scopes = [getattr(inspect.unwrap(init), "__globals__", {}), *scopes]
    factories = {f.name: f.default_factory for f in dataclasses.fields(target)} if dataclasses.is_dataclass(target) else {}
    found = []
    for parameter in list(inspect.signature(init).parameters.values())[1:]:
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            factory = factories.get(parameter.name, dataclasses.MISSING)
            default = _default(parameter) if factory is dataclasses.MISSING else factory()
            found.append(Option(parameter.name, _annotation(parameter.name, parameter.annotation, scopes), default))
    return tuple(found)


def _default(parameter: inspect.Parameter) -> object:
    return REQUIRED if parameter.default is parameter.empty else parameter.default


def _attrs_default(attribute: attrs.Attribute[object]) -> object:
    default = attribute.default
    if default is attrs.NOTHING:
        return REQUIRED
    if isinstance(default, attrs.Factory):  # type: ignore[arg-type]  # a class at run time, a function in the stubs
        return None if default.takes_self else default.factory()  # type: ignore[attr-defined]  # as above
    return default


def _annotation(name: str, annotation: object, scopes: Sequence[Mapping[str, object]]) -> object:
    if annotation is inspect.Parameter.empty:
        raise TypeError(f"option {name!r} has no annotation")
    fault: Exception | None = None
    for scope in scopes:
        try:
            hints = typing.get_type_hints(SimpleNamespace(__annotations__={name: annotation}), dict(scope))
        except Exception as error:  # whatever evaluating a stranger's annotation raises
            fault = error
        else:
            return hints[name]
    raise TypeError(f"the annotation of option {name!r} does not resolve: {fault}")
