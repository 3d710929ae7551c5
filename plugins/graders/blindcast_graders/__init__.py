"""Graders: what a forecast earns. The official one pays early and far-reaching correct calls more."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING

from blindcast.hookspecs import Offer, hookimpl

if TYPE_CHECKING:
    from blindcast_graders.explain import baselines, waterfall
    from blindcast_graders.kernel import total_weight, weights
    from blindcast_graders.official import EarlinessHorizon, grader_id, pairs
    from blindcast_graders.segments import diagnostics

__all__ = [
    "EarlinessHorizon",
    "baselines",
    "diagnostics",
    "grader_id",
    "graders",
    "pairs",
    "total_weight",
    "waterfall",
    "weights",
]

# A module here must not bear a public name: importing it would put the module in the name's place.
_PUBLIC = {
    "EarlinessHorizon": "official",
    "baselines": "explain",
    "diagnostics": "segments",
    "grader_id": "official",
    "pairs": "official",
    "total_weight": "kernel",
    "waterfall": "explain",
    "weights": "kernel",
}


def __getattr__(name: str) -> object:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PUBLIC[name]}"), name)


@hookimpl
def graders() -> Iterable[Offer]:
    """The official grader."""
    yield Offer("earliness_x_horizon", "blindcast_graders.official:EarlinessHorizon", "conviction x move x earliness x horizon, bps")
