"""`blindcast doctor`: what this machine can promise."""

from __future__ import annotations

import os
import platform
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blindcast.cli.door import Answer, command, current_host
from blindcast.cli.opening import home_of

if TYPE_CHECKING:
    from blindcast.host import Host
    from blindcast.survey import Survey, Surveyed

__all__ = ["doctor"]

LOW_MIB = 512  # a run directory is a few MiB; below this a long session may not be kept


@command("doctor", short_help="say what this machine can promise", epilog="Example: blindcast doctor --json")
def doctor() -> Answer:
    """Say what this machine can promise: isolation really in force, home, plugins."""
    from blindcast.records import Policy
    from blindcast.survey import own_roots, survey

    host, is_root = current_host(), os.geteuid() == 0
    found = survey(host, "any", Policy(raw_roots=own_roots(home_of(), os.environ)), os.environ, root=is_root)
    home = _home(home_of())
    broken = [broken.line for broken in host.broken]
    refused = [] if found.refusal is None else [f"isolation: {found.refusal.what}"]
    warnings = [*home["warnings"], *found.warnings, *refused, *(f"plugin: {line}" for line in broken)]
    data = {"python": platform.python_version(), "system": platform.system(), "root": is_root, "home": home}
    data |= {"backends": [_row(one) for one in found.backends], "isolation": None if found.chosen is None else found.chosen.name}
    data |= {"slots": found.slots, "quarantined": found.quarantined}
    data |= {"plugins": {"offers": _offers(host), "broken": broken}, "warnings": warnings}
    return Answer(data, _text(data, found), next="blindcast demo", warnings=tuple(warnings))


def _row(one: Surveyed) -> dict[str, Any]:
    report = one.report
    return {
        "backend": one.name,
        "class": report.classed,
        "available": report.available,
        "reason": report.reason or None,
        "kill": report.kill or None,
        "controls": [{"id": c.id, "state": c.state, "detail": c.detail} for c in report.controls],
        "detail": {key: value for key, value in report.detail.items() if key not in ("warnings", "quarantined")},
    }


def _home(home: Path) -> dict[str, Any]:
    existing = next(folder for folder in (home, *home.parents) if folder.exists())
    free_mib = shutil.disk_usage(existing).free >> 20
    warnings = []
    if not os.access(existing, os.W_OK):
        warnings.append(f"home: {existing} is not writable; set BLINDCAST_HOME")
    if free_mib < LOW_MIB:
        warnings.append(f"home: only {free_mib} MiB free at {existing}")
    return {"path": str(home), "exists": home.exists(), "free_mib": free_mib, "warnings": warnings}


def _offers(host: Host) -> dict[str, int]:
    from blindcast.kinds import KINDS

    return {kind: len(host.offers(kind)) for kind in KINDS if host.offers(kind)}


def _text(data: dict[str, Any], found: Survey) -> str:
    from blindcast.backends import TRIPWIRE

    lines = [f"python {data['python']}, {data['system']}, {'root' if data['root'] else 'an ordinary user'}"]
    lines.append(f"home   {data['home']['path']}  ({data['home']['free_mib']:,} MiB free)")
    lines.append(f"slots  {data['slots']}  (runs at once)")
    for row in data["backends"]:
        weak = "" if row["class"] == "kernel" else f"; {TRIPWIRE}"
        state = f"available, class {row['class']}, kill {row['kill']}{weak}" if row["available"] else f"not available: {row['reason']}"
        lines.append(f"isolation {row['backend']}: {state}")
        for control in row["controls"]:
            lines.append(f"  {control['id']:<16} {control['state']:<12} {control['detail']}".rstrip())
    lines.append(f"a run gets {'no isolation, so it does not start' if found.chosen is None else found.chosen.name}")
    lines.append("offers " + ", ".join(f"{kind} {n}" for kind, n in data["plugins"]["offers"].items()))
    return "\n".join(lines)
