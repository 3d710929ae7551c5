"""Isolation: how hostile code is run."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from blindcast.hookspecs import Offer, hookimpl

_PUBLIC = {
    "choose": "blindcast_isolation.choice",
    "exception_names": "blindcast.libraries",
    "fresh_mode": "blindcast_isolation.choice",
    "judge": "blindcast.judge",
    "layout": "blindcast.buffer",
    "libraries_text": "blindcast.libraries",
    "nproc": "blindcast_isolation.limits",
}


def __getattr__(name: str) -> object:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)


@hookimpl
def isolations() -> Iterable[Offer]:
    """Backends, strongest first (the order itself stands in `blindcast.backends`)."""
    yield Offer("privdrop", "blindcast_isolation.privdrop:PrivDrop", "a uid of its own, locked down; needs root")
    yield Offer("userns", "blindcast_isolation.userns:UserNamespaces", "a user namespace and all the others; for anyone who may")
    yield Offer("bwrap", "blindcast_isolation.bwrap:Bubblewrap", "the same by bubblewrap, an independent second")
    yield Offer("landlock", "blindcast_isolation.landlock:Landlock", "Landlock and seccomp, without namespaces")
    yield Offer("hook", "blindcast_isolation.hook:Hook", "an audit hook: a tripwire, for any system")


@hookimpl
def commands() -> Iterable[Offer]:
    """The `isolation` group."""
    yield Offer("isolation", "blindcast_isolation.isolation_group:isolation", "show and try the isolation of this host")
