"""The answer of `run --warmups`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from blindcast.cli.door import Answer
from blindcast.cli.score import signed
from blindcast.cli.walking import appointed, own_ticket

if TYPE_CHECKING:
    from blindcast.court import Court
    from blindcast.host import Host

__all__ = ["rehearse_answer"]


def rehearse_answer(host: Host, court: Court, submission: Path, index: int, seed: int | None) -> Answer:
    """Walk the warm-ups leave-one-out and say how it went; counts nothing."""
    from blindcast.rehearsal import rehearse

    with appointed(host, court) as backend:
        data = rehearse(court, backend, submission, index, court.spec.seed if seed is None else seed, own_ticket)
    lines = [
        f"dry run over {len(data['folds'])} warm-ups: no trial, no verdict",
        f"{'window':<8}{'reward bps':>12}  {'refused':<28} fit s   walk s",
    ]
    for fold in data["folds"]:
        refused = ", ".join(f"{code} {n}" for code, n in fold["refused"].items()) or "none"
        lines.append(f"{fold['window']:<8}{signed(fold['reward_bps'], 1):>12}  {refused:<28} {fold['fit_s']:.2f}    {fold['walk_s']:.2f}")
    projection = data["projection"]
    lines.append(f"a submission would take about {projection['wall_s']:.1f} s of {projection['limit_s']:.0f} s: {projection['verdict']}")
    lines += [failure["text"].rstrip() for failure in data["failures"][:1] if failure["text"]]
    failed = bool(data["failures"])
    return Answer(data, "\n".join(lines), 1 if failed else 0, next="blindcast run FILE --task T", warnings=tuple(data["warnings"]))
