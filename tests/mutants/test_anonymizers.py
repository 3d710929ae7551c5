"""Each mutant of an anonymizer fails its check and no other (conformance.md Q-01, plugins.md P-53)."""

from __future__ import annotations

import secrets
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
from attrs import evolve, frozen

from blindcast.records import F32, I64, Blinded, Window
from blindcast.testing import checks, judge, subject_of
from blindcast_anonymizers.bps import COLUMNS, HI, LO, Bps


class Honest:
    """`bps`, by another name."""

    strength: ClassVar[Literal["basic", "strong"]] = "basic"

    def blind(self, window: Window, salt: bytes) -> Blinded:
        return Bps().blind(window, salt)


def with_levels(blinded: Blinded, levels: Any) -> Blinded:
    """The view with another F32[N, 40] of levels, lower side first."""
    ladder: F32 = blinded.ladder.copy()
    ladder[:, LO][:, ::2] = levels[:, :20]
    ladder[:, HI][:, ::2] = levels[:, 20:]
    return evolve(blinded, ladder=ladder)


def levels_of(blinded: Blinded) -> Any:
    return np.concatenate([blinded.ladder[:, LO][:, ::2], blinded.ladder[:, HI][:, ::2]], axis=1)


class BaseIsTheFirstTrade(Honest):
    def blind(self, window: Window, salt: bytes) -> Blinded:
        blinded = super().blind(window, salt)
        return evolve(blinded, y=(blinded.y + 0.5).astype(np.float32).astype(np.float64))


class ScalesByTheDeviation(Honest):
    def blind(self, window: Window, salt: bytes) -> Blinded:
        blinded = super().blind(window, salt)
        return with_levels(blinded, levels_of(blinded) / np.float32(round(float(window.y.std()), 3) + 1.0))


class AbsoluteDistance(Honest):
    def blind(self, window: Window, salt: bytes) -> Blinded:
        blinded = super().blind(window, salt)
        opening = window.opening
        middle = opening["bid_px"][0].as_py()[0] + opening["ask_px"][0].as_py()[0]
        return with_levels(blinded, levels_of(blinded) * np.float32(middle * float(window.tick_size) / 2e4))


class TickSizeCounts(Honest):
    def blind(self, window: Window, salt: bytes) -> Blinded:
        blinded = super().blind(window, salt)
        return with_levels(blinded, levels_of(blinded) * np.float32(1 + float(window.tick_size)))


class KeepsNames(Honest):
    def blind(self, window: Window, salt: bytes) -> Blinded:
        names = {"lo": "bid", "hi": "ask"}
        columns = tuple(f"{names[c[:2]]}{c[2:]}" if c[:2] in names else c for c in COLUMNS)
        return evolve(super().blind(window, salt), columns=columns)


@frozen(eq=False)
class Labelled(Blinded):
    attrs: Any = None


class KeepsAttributes(Honest):
    def blind(self, window: Window, salt: bytes) -> Blinded:
        blinded = super().blind(window, salt)
        kept = {str(k, "ascii"): str(v, "ascii") for k, v in window.book.schema.metadata.items()}
        return Labelled(blinded.columns, blinded.ladder, blinded.events, blinded.y, blinded.ladder_until, blinded.events_until, attrs=kept)


class KeepsTheRef(Honest):
    def blind(self, window: Window, salt: bytes) -> Blinded:
        blinded = super().blind(window, salt)
        named = np.dtype(blinded.y.dtype, metadata={"ref": window.ref})
        return evolve(blinded, y=blinded.y.view(named))


class DrawsItsOwnSalt(Honest):
    def __init__(self) -> None:
        self.scale = np.float32(1 + secrets.randbelow(1 << 20) / (1 << 21))

    def blind(self, window: Window, salt: bytes) -> Blinded:
        blinded = super().blind(window, salt)
        ladder: F32 = blinded.ladder.copy()
        ladder[:, LO][:, 1::2] *= self.scale
        ladder[:, HI][:, 1::2] *= self.scale
        return evolve(blinded, ladder=ladder)


class StrongByName(Honest):
    strength: ClassVar[Literal["basic", "strong"]] = "strong"


class NormalisesInPlace(Honest):
    def blind(self, window: Window, salt: bytes) -> Blinded:
        blinded = super().blind(window, salt)
        window.y.flags.writeable = True
        window.y[...] /= 2
        return blinded


class JittersAlone(Honest):
    """A jitter for each level by itself: neighbours change places."""

    def blind(self, window: Window, salt: bytes) -> Blinded:
        blinded = super().blind(window, salt)
        levels = levels_of(blinded)
        jitter = np.random.default_rng(5).normal(0.0, 2.0, levels.shape)
        return with_levels(blinded, (levels + jitter).astype(np.float32))


