"""The errors of a name that cannot be used: unknown, ambiguous, broken (P-24, P-25)."""

from __future__ import annotations

from collections.abc import Sequence

from blindcast.discovery import Plugin
from blindcast.errors import BlindcastError, DataError, FaultError, UsageError
from blindcast.kinds import Kind
from blindcast.names import did_you_mean, nearest
from blindcast.registration import Broken, Offered

__all__ = ["ambiguous", "broken_target", "unknown"]


def ambiguous(kind: str, name: str, qualified: Sequence[str]) -> UsageError:
    """Several distributions offer a bare name."""
    return UsageError(
        "plugin_ambiguous",
        f"{name!r} is offered by several distributions",
        expected="one of " + ", ".join(sorted(qualified)),
        do="name the distribution too, as in " + sorted(qualified)[0],
        kind=kind,
        name=name,
        qualified=sorted(qualified),
    )


def unknown(
    kind: Kind, name: str, offers: Sequence[Offered], plugins: Sequence[Plugin], broken: Sequence[Broken], *, from_spec: bool
) -> BlindcastError:
    """No plugin offers a name: told with the known names, the nearest, and what did not load."""
    if not plugins:
        return FaultError(
            "plugin_none",
            "no plugin is installed, not even blindcast's own",
            expected="entry points of the group 'blindcast'",
            do="run pip install -e .",
        )
    known = sorted({offered.qualified if offered.status == "ambiguous" else offered.name for offered in offers})
    refused = [f"{plugin.entry.key} ({plugin.why})" for plugin in plugins if plugin.status == "refused"]
    what = f"no {kind.word} is called {name!r}"
    if broken:
        what += "; broken, so perhaps its owner: " + "; ".join(f"{b.plugin} ({b.stage}: {b.message})" for b in broken)
    if refused:
        what += "; refused: " + ", ".join(refused)
    fault = DataError if from_spec else FaultError if broken else UsageError
    return fault(
        "plugin_unknown",
        what,
        expected="one of " + ", ".join(known) if known else f"an installed {kind.word}; there is none",
        do=did_you_mean(name, known, f"blindcast plugins list --kind {kind.name}"),
        kind=kind.name,
        name=name,
        known=known,
        nearest=nearest(name, known),
        broken=[b.plugin for b in broken],
        refused=[plugin.entry.key for plugin in plugins if plugin.status == "refused"],
    )


def broken_target(offered: Offered, broken: Broken) -> FaultError:
    """An offer whose target does not import or build."""
    requires = offered.offer.requires
    return FaultError(
        "plugin_broken",
        f"{offered.qualified} does not {'load' if broken.stage == 'resolve' else broken.stage}: {broken.message}",
        expected=f"{offered.offer.target} to {'import' if broken.stage == 'resolve' else broken.stage}",
        do="pip install " + " ".join(repr(item) if set(item) & set("<>=[ ") else item for item in requires) if requires else broken.do,
        plugin=broken.plugin,
        version=broken.version,
        stage=broken.stage,
        requires=list(requires),
    )
