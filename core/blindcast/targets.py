"""Targets of offers: imported on use, or located without importing anything (P-10, P-25)."""

from __future__ import annotations

import importlib
import importlib.util
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from blindcast.registration import Refusal, quiet

__all__ = ["imported", "located", "spec_of"]


def imported(target: str) -> object:
    """What `pkg.mod:attr` names. Raises whatever the import raises."""
    module, _, attribute = target.partition(":")
    with quiet():
        found: object = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    return found


def spec_of(module: str) -> ModuleSpec | None:
    """The spec of a module; unlike `find_spec`, the packages above it are not imported either."""
    top, *below = module.split(".")
    spec = importlib.util.find_spec(top)
    for depth, name in enumerate(below, start=2):
        if spec is None or spec.submodule_search_locations is None:
            return None
        spec = PathFinder.find_spec(".".join([*module.split(".")[: depth - 1], name]), list(spec.submodule_search_locations))
    return spec


def located(target: str) -> Path:
    """The file of a target's module, or the folder of its package. Raises Refusal when it is not on disk."""
    module = target.partition(":")[0]
    spec = spec_of(module)
    if spec is None or spec.origin is None or not spec.has_location:
        raise Refusal(f"module {module} has no file")
    origin = Path(spec.origin)
    return origin.parent if spec.submodule_search_locations is not None else origin