class LocksTheBest(Honest):
    def blind(self, window: Window, salt: bytes) -> Blinded:
        blinded = super().blind(window, salt)
        levels = levels_of(blinded)
        levels[:, 0] = levels[:, 20]
        return with_levels(blinded, levels)


def until(blinded: Blinded, window: Window, side: Literal["left", "right"], early_s: float = 0.0) -> I64:
    """Counts of ladder rows by the time shown, before each knot or up to it."""
    grid = window.grid
    knots = np.arange(grid.steps + 1) * grid.window_s / grid.steps - early_s
    counts = np.searchsorted(blinded.ladder[:, 0].astype(np.float64), knots, side=side).astype(np.int64)
    counts[-1] = len(blinded.ladder)
    return counts


class UpToTheKnot(Honest):
    def blind(self, window: Window, salt: bytes) -> Blinded:
        blinded = super().blind(window, salt)
        return evolve(blinded, ladder_until=until(blinded, window, "right"))


class LateByAMoment(Honest):
    def blind(self, window: Window, salt: bytes) -> Blinded:
        blinded = super().blind(window, salt)
        return evolve(blinded, ladder_until=np.maximum(0, until(blinded, window, "left", early_s=0.01)))


class ForgetsTheTail(Honest):
    def blind(self, window: Window, salt: bytes) -> Blinded:
        blinded = super().blind(window, salt)
        counts = blinded.events_until.copy()
        counts[-1] = counts[-2]
        return evolve(blinded, events_until=counts)


class Doubles(Honest):
    def blind(self, window: Window, salt: bytes) -> Blinded:
        blinded = super().blind(window, salt)
        return evolve(blinded, ladder=blinded.ladder.astype(np.float64))


class FullPath(Honest):
    def blind(self, window: Window, salt: bytes) -> Blinded:
        return evolve(super().blind(window, salt), y=window.y)


class ZeroIsMissing(Honest):
    """Shows light levels as missing ones."""

    def blind(self, window: Window, salt: bytes) -> Blinded:
        blinded = super().blind(window, salt)
        ladder: F32 = blinded.ladder.copy()
        light = ladder[:, 2 * 20] < 0.5  # lo_W20
        ladder[light, 2 * 20 - 1 : 2 * 20 + 1] = np.nan
        return evolve(blinded, ladder=ladder)


class DropsEmptyLevels(Honest):
    def blind(self, window: Window, salt: bytes) -> Blinded:
        blinded = super().blind(window, salt)
        kept = [k for k in range(len(COLUMNS)) if not np.isnan(blinded.ladder[:, k]).all() or not len(blinded.ladder)]
        return evolve(blinded, columns=tuple(COLUMNS[k] for k in kept), ladder=np.ascontiguousarray(blinded.ladder[:, kept]))


MUTANTS = [
    (BaseIsTheFirstTrade, ["AN-01"]),
    (ScalesByTheDeviation, ["AN-02"]),
    (AbsoluteDistance, ["AN-03"]),
    (TickSizeCounts, ["AN-03"]),
    (KeepsNames, ["AN-04"]),
    (KeepsAttributes, ["AN-04"]),
    (KeepsTheRef, ["AN-04"]),
    (DrawsItsOwnSalt, ["AN-05"]),
    (StrongByName, ["AN-05"]),
    (NormalisesInPlace, ["AN-06"]),
    (JittersAlone, ["AN-07"]),
    (LocksTheBest, ["AN-07"]),
    (UpToTheKnot, ["AN-02", "AN-08"]),
    (LateByAMoment, ["AN-08"]),
    (ForgetsTheTail, ["AN-08"]),
    (Doubles, ["AN-09"]),
    (FullPath, ["AN-09"]),
    (ZeroIsMissing, ["AN-09"]),
    (DropsEmptyLevels, ["AN-10"]),
]


def failing(anonymizer: Any) -> dict[str, str]:
    subject = subject_of("anonymizers", anonymizer)
    results = (judge(check, subject) for check in checks("anonymizers"))
    return {result.id: result.detail for result in results if result.result == "fail"}


@pytest.mark.parametrize(("mutant", "ids"), MUTANTS, ids=lambda value: getattr(value, "__name__", ""))
def test_a_mutant_fails_its_check_and_no_other(mutant: type, ids: list[str]) -> None:
    """AN-01 to AN-10."""
    failed = failing(mutant)
    assert list(failed) == ids, failed


def test_the_honest_twin_fails_none() -> None:
    """Q-01."""
    assert failing(Honest) == {}


def test_every_check_of_anonymizers_has_a_mutant() -> None:
    """P-53."""
    own = {check.id for check in checks("anonymizers") if check.id.startswith("AN-")}
    assert own == {one for _, ids in MUTANTS for one in ids}
