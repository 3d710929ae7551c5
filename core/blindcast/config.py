"""Strict structuring of tables into values: nothing is coerced, every fault of a table is told at once (P-30, P-31)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import attrs
from cattrs import Converter

from blindcast.errors import DataError
from blindcast.faults import Fault, Faults, constructor_fault, refused
from blindcast.names import nearest
from blindcast.options import REQUIRED, Option, options_of

__all__ = ["Option", "fill", "make_converter", "options_of", "refusal_of", "structure", "type_words"]

T = TypeVar("T")

WORDS: Mapping[object, str] = {int: "an integer", float: "a finite number", bool: "true or false", str: "a text", Path: "a path (text)"}
LISTS = (list, tuple, set, frozenset, Sequence)


def type_words(annotation: object) -> str:
    """An annotation in a user's words."""
    if annotation in WORDS:
        return WORDS[annotation]
    origin, arms = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return " | ".join(repr(arm) if isinstance(arm, str) else str(arm) for arm in arms)
    if origin in (Union, UnionType):
        return " or ".join(type_words(arm) for arm in arms if arm is not NoneType)
    if annotation in LISTS or origin in LISTS:
        inner = [arm for arm in arms if arm is not Ellipsis]
        return f"a list of {type_words(inner[0])}" if len(set(inner)) == 1 else "a list"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return " | ".join(repr(member.value) for member in annotation)
    if attrs.has(annotation) if isinstance(annotation, type) else origin in (dict, Mapping):
        return "a table"
    return getattr(annotation, "__name__", str(annotation))


def make_converter() -> Converter:
    """The one converter: exact scalars, lists that are lists, tables that forbid unknown keys."""
    converter = Converter()

    def on(predicate: Callable[[Any], bool], hook: Callable[[Any, Any], object]) -> None:
        converter.register_structure_hook_func(predicate, hook)

    on(lambda t: t in (Any, object), lambda value, _: value)
    for scalar in (int, str, bool):
        converter.register_structure_hook(scalar, _exact)  # cattrs asks for these by class, before any predicate
    converter.register_structure_hook(float, _number)
    converter.register_structure_hook(Path, _path)
    on(lambda t: isinstance(t, type) and issubclass(t, Enum), _member)
    on(lambda t: get_origin(t) is Literal, _literal)
    on(lambda t: get_origin(t) in (Union, UnionType), lambda value, t: _union(converter, value, t))
    on(lambda t: t in LISTS or get_origin(t) in LISTS, lambda value, t: _list(converter, value, t))
    on(lambda t: t in (dict, Mapping) or get_origin(t) in (dict, Mapping), lambda value, t: _mapping(converter, value, t))
    on(lambda t: isinstance(t, type) and attrs.has(t), lambda value, t: _table(converter, value, t))
    return converter


def structure(table: Mapping[str, object], cls: type[T], path: str = "") -> T:
    """The value of class `cls` that a table states; `path` stands in front of each fault.

    Raises DataError with the code of the first fault by path (`config_unknown_key`, `config_missing_key`,
    `config_wrong_type`, `config_bad_value`) and all of them in `detail["errors"]`.
    """
    try:
        built: T = _table(make_converter(), table, cls)
    except Faults as faults:
        raise refused(faults, path) from None
    return built


def fill(table: Mapping[str, object], target: Callable[..., object], path: str = "", *, where: str = "") -> dict[str, object]:
    """The options of a class or plain function as a table states them, defaults filled in; nothing is built.

    Raises DataError as `structure` does; `where` names the plugin or file in the message.
    """
    options = options_of(target)
    values, faults = _values(make_converter(), table, options)
    if faults:
        raise refused(Faults([*faults, *_bad_values(target, values)]), path, where)
    return {option.name: values.get(option.name, option.default) for option in options}


def refusal_of(
    error: Exception, target: Callable[..., object], values: Mapping[str, object], path: str = "", *, where: str = ""
) -> DataError:
    """`config_bad_value` of what a constructor raised, by the path of the option whose validator it was (P-31)."""
    return refused(Faults(_constructor_faults(error, target, values)), path, where)


def _exact(value: object, cls: type) -> object:
    if type(value) is not cls:
        raise Faults([Fault((), "config_wrong_type", value, WORDS[cls])])
    return value


def _number(value: object, _: object) -> float:
    if type(value) in (int, float):
        try:
            number = float(value)  # type: ignore[arg-type]  # int or float, by the line above
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    raise Faults([Fault((), "config_wrong_type", value, WORDS[float])])


def _path(value: object, _: object) -> Path:
    if not isinstance(value, str | Path):
        raise Faults([Fault((), "config_wrong_type", value, WORDS[Path])])
    return Path(value)


def _member(value: object, cls: Any) -> object:
    for member in cls:
        if _same(member.value, value):
            return member
    return _no_choice(value, [member.value for member in cls], type_words(cls))


