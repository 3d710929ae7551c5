"""The demo's report: one small static HTML table, offline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from blindcast.court import Court
from blindcast.errors import FaultError

__all__ = ["write_report"]


def write_report(rows: Sequence[Mapping[str, Any]], court: Court, path: Path) -> Path:
    """Write the table of the demo's runs to `path`, aside and renamed; returns it."""
    from jinja2 import Environment, StrictUndefined

    template = files("blindcast").joinpath("demo_report.html.j2").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    text = environment.from_string(template).render(rows=rows, grader=court.grader_id, digest=court.identity(), split=court.spec.split)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = path.with_name(f".{path.name}.aside")
        aside.write_text(text, encoding="utf-8")
        aside.replace(path)
    except OSError as error:
        raise FaultError(
            "report_not_written", f"{path}: {error.strerror}", expected="space below BLINDCAST_HOME", do="free some and run again"
        ) from error
    return path
