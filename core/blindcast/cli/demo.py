"""`blindcast demo`: the main job on the embedded market, end to end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from blindcast.cli.door import Answer, command, current_host
from blindcast.cli.opening import demo_court, home_of
from blindcast.cli.score import signed
from blindcast.cli.walking import appointed, walk

if TYPE_CHECKING:
    from blindcast.backends import Backend
    from blindcast.court import Court
    from blindcast.host import Host

__all__ = ["demo"]

PREDICTORS = ("flat", "persistence", "imbalance")
SCENARIOS = ("before-market", "observe", "tiled")
CHEATER = "peek"


@command("demo", short_help="walk three predictors over the embedded market", epilog="Example: blindcast demo --scenario tiled")
@click.option("--scenario", type=click.Choice(SCENARIOS), help="One of the brief's three scenarios instead.")
def demo(scenario: str | None) -> Answer:
    """Walk three predictors blind over the embedded market, and one that tries to cheat."""
    from blindcast.demo_report import write_report

    host = current_host()
    court = demo_court(host, home_of())
    names = (scenario,) if scenario else (*PREDICTORS, CHEATER)
    with appointed(host, court) as backend:
        rows = [_row(host, court, backend, name) for name in names]
    report = write_report(rows, court, home_of() / "demo.html")
    facts = {"digest": court.identity(), "split": "train", "index": 0, "targets": court.spec.split.targets}
    data = {"task": facts, "grader": court.grader_id, "runs": rows, "report": str(report)}
    return Answer(data, _text(rows, court, report), next="blindcast new predictor my_signal.py")


def _row(host: Host, court: Court, backend: Backend, name: str) -> dict[str, Any]:
    from blindcast.conduct import Order

    conducted, grade, _ = walk(host, court, Order(host.locate(name), "train", 0, "run"), backend, label=f"{name:<12}")
    said = grade["diagnostics"]
    return {
        "predictor": name,
        "run_id": conducted.run_id,
        "reward_bps": grade["reward_bps"],
        "mean_reward_per_market_bps": grade["mean_reward_per_market_bps"],
        "direction_accuracy": said["direction_accuracy"],
        "failures": grade["failures_total"],
        "isolation": grade["isolation"],
        "baselines": grade["baselines"],
        "wall_s": grade["wall_s"],
    }


def _text(rows: list[dict[str, Any]], court: Court, report: Path) -> str:
    split = court.spec.split
    lines = [
        f"an invented order book, blinded: {split.targets} windows of {court.grid.window_s} s, each predictor sees the past alone",
        f"{'predictor':<14}{'reward bps':>12}{'per window':>12}{'direction':>11}{'failures':>10}{'wall s':>8}   run",
    ]
    honest = [row for row in rows if row["predictor"] != CHEATER]
    lines += [_line(row) for row in honest]
    long = signed(honest[0]["baselines"]["always_long"], 1)
    lines.append(f"always-long would have earned {long} bps: a reward alone proves nothing (intervals and nulls come later)")
    lines += [_cheater_line(row) for row in rows if row["predictor"] == CHEATER]
    return "\n".join([*lines, f"report {report}"])


def _line(row: dict[str, Any]) -> str:
    right = row["direction_accuracy"]
    return (
        f"{row['predictor']:<14}{signed(row['reward_bps'], 1):>12}{signed(row['mean_reward_per_market_bps'], 1):>12}"
        f"{'n/a' if right is None else f'{right:.3f}':>11}{row['failures']:>10}{row['wall_s']:>8.1f}   {row['run_id']}"
    )


def _cheater_line(row: dict[str, Any]) -> str:
    backend = row["isolation"]["backend"] + ("" if row["isolation"]["class"] == "kernel" else ", a tripwire")
    earned = f"a cheater that hunts for unrevealed rows and hidden files earned {signed(row['reward_bps'], 1)} bps under {backend}"
    return f"{earned}: it found nothing to read" if row["reward_bps"] == 0 else f"{earned}: something is open, see `blindcast doctor`"
