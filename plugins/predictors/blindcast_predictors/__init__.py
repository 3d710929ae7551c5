"""Predictors: baselines, reference strategies and the brief's three scenarios. Each target is a file, never imported in the parent."""

from collections.abc import Iterable

from blindcast.hookspecs import Offer, hookimpl


@hookimpl
def predictors() -> Iterable[Offer]:
    """Shipped submissions by name."""
    yield Offer("flat", "blindcast_predictors.flat:Predictor", "no conviction, ever")
