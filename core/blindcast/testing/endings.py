"""IS-06, IS-07, IS-09: how a child ends that does not want to (conformance.md, isolation.md section 9). In a throw-away namespace only."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from attrs import evolve

from blindcast.contracts import Isolation
from blindcast.records import IsolationReport, Limits
from blindcast.testing import sources
from blindcast.testing.kit import Skip
from blindcast.testing.scene import POLICY, run
from blindcast.testing.surroundings import alive, left, resident_bytes, strain

__all__ = ["GONE_S", "deadlines_hold", "leaves_nothing_alive", "output_is_capped"]

GONE_S: Final = 0.5  # from the kill, or the deadline, to the whole tree gone (I-71)
STEP_S: Final = 0.5
GROWTH_BYTES: Final = 16 << 20


def _report(isolation: Isolation) -> IsolationReport:
    report = isolation.probe(POLICY)
    if not report.available:
        raise Skip(f"{report.backend} is not available here: {report.reason}")
    return report


def leaves_nothing_alive(isolation: Isolation, folder: Path) -> None:
    """IS-06: a process of the run is one that was not there before it. A backend that guarantees no kill is tried by plain Python only."""
    report = _report(isolation)
    doors = ("by_call",) if "not guaranteed" in report.kill else ("by_call", "by_library")
    before = alive()
    run(isolation, folder, sources.OUTLIVES.replace("DOORS", repr(doors)))
    more = left(before, GONE_S)
    assert not more, f"after the kill of a child that forked twice: expected no process of the run within {GONE_S:g} s, got {sorted(more)}"


def deadlines_hold(isolation: Isolation, folder: Path) -> None:
    """IS-07."""
    _report(isolation)
    before = alive()
    ran = run(isolation, folder, sources.STUBBORN, policy=evolve(POLICY, limits=Limits(step_wall_s=STEP_S)))
    assert ran.reasons == ["step_deadline"], f"a child that ignores signals: expected step_deadline, got {ran.reasons}"
    limit_s = STEP_S + GONE_S * strain()
    assert ran.took_s < limit_s, (
        f"a child that ignores signals: expected its end {limit_s:.2g} s after the question, got {ran.took_s:.2f} s"
    )
    more = left(before, limit_s - ran.took_s)
    assert not more, f"a child that ignores signals: expected it gone {limit_s:.2g} s after the question, got {sorted(more)}"


def output_is_capped(isolation: Isolation, folder: Path) -> None:
    """IS-09."""
    _report(isolation)
    run(isolation, folder, sources.HONEST)  # so that what this process keeps of a run is there already
    before = resident_bytes()
    ran = run(isolation, folder, sources.SHOUTS)
    grown = resident_bytes() - before
    assert ran.reasons == ["output"], f"1 GiB of output: expected the reason output, got {ran.reasons or ran.broken}"
    assert grown < GROWTH_BYTES, f"1 GiB of output: expected this process to grow by less than {GROWTH_BYTES >> 20} MiB, got {grown >> 20}"
    assert len(ran.output) < 1 << 20, f"1 GiB of output: expected its first and last part, got {len(ran.output)} characters"
