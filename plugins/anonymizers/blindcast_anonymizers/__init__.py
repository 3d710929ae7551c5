"""Anonymizers: what turns a window into something nameless."""

from collections.abc import Iterable

from blindcast.hookspecs import Offer, hookimpl


@hookimpl
def anonymizers() -> Iterable[Offer]:
    """The brief's ladder in basis points."""
    yield Offer("bps", "blindcast_anonymizers.bps:Bps", "levels and path in bps of the window's start")
