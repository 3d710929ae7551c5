"""A run in a dozen lines: what a person reads first (face.md section 3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["flags_text", "score_text", "signed"]


def signed(value: float | None, decimals: int = 0) -> str:
    """A number with its sign and thousands separators; `n/a` for None."""
    if value is None:
        return "n/a"
    text = f"{value:+,.{decimals}f}"
    return text.replace("-", "+", 1) if float(text.replace(",", "")) == 0 else text


def _plain(value: float | None, decimals: int = 3) -> str:
    return "n/a" if value is None else f"{value:.{decimals}f}"


def flags_text(grade: Mapping[str, Any]) -> str:
    """What stands beside a number wherever it is printed: a cap, a dry or an incomplete walk (G-94)."""
    capped = f"  capped at {grade['task']['capped']}" if grade["task"]["capped"] is not None else ""
    return capped + "".join(f"  {word}" for word, shown in (("DRY", grade["dry"]), ("INCOMPLETE", not grade["complete"])) if shown)


def score_text(grade: Mapping[str, Any], *, grid: str, isolation: str) -> str:
    """The text of a grade object; `grid` and `isolation` are lines of their own."""
    task = grade["task"]
    capped = f"  capped at {task['capped']}" if task["capped"] is not None else ""
    lines = [
        f"task {task['name']}  {task['split']}[{task['index']}]  {task['targets']} targets  {task['warmups']} warm-ups  {grid}{capped}",
        f"grader {grade['grader']}",
        isolation,
        f"reward            {signed(grade['reward_bps'])} bps   [interval not built yet]{flags_text(grade)}",
    ]
    lines += [*_split(grade), *_skill(grade), *_baselines(grade), *_health(grade)]
    return "\n".join(lines)


def _split(grade: Mapping[str, Any]) -> list[str]:
    fall = grade["waterfall"]
    if not fall:
        return []
    return [
        f"  bias (drift)    {signed(fall['bias_bps']):<12}  timing {signed(fall['timing_bps'])}   sizing {signed(fall['sizing_bps'])}   bps"
    ]


def _skill(grade: Mapping[str, Any]) -> list[str]:
    said = grade["diagnostics"] or {}
    return [
        f"  per market      {signed(grade['mean_reward_per_market_bps'], 1)} bps    direction {_plain(said.get('direction_accuracy'))}   "
        f"coverage {_plain(said.get('coverage'), 2)}   skill vs flat {_plain(said.get('skill_score_vs_flat'), 2)}   "
        f"vs persistence {signed(said.get('skill_vs_persistence_bps'))} bps"
    ]


def _baselines(grade: Mapping[str, Any]) -> list[str]:
    found = grade["baselines"]
    if not found:
        return []
    names = ("flat", "always_long", "always_short", "warmup_drift", "persistence")
    words = " | ".join(f"{name.replace('_', '-')} {signed(found[name])}" for name in names)
    coins = found.get("best_of_n_coins")
    tail = f"; best of {grade['trial']['index']} coins {signed(coins)}" if coins is not None else ""
    return [f"  baselines       {words}{tail}   bps"]


def _health(grade: Mapping[str, Any]) -> list[str]:
    windows = grade["windows"]
    refused = sum(grade["refused"].values())
    codes = ", ".join(f"{code} {n}" for code, n in grade["failures_by_code"].items())
    lines = [
        f"  failures        {windows['crashed']} of {grade['task']['targets']} windows"
        + (f", {windows['not_run']} not run" if windows["not_run"] else "")
        + f"      refused commitments {refused}"
        + (f" ({codes})" if codes else "")
    ]
    for failure in grade["failures"]:
        where = f" at {failure['file']}:{failure['line']}" if failure["file"] else ""
        lines.append(
            f"    window {failure['target']} anchor {failure['anchor']}: {failure['code']} {failure['type'] or ''}{where}".rstrip()
        )
    trial = grade["trial"]
    query = f", holdout query {trial['holdout_query']} ({trial['holdout_left']} left)" if trial["holdout_query"] is not None else ""
    lines.append(f"  counted as      trial {trial['index']} of this pool's {grade['task']['split']} split{query}")
    lines.append(f"  status          {grade['status']}" + (f" ({grade['reason']})" if grade["reason"] else ""))
    return [*lines, f"run {grade['run_id']}"]