def _literal(value: object, annotation: object) -> object:
    choices = get_args(annotation)
    if any(_same(choice, value) for choice in choices):
        return value
    return _no_choice(value, choices, type_words(annotation))


def _same(choice: object, value: object) -> bool:
    return type(choice) is type(value) and choice == value


def _no_choice(value: object, choices: Sequence[object], words: str) -> object:
    is_wrong_type = all(type(choice) is not type(value) for choice in choices)
    near = nearest(value, [choice for choice in choices if isinstance(choice, str)]) if isinstance(value, str) else None
    raise Faults([Fault((), "config_wrong_type" if is_wrong_type else "config_bad_value", value, words, near)])


def _union(converter: Converter, value: object, annotation: object) -> object:
    arms = get_args(annotation)
    if value is None and NoneType in arms:
        return None
    real = [arm for arm in arms if arm is not NoneType]
    for arm in sorted(real, key=lambda arm: type(value) is not arm):  # an int stays an int where both are allowed
        try:
            structured: object = converter.structure(value, arm)
        except Faults:
            if len(real) == 1:
                raise
        else:
            return structured
    raise Faults([Fault((), "config_wrong_type", value, type_words(annotation))])


def _list(converter: Converter, value: object, annotation: object) -> object:
    if not isinstance(value, list | tuple):
        raise Faults([Fault((), "config_wrong_type", value, type_words(annotation))])
    origin = get_origin(annotation) or annotation
    arms = get_args(annotation) or (Any, ...)
    if origin is tuple and arms[-1] is not Ellipsis:
        if len(value) != len(arms):
            raise Faults([Fault((), "config_bad_value", list(value), f"a list of {len(arms)} items")])
        inner: Sequence[Any] = arms
    else:
        inner = [arms[0]] * len(value)
    items, faults = [], []
    for index, (item, arm) in enumerate(zip(value, inner, strict=True)):
        try:
            items.append(converter.structure(item, arm))
        except Faults as error:
            faults += error.under(index)
    if faults:
        raise Faults(faults)
    return tuple(items) if origin in (tuple, Sequence) else list(items) if origin is list else origin(items)  # type: ignore[operator]  # set, frozenset


def _mapping(converter: Converter, value: object, annotation: object) -> dict[str, object]:
    if not isinstance(value, Mapping):
        raise Faults([Fault((), "config_wrong_type", value, "a table")])
    arm = (*get_args(annotation), Any, Any)[1]
    values, faults = _values(converter, value, [Option(str(key), arm) for key in value])
    if faults:
        raise Faults(faults)
    return values


def _table(converter: Converter, value: object, cls: type[T]) -> T:
    if isinstance(value, cls):
        return value
    options = options_of(cls)
    values, faults = _values(converter, value, options)
    if faults:
        raise Faults([*faults, *_bad_values(cls, values)])
    try:
        return cls(**values)
    except (ValueError, TypeError) as error:
        raise Faults(_constructor_faults(error, cls, values)) from error


def _values(converter: Converter, table: object, options: Sequence[Option]) -> tuple[dict[str, object], list[Fault]]:
    """The structured values of the keys that are there, and every fault."""
    if not isinstance(table, Mapping):
        return {}, [Fault((), "config_wrong_type", table, "a table")]
    known = {option.name: option for option in options}
    expected = "; ".join(f"{option.name} ({type_words(option.annotation)}{option.default_words})" for option in options) or "no options"
    values: dict[str, object] = {}
    faults: list[Fault] = []
    for key, value in table.items():
        if key not in known:
            faults.append(Fault((str(key),), "config_unknown_key", value, expected, nearest(str(key), known)))
            continue
        try:
            values[key] = converter.structure(value, known[key].annotation)  # type: ignore[arg-type]  # any annotation, not only classes
        except Faults as error:
            faults += error.under(key)
    for name, option in known.items():
        if option.default is REQUIRED and name not in table:
            near = nearest(name, [str(key) for key in table if key not in known])
            faults.append(Fault((name,), "config_missing_key", None, type_words(option.annotation), near))
    return values, faults


def _constructor_faults(error: Exception, target: Callable[..., object], values: Mapping[str, object]) -> list[Fault]:
    """The faults behind a constructor's error: those of its validators, when one of them is what it raised."""
    told = constructor_fault(error, values)
    found = _bad_values(target, values)
    return found if any(fault.expected == told.expected for fault in found) else [told]


def _bad_values(target: Callable[..., object], values: Mapping[str, object]) -> list[Fault]:
    """What each attrs validator says of its value alone; one that needs the whole object has its say when that is built."""
    faults = []
    for attribute in attrs.fields(target) if isinstance(target, type) and attrs.has(target) else ():
        if attribute.validator is not None and attribute.alias in values:
            try:
                attribute.validator(None, attribute, values[attribute.alias])
            except ValueError as error:
                faults.append(attrs.evolve(constructor_fault(error, values), path=(attribute.alias,), value=values[attribute.alias]))
            except Exception:  # it asked the object that is not there yet
                continue
    return faults
