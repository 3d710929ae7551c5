"""The `data` group: make pools of recordings, say what is in them (DK-01, DK-04).

The module may not be called `commands`: it would hide the hook of that name once imported.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from blindcast.cli.door import Answer, command, current_door, current_host
from blindcast.cli.group import group
from blindcast.errors import DataError, UsageError

if TYPE_CHECKING:
    from blindcast.host import Host, Offered
    from blindcast_datasources.raw import RawFile
    from blindcast_datasources.report import Report

__all__ = ["data"]

_PREFIX: Final = re.compile(r"(?P<name>[A-Za-z][\w.-]*(/[A-Za-z][\w-]*)?):(?P<path>.+)")
STATS_GRID: Final = (900, 15)  # a day's usual window; the numbers are on its 1 s grid


@group(short_help="import and describe pools", epilog="Example: blindcast data describe synthetic")
def data() -> None:
    """Import recordings into pools, and describe them."""


@command("data.import", name="import", epilog="Example: blindcast data import lake:recordings/btcusd -o pools/btcusd")
@click.argument("paths", metavar="[IMPORTER:]PATH..", nargs=-1, required=True)
@click.option("-o", "--output", "output", required=True, type=click.Path(path_type=Path), help="The pool, a local folder.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="An option of the importer, as often as needed.")
@click.option("--allow-missing", is_flag=True, help="Leave damaged files out and list them, instead of refusing.")
@click.option("--force", is_flag=True, help="Replace a pool that stands there.")
def import_(paths: tuple[str, ...], output: Path, settings: tuple[str, ...], allow_missing: bool, force: bool) -> Answer:
    """Read recordings into a pool: integer ticks and lots, hashed, never half written."""
    import time

    from blindcast_datasources.imports import ImportOrder, run_import
    from blindcast_datasources.raw import found
    from blindcast_datasources.report import Report
    from blindcast_datasources.writer import refuse_existing

    began = time.monotonic()
    if re.match(r"[A-Za-z][\w+.-]+:/", str(output)):  # a Path folds the slashes of s3://
        raise UsageError("usage", f"-o {output} is a URL", expected="a local folder", do="import to a local folder and copy that")
    refuse_existing(output, force=force)
    name, places = _split(paths)
    files, passed = found(places)
    host = current_host()
    offered = host.find("datasources", name or _sniffed(host, files), "Importer")
    options = {**_options(settings), **({"allow_missing": True} if allow_missing else {})}
    importer = host.build("datasources", offered.qualified, options, protocol="Importer", where="--set")
    report = Report()
    order = ImportOrder(importer, offered.name, _version(offered), options, files, places, output, force)
    meta = run_import(order, report, _Said())
    answer = {"pool": str(output), **meta, "elapsed_s": round(time.monotonic() - began, 3)}
    return Answer(answer, _summary(output, meta), next=f"blindcast data describe {output}", warnings=_notes(report, passed))


@command("data.describe", name="describe", epilog="Example: blindcast data describe synthetic --set signal_strength=5")
@click.argument("pool", metavar="POOL|synthetic")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="An option of the synthetic market.")
def describe(pool: str, settings: tuple[str, ...]) -> Answer:
    """Say what a pool, or the synthetic market, is and how it moves: the numbers of a market on a 1 s grid."""
    from blindcast_datasources.describe import describe_pool, describe_synthetic, lines

    if pool == "synthetic":
        source = current_host().build("datasources", "synthetic", _options(settings), where="--set")
        found = describe_synthetic(source, *STATS_GRID)
    elif settings:
        raise UsageError("usage", "--set is for the synthetic market", expected="data describe POOL", do="leave --set out")
    else:
        found = describe_pool(Path(pool))
    head = "\n".join(f"{key:<20}{value}" for key, value in found["instrument"].items() if value is not None)
    truth = [f"{key}: {value}" for key, value in found.get("truth", {}).items() if not isinstance(value, Mapping | list)]
    return Answer(found, "\n".join([head, *truth, "", lines(found["stats"])]))


data.add_command(import_)
data.add_command(describe)


class _Said:
    """One line on stderr for each 250,000 rows (F-02)."""

    STEP = 250_000

    def __init__(self) -> None:
        self._rows = 0

    def __call__(self, rows: int) -> None:
        before, self._rows = self._rows, self._rows + rows
        if before // self.STEP != self._rows // self.STEP and not current_door().quiet:
            click.echo(f"import: {self._rows} rows and prints written", err=True)


def _split(texts: Sequence[str]) -> tuple[str, list[Path]]:
    """The importer that the paths name ("": none) and the paths. Raises UsageError, DataError `path_missing` for a URL."""
    names: dict[str, None] = {}
    places = []
    for text in texts:
        matched = _PREFIX.fullmatch(text)
        if "://" in text and not (matched and "://" not in matched["path"] and not text.startswith(f"{matched['name']}://")):
            raise DataError(
                "path_missing", f"{text} is a URL", expected="a local file, folder, glob or zip", do="download it first", path=text
            )
        if matched and not os.path.exists(text):
            names[matched["name"]] = None
            places.append(Path(matched["path"]))
        else:
            places.append(Path(text))
    if len(names) > 1:
        raise UsageError("usage", f"the paths name {len(names)} importers: {', '.join(names)}", expected="one", do="import them one by one")
    return next(iter(names), ""), places


def _sniffed(host: Host, files: Sequence[RawFile]) -> str:
    """The qualified name of the importer that knows the files best (DI-01)."""
    from blindcast_datasources.imports import best_importer

    scores: dict[str, float] = {}
    for offered in host.offers("datasources"):
        if offered.protocol == "Importer":
            importer = host.build("datasources", offered.qualified, {}, protocol="Importer")
            scores[offered.qualified] = max((importer.sniff(file.path) for file in files), default=0.0)
    return best_importer(scores)


def _options(settings: Sequence[str]) -> dict[str, Any]:
    from blindcast.spec import apply_settings

    return apply_settings({}, settings)


def _version(offered: Offered) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(offered.distribution)
    except PackageNotFoundError:
        return ""


def _notes(report: Report, passed: Sequence[Path]) -> tuple[str, ...]:
    """What was repaired and left out, for stderr (DK-01)."""
    words = [f"left out {path.name}: no data file" for path in passed]
    words += [f"left out {name}: {why}" for name, why in sorted(report.left_out.items())]
    words += [f"gap from {gap.from_ns} to {gap.to_ns if gap.to_ns is not None else 'the end'}: {gap.reason}" for gap in report.gaps]
    return tuple(words)


def _summary(output: Path, meta: Mapping[str, Any]) -> str:
    span_s = ((meta["t1_ns"] or 0) - (meta["t0_ns"] or 0)) / 1e9
    counts = ", ".join(f"{name} {n}" for name, n in meta["counts"].items() if n)
    ticker = meta["checks"]["ticker"]
    inferred = " and ".join(key for key in ("tick", "lot") if meta["inferred"][key])
    return "\n".join(
        [
            f"pool {output}  {meta['venue'] or 'venue unknown'} {meta['symbol'] or ''}".rstrip(),
            f"rows {meta['rows']}  prints {meta['trades']}  span {span_s:.3f} s  depth {meta['depth']}  clock {meta['clock']}",
            f"tick {meta['tick_size']}  lot {meta['lot_size']}" + (f"  ({inferred} inferred)" if inferred else ""),
            f"counts {counts or 'none'}",
            *([f"ticker check {ticker['equal']} of {ticker['states']} states agree"] if ticker else []),
            f"gaps {len(meta['gaps'])}  files left out {len(meta['missing'])}",
            f"digest {meta['hashes']['digest']}",
        ]
    )
