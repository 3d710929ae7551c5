"""The conformance kit and its skins; importing it loads neither pytest nor numpy, nor the kit before it is used (P-50)."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from blindcast.testing.kit import Check, Result, Skip, Subject, checks, conforms, examine, judge, subject_in, subject_of

__all__ = ["Check", "Result", "Skip", "Subject", "checks", "conforms", "examine", "judge", "subject_in", "subject_of"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("blindcast.testing.kit"), name)
