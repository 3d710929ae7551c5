"""Predictors: baselines, reference strategies and the brief's three scenarios. Each target is a file, never imported in the parent."""

from collections.abc import Iterable

from blindcast.hookspecs import Offer, hookimpl


@hookimpl
def predictors() -> Iterable[Offer]:
    """Shipped submissions by name."""
    yield Offer("flat", "blindcast_predictors.flat:Predictor", "no conviction, ever")
    yield Offer("always-long", "blindcast_predictors.always_long:Predictor", "+1 at every anchor: earns the drift and nothing else")
    yield Offer("always-short", "blindcast_predictors.always_short:Predictor", "-1 at every anchor: the mirror of always-long")
    yield Offer("persistence", "blindcast_predictors.persistence:Predictor", "sign of the window's last move between knots")
    yield Offer("momentum", "blindcast_predictors.momentum:Predictor", "sign of the window's move so far")
    yield Offer("warmup-drift", "blindcast_predictors.warmup_drift:Predictor", "sign of the warm-ups' drift, held")
    yield Offer("imbalance", "blindcast_predictors.imbalance:Predictor", "queue imbalance of the best five levels")
    yield Offer("lightgbm", "blindcast_predictors.boosted:Predictor", "boosted trees on book, flow and path, trained on the warm-ups")
    yield Offer("before-market", "blindcast_predictors.before_market:Predictor", "scenario: one call before the window opens")
    yield Offer("observe", "blindcast_predictors.observe:Predictor", "scenario: one call after a third of the window")
    yield Offer("tiled", "blindcast_predictors.tiled:Predictor", "scenario: three calls, each to the end of its tile")
    yield Offer("peek", "blindcast_predictors.peek:Predictor", "cheater: follows whatever unrevealed data it can find")
