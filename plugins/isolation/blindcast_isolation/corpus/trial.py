"""One attack, tried: its submission folder, its run by the court's own parent code, and what was found of it from outside (K-04)."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Final

import numpy as np
from attrs import frozen

from blindcast.contracts import Isolation
from blindcast.records import Limits, Policy
from blindcast_isolation.corpus import leftovers
from blindcast_isolation.corpus.market import State, Walk, walk
from blindcast_isolation.corpus.rows import ATTACKS, Row
from blindcast_isolation.corpus.stage import Stage
from blindcast_isolation.corpus.verdicts import Facts
from blindcast_isolation.slots import SLOTS

__all__ = ["Trial", "said", "tried"]

_LOOT: Final = 65_536  # bytes read of each file that was left
_RANK: Final = ("raised", "nothing", "got")


@frozen(eq=False)
class Trial:
    """A run of a row, or of one of its variants, and the facts it left."""

    variant: str
    state: State
    windows: int  # that it was to walk
    walk: Walk
    facts: Facts


def said(output: str) -> dict[str, tuple[str, str]]:
    """Each variant's (outcome, loot) of a child's lines; of several lines of one variant the most successful.

    >>> said("noise\\nattack|open|raised|EPERM\\nattack|open|got|x\\n")
    {'open': ('got', 'x')}
    """
    told: dict[str, tuple[str, str]] = {}
    for line in output.splitlines():
        words = line.split("|", 3)
        if len(words) == 4 and words[0] == "attack" and words[2] in _RANK:
            before = told.get(words[1])
            if before is None or _RANK.index(words[2]) > _RANK.index(before[0]):
                told[words[1]] = (words[2], words[3])
    return told


class Beside:
    """An honest run of another session that goes on, again and again, while something else is tried."""

    def __init__(self, row: Row, isolation: Isolation, stage: Stage) -> None:
        self.walks: list[Walk] = []
        self._row, self._isolation, self._stage = row, isolation, stage
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._go, name="beside")

    def __enter__(self) -> Beside:
        self._thread.start()
        return self

    def _go(self) -> None:
        folder = _written(self._row, "", self._stage, 0)
        policy = Policy(Limits(), self._stage.uid_range)
        while not self._stop.is_set():
            self.walks.append(walk(self._isolation, folder, policy))
        shutil.rmtree(folder)

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    @property
    def harm(self) -> str:
        """What was wrong with any of its runs, "" nothing."""
        wrong = [f"{one.ended} {one.codes}" for one in self.walks if one.ended or one.codes or one.curves != self.walks[0].curves]
        return f"an honest run beside it: {wrong[0]}" if wrong else "" if self.walks else "no honest run beside it came to its end"


def tried(
    row: Row, variant: str, isolation: Isolation, stage: Stage, own: Mapping[str, int], state: State = "carry", control: Row | None = None
) -> Trial:
    """Run a row once ("" all its variants) and look at everything it left. Raises DeniedError.

    `control` is the honest run that goes on beside it, where the row wants one.
    """
    folder = _written(row, variant, stage, own.get("zygote", 0))
    windows = row.windows if variant in ("", *row.variants[:1]) else 1
    skipped = (str(stage.sessions), stage.targets["guess_folder"], str(SLOTS))
    before, inside = leftovers.taken(own, skipped), sorted(os.listdir(folder))
    stage.ears.taken()
    limits = Limits(step_wall_s=row.step_wall_s, run_wall_s=row.run_wall_s, memory_mb=row.memory_mb)
    policy = Policy(limits, stage.uid_range, tuple(Path(stage.targets[name]) for name in ("raw_root", "home")))
    beside = Beside(control, isolation, stage) if row.beside and control is not None else None
    with beside or nullcontext():
        done = walk(isolation, folder, policy, state, windows)
    after = leftovers.settled(before, own, skipped)
    found = leftovers.left(before, after)
    canaries = _canaries(stage, done, found)
    outside = _outside(stage, done, found, leftovers.grown(before, after))
    if sorted(os.listdir(folder)) != inside:
        outside.setdefault("", f"the submission's folder holds {sorted(os.listdir(folder))}")
    if beside is not None and beside.harm:
        outside[""] = beside.harm
    if done.altered:
        outside.setdefault("", done.altered)
    leftovers.clean(found)
    shutil.rmtree(folder)
    whose = {variant: "; ".join(outside.values())} if variant and outside else outside
    loot = {variant: "; ".join(canaries.values())} if variant and canaries else canaries
    return Trial(variant, state, windows, done, Facts(said(done.output), done.ended, loot, whose))


def _written(row: Row, variant: str, stage: Stage, zygote: int) -> Path:
    folder = stage.sessions / f"{row.id.lower()}-{os.urandom(4).hex()}"
    folder.mkdir(mode=0o755)
    targets = stage.targets | {"zygote_pid": zygote} | ({"variant": variant} if variant else {})
    (folder / "predictor.py").write_text(row.text, encoding="utf-8")
    (folder / "targets.json").write_text(json.dumps(targets), encoding="utf-8")
    shutil.copy(ATTACKS / "toolbox.py", folder / "toolbox.py")
    for name, text in row.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def _canaries(stage: Stage, done: Walk, found: Mapping[str, frozenset[str]]) -> dict[str, str]:
    """Variant ("" where none can be told) -> the canaries found in everything the run left."""
    told: dict[str, str] = {}
    for line in done.output.splitlines():
        kinds = [kind for text, kind in stage.canaries.items() if text in line]
        if kinds:
            words = line.split("|", 3)
            told[words[1] if len(words) == 4 and words[0] == "attack" else ""] = f"gave away: {', '.join(kinds)}"
    curves = np.frombuffer(done.curves, "<f8")
    bytes_of_curves = done.curves.decode("latin-1") + bytes(np.abs(curves * 255).round().astype("u1")).decode("latin-1")
    for place, text in (("a log", "\n".join(done.texts)), ("its curves", bytes_of_curves), ("a file", _contents(found.get("file", ())))):
        kinds = [kind for canary, kind in stage.canaries.items() if canary in text]
        if kinds:
            told.setdefault("", f"gave away in {place}: {', '.join(kinds)}")
    return told


def _contents(files: Sequence[str] | frozenset[str]) -> str:
    texts = []
    for path in files:
        with suppress(OSError):
            if os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as file:
                    texts.append(file.read(_LOOT).decode("latin-1"))
    return "\n".join(texts)


def _outside(stage: Stage, done: Walk, found: Mapping[str, frozenset[str]], changed: Sequence[str]) -> dict[str, str]:
    """Variant ("" where none can be told) -> what was found outside: connections, files, processes, keystrokes."""
    names = said(done.output)
    told: dict[str, str] = {}
    for name, words in stage.ears.taken():
        told[_whose(words.decode("latin-1"), names)] = f"reached the {name} listener"
    for path in sorted(found.get("file", ())):
        told[_whose(path, names)] = f"left {path}"
    for kind in sorted(set(found) - {"file"}):
        told[""] = f"left a {kind}: {', '.join(sorted(found[kind]))[:500]}"
    with suppress(BlockingIOError, OSError):
        typed = os.read(stage.terminal, _LOOT)
        told[_whose(typed.decode("latin-1"), names)] = f"typed {typed[:200]!r}"
    if changed:
        told[""] = "; ".join([*filter(None, [told.get("", "")]), *changed])
    return told


def _whose(text: str, names: Mapping[str, object]) -> str:
    """The longest variant's name that stands in the text; "" where none does."""
    return max((name for name in names if name in text), key=len, default="")
