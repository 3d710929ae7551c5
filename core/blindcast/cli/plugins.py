"""`blindcast plugins`: list what is installed, and check it (P-60, P-61)."""

from __future__ import annotations

import time
import tomllib
import traceback
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import click

from blindcast import __version__
from blindcast.cli.columns import columns
from blindcast.cli.completion import offers
from blindcast.cli.door import Answer, command, current_door, current_host
from blindcast.cli.group import group
from blindcast.discovery import Plugin, metadata_folders
from blindcast.errors import BlindcastError, UsageError
from blindcast.hookspecs import API
from blindcast.host import Broken, Host, Offered
from blindcast.kinds import KINDS
from blindcast.names import name_key

__all__ = ["plugins"]

FAILED = 6  # exit code: a plugin failed


@group(short_help="list plugins and check them", epilog="Example: blindcast plugins list")
def plugins() -> None:
    """List plugins and check them."""


def _kind(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    """A kind by its hook or by its word (`grader`)."""
    if value is None:
        return None
    meant = {word: kind.name for kind in KINDS.values() for word in (kind.name, kind.word)}
    if name_key(value) not in meant:
        from blindcast.names import did_you_mean

        raise click.BadParameter(f"no kind {value!r}; {did_you_mean(value, meant, 'kinds: ' + ', '.join(KINDS))}")
    return meant[name_key(value)]


@command("plugins.list", epilog="Example: blindcast plugins list --kind graders")
@click.option("--kind", callback=_kind, metavar="KIND", help="Only this kind, such as graders.")
def list_plugins(kind: str | None) -> Answer:
    """List every plugin and what it offers, broken ones too."""
    host = current_host()
    offers = [offered for name in KINDS if kind in (None, name) for offered in _shadowed(host.offers(name))]
    api = {plugin.entry.key: plugin.api for plugin in host.plugins}
    rows = [(o.kind, o.name, o.distribution, o.version, api.get(o.entry.key), o.status, o.summary) for o in offers]
    text = columns(("kind", "name", "distribution", "version", "API", "status", "summary"), rows)
    unusable = [plugin for plugin in host.plugins if plugin.status != "loaded"]
    if unusable:
        text += "\n\n" + columns(
            ("plugin", "version", "status", "why"), [(p.entry.key, p.entry.version, p.status, p.why) for p in unusable]
        )
    verbose = current_door().verbose
    data: dict[str, Any] = {
        "blindcast": __version__,
        "api": API,
        "plugins": [_plugin(plugin) for plugin in host.plugins],
        "offers": [_offer(offered) for offered in offers],
        "broken": [_broken(broken, verbose=verbose) for broken in host.broken],
        "warnings": list(host.warnings),
    }
    if verbose:
        data["metadata"] = metadata_folders()
        text += "".join("\n\n" + "".join(traceback.format_exception(broken.error)).rstrip() for broken in host.broken)
        text += "\n\n" + "\n".join(f"metadata of {name}: {', '.join(folders)}" for name, folders in data["metadata"].items())
    return Answer(data, text)


def _shadowed(offers: Sequence[Offered]) -> Sequence[Offered]:
    """Command offers that no one can reach by their bare name, because a core command has it."""
    from blindcast.cli import COMMANDS

    core = {name_key(name) for name in COMMANDS}
    return [
        attrs.evolve(o, status="shadowed", why="a core command has this name") if o.kind == "commands" and name_key(o.name) in core else o
        for o in offers
    ]


def _plugin(plugin: Plugin) -> dict[str, object]:
    entry = plugin.entry
    return {
        "plugin": entry.key,
        "distribution": entry.distribution,
        "version": entry.version,
        "module": entry.module,
        "api": plugin.api,
        "status": plugin.status,
        "why": plugin.why,
    }


def _offer(offered: Offered) -> dict[str, object]:
    target = offered.offer.target
    return {
        "kind": offered.kind,
        "protocol": offered.protocol,
        "name": offered.name,
        "qualified": offered.qualified,
        "plugin": offered.entry.key,
        "distribution": offered.distribution,
        "version": offered.version,
        "target": target if isinstance(target, str) else repr(target),
        "summary": offered.summary,
        "requires": list(offered.offer.requires),
        "status": offered.status,
        "why": offered.why,
    }


def _broken(broken: Broken, *, verbose: bool = False) -> dict[str, object]:
    told: dict[str, object] = {
        "plugin": broken.plugin,
        "distribution": broken.distribution,
        "version": broken.version,
        "stage": broken.stage,
        "hook": broken.hook,
        "error": type(broken.error).__name__,
        "message": broken.message,
        "do": broken.do,
    }
    if verbose:
        told["traceback"] = "".join(traceback.format_exception(broken.error))
    return told


def _settings(_context: click.Context, _option: click.Parameter, values: Sequence[str]) -> dict[str, object]:
    """`k=v` pairs; a value that reads as TOML is one, anything else is text."""
    settings: dict[str, object] = {}
    for pair in values:
        key, mark, text = pair.partition("=")
        if not mark or not key.strip():
            raise click.BadParameter(f"{pair!r} is not KEY=VALUE")
        try:
            settings[key.strip()] = tomllib.loads(f"value = {text}")["value"]
        except (tomllib.TOMLDecodeError, RecursionError):
            settings[key.strip()] = text
    return settings


@command("plugins.doctor", epilog="Example: blindcast plugins doctor earliness_x_horizon")
@click.argument("name", required=False, shell_complete=offers())
@click.option("--kind", callback=_kind, metavar="KIND", help="The kind of NAME, where several kinds have it.")
@click.option("--set", "settings", multiple=True, callback=_settings, metavar="KEY=VALUE", help="An option of NAME.")
def doctor(name: str | None, kind: str | None, settings: Mapping[str, object]) -> Answer:
    """Resolve every offer, or run the conformance checks of one."""
    host = current_host()
    return _examined(host, name, kind, settings) if name else _resolved(host, kind)


def _resolved(host: Host, kind: str | None) -> Answer:
    """Resolve every offer (a predictor is only located) and say what each plugin's import took."""
    offers = [offered for name in KINDS if kind in (None, name) for offered in host.offers(name)]
    resolved = []
    for offered in offers:
        started, fault = time.perf_counter(), ""
        try:
            host.locate(offered.qualified) if offered.kind == "predictors" else host.resolve(offered)
        except BlindcastError as error:
            fault = error.what
        ms = round(1e3 * (time.perf_counter() - started), 3)
        resolved.append(
            {"kind": offered.kind, "name": offered.name, "qualified": offered.qualified, "ok": not fault, "why": fault, "ms": ms}
        )
    imports = [{**_plugin(p), "import_ms": p.import_ms, "modules": p.pulled} for p in host.plugins]
    clashes = sorted({f"{offered.kind} {offered.name}: {offered.why}" for offered in offers if offered.status == "ambiguous"})
    doubled = [
        f"{name} has {len(folders)} metadata folders: {', '.join(folders)}; in use: {folders[0]}"
        for name, folders in metadata_folders().items()
        if len(folders) > 1
    ]
    text = columns(
        ("plugin", "status", "import ms", "modules"), [(p["plugin"], p["status"], p["import_ms"], p["modules"]) for p in imports]
    )
    text += "\n\n" + columns(
        ("kind", "name", "resolves", "ms"), [(r["kind"], r["qualified"], "yes" if r["ok"] else "no", r["ms"]) for r in resolved]
    )
    text += "".join(f"\nbroken: {broken.line}" for broken in host.broken) + "".join(f"\nclash: {clash}" for clash in clashes)
    data = {
        "plugins": imports,
        "offers": resolved,
        "broken": [_broken(broken) for broken in host.broken],
        "clashes": clashes,
        "warnings": [*host.warnings, *doubled],
    }
    return Answer(data, text, FAILED if host.broken else 0, warnings=tuple(doubled))


def _examined(host: Host, name: str, kind: str | None, settings: Mapping[str, object]) -> Answer:
    """Run the checks of the offer that `name` means."""
    from blindcast.testing.kit import checks, judge, subject_in

    offered = _meant(host, name, kind)
    subject = subject_in(host, offered, settings)
    results = [judge(check, subject) for check in checks(offered.kind, offered.protocol)]
    fails = sum(result.result == "fail" for result in results)
    text = columns(("check", "result", "ms", "detail"), [(f"{r.id} {r.title}", r.result, r.ms, r.detail) for r in results])
    passes = sum(result.result == "pass" for result in results)
    text += f"\n\n{offered.qualified}: {passes} passed, {fails} failed, {len(results) - passes - fails} skipped"
    data = {"kind": offered.kind, "name": offered.name, "qualified": offered.qualified, "options": settings, "checks": results}
    return Answer(data, text, FAILED if fails else 0)


def _meant(host: Host, name: str, kind: str | None) -> Offered:
    """The one offer of that name, in `kind` or in whichever kind has it."""
    seats = [(k.name, "" if p == k.protocols[0] else p) for k in KINDS.values() for p in k.protocols if kind in (None, k.name)]
    bare = name_key(name.rpartition("/")[2])
    having = [seat for seat in seats if any(name_key(o.name) == bare and o.protocol == seat[1] for o in host.offers(seat[0]))]
    if len(having) > 1:
        kinds = ", ".join(f"{k} {p}".strip() for k, p in having)
        raise UsageError(
            "plugin_ambiguous", f"{name!r} is offered in several kinds", expected=f"one of {kinds}", do=f"add --kind {having[0][0]}"
        )
    if having or kind:
        return host.find(*((having[0][0], name, having[0][1]) if having else (str(kind), name)))
    return _unknown_anywhere(host, name)


def _unknown_anywhere(host: Host, name: str) -> Offered:
    """Raise what `find` raises in the kind whose names are nearest."""
    from blindcast.names import nearest

    known = {offered.name: kind for kind in reversed(list(KINDS)) for offered in host.offers(kind)}
    return host.find(known.get(nearest(name, known) or "", "graders"), name)


plugins.add_command(list_plugins, "list")
plugins.add_command(doctor, "doctor")
