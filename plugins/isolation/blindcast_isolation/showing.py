"""`blindcast isolation show`: what isolation this host really gives, and which backend a run would get (isolation.md I-90)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from blindcast.cli.door import Answer, command, current_door, current_host
from blindcast.cli.opening import home_of, open_court

if TYPE_CHECKING:
    from blindcast.records import IsolationReport, Policy
    from blindcast.survey import Survey, Surveyed

__all__ = ["show"]

_FIRST: Final = 14  # characters of the first column
_NOTHING: Final = "-"


@command("isolation.show", name="show", epilog="Example: blindcast isolation show --require kernel")
@click.option("--require", metavar="WORD", help="any, kernel or a backend's name, in place of the task's word.")
@click.option("--task", "file", type=click.Path(path_type=Path, dir_okay=False, exists=True), metavar="T", help="Ask for this task's runs.")
def show(require: str | None, file: Path | None) -> Answer:
    """Try every control of every backend here by doing the forbidden thing, and say which backend a run would get.

    Exits 5 when the requirement (of the task, or --require, with BLINDCAST_REQUIRE_ISOLATION) cannot be met.
    """
    from blindcast.backends import SPEC
    from blindcast.survey import survey

    word, policy = _asked(file)
    where = SPEC if require is None else "--require"
    word = word if require is None else require
    found = survey(current_host(), word, policy, os.environ, root=os.geteuid() == 0, where=where)
    answer = Answer(_data(found, word, policy), _text(found, word), warnings=found.warnings)
    if found.refusal is None:
        return answer
    if not current_door().json:
        current_door().answer(answer)  # the table too says why
    found.refusal.detail.update(answer.data)
    raise found.refusal


def _asked(file: Path | None) -> tuple[str, Policy]:
    """The word of a task and its policy; without one `any`, and a policy that guards this home."""
    from blindcast.records import Policy
    from blindcast.survey import own_roots

    if file is None:
        return "any", Policy(raw_roots=own_roots(home_of(), os.environ))
    court = open_court(current_host(), file)
    return court.spec.isolation.require, court.policy


def _data(found: Survey, required: str, policy: Policy) -> dict[str, Any]:
    """The record of I-06, of the backend a run would get (null without one), and what was found of all."""
    from blindcast.backends import RECORD, isolation_record

    none: Mapping[str, object] = {**dict.fromkeys(RECORD), "required": required}
    record = none if found.chosen is None else isolation_record(found.chosen.report, required, policy)
    rows = [_row(one, policy) for one in found.backends]
    beside = {"available": found.available, "backends": rows, "slots": found.slots, "quarantined": found.quarantined}
    return {**record, **beside, "warnings": list(found.warnings)}


def _row(one: Surveyed, policy: Policy) -> dict[str, Any]:
    from blindcast.backends import isolation_record

    record = isolation_record(one.report, "", policy)
    kept = ("class", "controls", "interpreter", "filter_sha256", "kill")
    reason = one.report.reason or None
    return {"backend": one.name, "available": one.report.available, "reason": reason, **{key: record[key] for key in kept}}


def _text(found: Survey, required: str) -> str:
    from blindcast.backends import TRIPWIRE, VARIABLE

    reports = {one.name: one.report for one in found.backends}
    lines = list(_table(reports))
    lines += ["", *_reasons(reports)]
    lines += [f"{name}: not available: {report.reason}" for name, report in reports.items() if not report.available]
    lines += [f"{name}: {TRIPWIRE}" for name, report in reports.items() if report.available and report.classed == "tripwire"]
    lines += [f"filter {digest[:12]} ({', '.join(names)})" for digest, names in _filters(reports).items()]
    lines += [f"uid {uid['uid']} is quarantined: {uid['reason']}" for uid in found.quarantined]
    variable = f", {VARIABLE} {word}" if (word := os.environ.get(VARIABLE, "")) else ""
    got = "none, so it does not start" if found.chosen is None else found.chosen.name
    lines += [f"slots {found.slots} (runs at once)", f"a run gets: {got} (required: {required}{variable})"]
    return "\n".join(line for index, line in enumerate(lines) if line or lines[index - 1])


def _table(reports: Mapping[str, IsolationReport]) -> Iterator[str]:
    """Controls down, backends across; then what each backend is."""
    widths = [max(len(name), 11) + 2 for name in reports]
    first = max([_FIRST, *(len(id_) for id_ in _controls(reports))]) + 2

    def row(title: str, cells: Sequence[str]) -> str:
        return (title.ljust(first) + "".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))).rstrip()

    yield row("control", list(reports))
    for id_ in _controls(reports):
        states = [{control.id: control.state for control in report.controls}.get(id_, _NOTHING) for report in reports.values()]
        yield row(id_, states)
    yield ""
    yield row("class", [report.classed for report in reports.values()])
    yield row("available", ["yes" if report.available else "no" for report in reports.values()])
    yield row("interpreter", [_interpreter(report) for report in reports.values()])
    kills = _numbered([report.kill for report in reports.values() if report.kill])
    yield row("kill", [kills.get(report.kill, _NOTHING) for report in reports.values()])
    yield from (f"  {short} {kill}" for kill, short in kills.items() if short != kill)


def _numbered(words: Sequence[str]) -> dict[str, str]:
    """Words as a column can hold them: one that is too long by a number."""
    long = [word for word in dict.fromkeys(words) if len(word) > 11]
    return {word: f"[{long.index(word) + 1}]" if word in long else word for word in dict.fromkeys(words)}


def _controls(reports: Mapping[str, IsolationReport]) -> list[str]:
    return list(dict.fromkeys(control.id for report in reports.values() for control in report.controls))


def _interpreter(report: IsolationReport) -> str:
    if report.reason.startswith("interpreter_unreadable"):
        return "unreadable"
    return "the same" if report.detail.get("interpreter") else _NOTHING


def _reasons(reports: Mapping[str, IsolationReport]) -> Iterator[str]:
    """Why a control is not in force: each reason once, with whom it concerns."""
    found: dict[tuple[str, str], dict[str, list[str]]] = {}
    for name, report in reports.items():
        for control in report.controls:
            if control.state != "active" and control.detail != report.reason:
                found.setdefault((control.state, control.detail or "no reason given"), {}).setdefault(name, []).append(control.id)
    for (state, reason), whose in found.items():
        ids = list(dict.fromkeys(id_ for ids in whose.values() for id_ in ids))
        yield f"{state}: {', '.join(ids)} ({', '.join(whose)}): {reason}"


def _filters(reports: Mapping[str, IsolationReport]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, report in reports.items():
        if isinstance(digest := report.detail.get("filter_sha256"), str):
            found.setdefault(digest, []).append(name)
    return found
