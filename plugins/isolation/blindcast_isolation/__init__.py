"""Isolation: how hostile code is run."""

from collections.abc import Iterable

from blindcast.hookspecs import Offer, hookimpl


@hookimpl
def isolations() -> Iterable[Offer]:
    """Backends, strongest first (the order itself stands in `blindcast_isolation.choice`)."""
    yield Offer("privdrop", "blindcast_isolation.privdrop:PrivDrop", "a uid of its own, locked down; needs root")
    yield Offer("hook", "blindcast_isolation.hook:Hook", "an audit hook: a tripwire, for any system")
