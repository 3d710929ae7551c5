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

__all__ = ["doctor"]

LOW_MIB = 512  # a run directory is a few MiB; below this a long session may not be kept


@command("doctor", short_help="say what this machine can promise", epilog="Example: blindcast doctor --json")
def doctor() -> Answer:
    """Say what this machine can promise: isolation really in force, home, plugins."""
    host = current_host()
    backends = _backends(host)
    home = _home(home_of())
    broken = [broken.line for broken in host.broken]
    warnings = [*home["warnings"], *_isolation_warnings(backends), *(f"plugin: {line}" for line in broken)]
    data = {"python": platform.python_version(), "system": platform.system(), "root": os.geteuid() == 0, "home": home}
    data |= {"backends": backends, "plugins": {"offers": _offers(host), "broken": broken}, "warnings": warnings}
    return Answer(data, _text(data), next="blindcast demo", warnings=tuple(warnings))


def _backends(host: Host) -> list[dict[str, Any]]:
    from blindcast.backends import close
    from blindcast.records import Policy

    rows = []
    for offered in host.offers("isolations"):
        isolation = host.make(offered, {})
        try:
            report = isolation.probe(Policy())
        finally:
            close(isolation)
        controls = [{"id": c.id, "state": c.state, "detail": c.detail} for c in report.controls]
        rows.append(
            {
                "backend": offered.name,
                "class": report.classed,
                "available": report.available,
                "reason": report.reason or None,
                "kill": report.kill or None,
                "controls": controls,
                "detail": dict(report.detail),
            }
        )
    return rows


def _isolation_warnings(backends: list[dict[str, Any]]) -> list[str]:
    if not any(row["available"] for row in backends):
        return ["isolation: no backend is available here; no predictor can run"]
    if not any(row["available"] and row["class"] == "kernel" for row in backends):
        return ["isolation: no backend of class kernel; what runs here is a tripwire and does not stop a determined submission"]
    return []


def _home(home: Path) -> dict[str, Any]:
    existing = next(folder for folder in (home, *home.parents) if folder.exists())
    free_mib = shutil.disk_usage(existing).free >> 20
    warnings = []
    if not os.access(existing, os.W_OK):
        warnings.append(f"home: {existing} is not writable; set BLINDCAST_HOME")
    if free_mib < LOW_MIB:
        warnings.append(f"home: only {free_mib} MiB free at {existing}")
    if home.exists() and home.stat().st_mode & 0o077:
        warnings.append(f"home: {home} is open to other users; chmod 700 it: runs and the ledger are private")
    return {"path": str(home), "exists": home.exists(), "free_mib": free_mib, "warnings": warnings}


def _offers(host: Host) -> dict[str, int]:
    from blindcast.kinds import KINDS

    return {kind: len(host.offers(kind)) for kind in KINDS if host.offers(kind)}


def _text(data: dict[str, Any]) -> str:
    lines = [f"python {data['python']}, {data['system']}, {'root' if data['root'] else 'an ordinary user'}"]
    lines.append(f"home   {data['home']['path']}  ({data['home']['free_mib']:,} MiB free)")
    for row in data["backends"]:
        state = f"available, class {row['class']}, kill {row['kill']}" if row["available"] else f"not available: {row['reason']}"
        lines.append(f"isolation {row['backend']}: {state}")
        for control in row["controls"]:
            lines.append(f"  {control['id']:<16} {control['state']:<12} {control['detail']}".rstrip())
    lines.append("offers " + ", ".join(f"{kind} {n}" for kind, n in data["plugins"]["offers"].items()))
    return "\n".join(lines)
