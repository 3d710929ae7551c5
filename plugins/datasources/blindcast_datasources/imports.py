"""An import: raw files through an importer into a pool (DI-01, DI-10, DK-01)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from attrs import frozen

import blindcast
from blindcast.contracts import Importer, ImportReport
from blindcast.errors import DataError
from blindcast_datasources.columns import FORMAT
from blindcast_datasources.raw import RawFile
from blindcast_datasources.report import COUNTS, Report
from blindcast_datasources.writer import PoolWriter, aside

__all__ = ["ImportOrder", "best_importer", "run_import"]

LEAST_SCORE: Final = 0.5
LEAST_LEAD: Final = 0.2
_TICKER: Final = ("ticker_states", "ticker_equal")


def best_importer(scores: Mapping[str, float]) -> str:
    """The importer that knows the files best (DI-01). Raises DataError `format_unknown`, `format_ambiguous`."""
    ranked = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    words = ", ".join(f"{name} {score:.2f}" for name, score in ranked) or "none"
    if not ranked or ranked[0][1] < LEAST_SCORE:
        raise DataError(
            "format_unknown",
            f"no importer knows these files (scores: {words})",
            expected=f"a score of at least {LEAST_SCORE}",
            do="name the importer: blindcast data import IMPORTER:PATH -o POOL",
            scores=dict(ranked),
        )
    if len(ranked) > 1 and ranked[0][1] - ranked[1][1] < LEAST_LEAD:
        raise DataError(
            "format_ambiguous",
            f"several importers know these files (scores: {words})",
            expected=f"a lead of at least {LEAST_LEAD}",
            do=f"name one: blindcast data import {ranked[0][0]}:PATH -o POOL",
            scores=dict(ranked),
        )
    return ranked[0][0]


@frozen
class ImportOrder:
    """What to import, by which importer (its name, version and options, for `meta`), to where."""

    importer: Importer
    name: str
    version: str
    options: Mapping[str, Any]
    files: Sequence[RawFile]
    paths: Sequence[Path]
    target: Path
    force: bool = False


def run_import(order: ImportOrder, report: Report, progressed: Callable[[int], None] = lambda rows: None) -> dict[str, Any]:
    """Write the pool and return its `meta`. Raises what the importer raises, DataError `pool_empty`, FaultError `pool_unwritable`."""
    with aside(order.target, force=order.force) as folder:
        writer = PoolWriter(folder)
        try:
            counted: ImportReport = report
            for batch in order.importer.read(order.paths, counted):
                _put(writer, batch)
                progressed(batch.num_rows)
            if not writer.valid_states and order.options.get("book") != "none":
                raise _empty(report)
            return writer.close(_known(order, report))
        except BaseException:
            writer.abandon()
            raise


def _put(writer: PoolWriter, batch: pa.RecordBatch) -> None:
    if batch.num_rows:
        writer.put(batch)


def _empty(report: Report) -> DataError:
    breaks = "; ".join(f"{gap.reason}, from {gap.from_ns} ns, {_length(gap.from_ns, gap.to_ns)}" for gap in report.gaps[:3])
    return DataError(
        "pool_empty",
        "there is no valid state in the input" + (f": the feed breaks ({breaks})" if breaks else ""),
        expected="at least one book with both sides and bid <= ask",
        do="add the recording that holds a snapshot which fits, or look at --set gap=continue"
        if breaks
        else "check that these are the right files",
        gaps=[{"from_ns": gap.from_ns, "to_ns": gap.to_ns, "reason": gap.reason} for gap in report.gaps],
        counts=dict(report.counts),
    )


def _length(from_ns: int, to_ns: int | None) -> str:
    return "never mended" if to_ns is None else f"{(to_ns - from_ns) / 1e9:.3f} s long"


def _known(order: ImportOrder, report: Report) -> dict[str, Any]:
    """The keys of DP-05 that an importer told, in the page's order; unknown ones are null."""
    known = report.known
    spans = report.spans
    equal = {name: report.counts.get(name, 0) for name in _TICKER}
    return {
        "format": FORMAT,
        **{key: known.get(key) for key in ("venue", "symbol", "base", "quote")},
        "inverse": None if known.get("inverse") is None else known["inverse"] == "true",
        "contract_multiplier": known.get("contract_multiplier"),
        "tick_size": known.get("tick_size") or "1",
        "lot_size": known.get("lot_size") or "1",
        "inferred": {"tick": known.get("inferred_tick") == "true", "lot": known.get("inferred_lot") == "true"},
        "depth": int(known.get("depth") or 20),
        "clock": known.get("clock") or "exchange",
        "t0_ns": min((first for first, _ in spans.values()), default=None),
        "t1_ns": max((last for _, last in spans.values()), default=None),
        "rows": 0,
        "trades": 0,
        "counts": {name: report.counts.get(name, 0) for name in (*COUNTS, *sorted({*report.counts} - {*COUNTS, *_TICKER}))},
        "gaps": [{"from_ns": gap.from_ns, "to_ns": gap.to_ns, "reason": gap.reason} for gap in report.gaps],
        "missing": sorted(report.left_out),
        "importer": {"name": order.name, "version": order.version or blindcast.__version__, "options": dict(order.options)},
        "sources": [_source(file, spans.get(file.name)) for file in order.files if file.name not in report.left_out],
        "parts": [],
        "hashes": {},
        "checks": {"ticker": {"states": equal["ticker_states"], "equal": equal["ticker_equal"]} if equal["ticker_states"] else None},
        "licence": known.get("licence"),
    }


def _source(file: RawFile, span: tuple[int, int] | None) -> dict[str, Any]:
    sha256, size = file.sha256()
    first, last = span or (None, None)
    return {"name": file.name, "sha256": sha256, "bytes": size, "first_ts_ns": first, "last_ts_ns": last}
