"""AN-01 to AN-10: what an anonymizer must do so that a view is blind and causal (conformance.md, data.md section 9)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256
from itertools import pairwise
from typing import Any, Final

import numpy as np
from attrs import evolve

from blindcast.records import F32, F64, I64, Blinded, Window
from blindcast.testing.kit import Check, Skip, Subject
from blindcast.testing.samples import NAMES, START_NS, invented, replaced_after, scaled

__all__ = ["CHECKS"]

SALT: Final = bytes(range(32))
OTHER_SALT: Final = bytes(range(100, 132))
MOVED_BPS: Final = 1e-4  # AN-03
CHANGED: Final = 0.9  # share of rows that another salt must change (AN-05)
WORDS: Final = re.compile(r"(?<![a-z])(price|bid|ask)s?(?![a-z])", re.IGNORECASE)
DATES: Final = ("2020-03-01", "20200301", "2020/03/01", "01.03.2020", str(START_NS), str(START_NS // 1_000_000_000))


def _windows() -> Iterator[tuple[str, Window]]:
    """The windows that most checks look at, named."""
    yield "seed 1, 20 levels", invented(1)
    yield "seed 2, G 1", invented(2, steps=1, window_s=60)
    yield "seed 3, 8 levels, no prints", invented(3, levels=8, prints=0)
    yield "seed 4, G 90", invented(4, steps=90)


def _parts(blinded: Blinded) -> dict[str, Any]:
    return {name: getattr(blinded, name) for name in ("ladder", "events", "y", "ladder_until", "events_until")}


def _bytes(blinded: Blinded) -> dict[str, bytes]:
    return {name: np.ascontiguousarray(part).tobytes() for name, part in _parts(blinded).items()}


def starts_at_zero(subject: Subject) -> None:
    """AN-01."""
    anonymizer = subject.make()
    for name, window in _windows():
        first = float(anonymizer.blind(window, SALT).y[0])
        assert first == 0.0, f"window {name}: expected y[0] exactly 0, got {first!r}"


def future_has_no_say(subject: Subject) -> None:
    """AN-02: what comes after each anchor is cut away, and replaced by something wild."""
    anonymizer = subject.make()
    whole = anonymizer.blind(invented(5), SALT)
    for anchor in range(15):
        for cut in (True, False):
            other = anonymizer.blind(replaced_after(invented(5), anchor, cut=cut), SALT)
            seen, now_seen = _prefix(whole, anchor), _prefix(other, anchor)
            differs = [name for name in seen if seen[name] != now_seen[name]]
            said = f"seed 5, G 15, all from anchor {anchor} on {'cut away' if cut else 'replaced'}"
            assert not differs, f"{said}: expected the same bytes before it, got another {', '.join(differs)}"


def _prefix(blinded: Blinded, anchor: int) -> dict[str, bytes]:
    """What has been shown at an anchor, as bytes."""
    rows, prints = int(blinded.ladder_until[anchor]), int(blinded.events_until[anchor])
    cuts = {"ladder": rows, "events": prints, "y": anchor + 1, "ladder_until": anchor + 1, "events_until": anchor + 1}
    return {name: np.ascontiguousarray(part[: cuts[name]]).tobytes() for name, part in _parts(blinded).items()}


def is_scale_free(subject: Subject) -> None:
    """AN-03: by other ticks and by another tick size."""
    anonymizer = subject.make()
    base, other_ticks, other_size = (invented(6, middle=200_000, step=10) for _ in range(3))
    shown = anonymizer.blind(base, SALT)
    for how, other in (("in ticks", scaled(other_ticks, 73, 10)), ("by the tick size", evolve(other_size, tick_size="0.073"))):
        moved = anonymizer.blind(other, SALT)
        for name in ("ladder", "events", "y"):
            one, two = getattr(shown, name), getattr(moved, name)
            assert one.shape == two.shape, f"seed 6, prices times 7.3 {how}: expected {name} {one.shape}, got {two.shape}"
            far = float(np.nanmax(np.abs(one.astype(np.float64) - two), initial=0.0))
            said = f"seed 6, prices times 7.3 {how}: expected"
            assert far <= MOVED_BPS, f"{said} {name} within {MOVED_BPS} bps, got a move of {far:.6g}"
            assert (np.isnan(one) == np.isnan(two)).all(), f"{said} the same missing levels, got others"


def is_nameless(subject: Subject) -> None:
    """AN-04: the window's metadata and ref name the instrument; the answer must not."""
    anonymizer = subject.make()
    blinded = anonymizer.blind(invented(7), SALT)
    describe = getattr(anonymizer, "describe", None)
    texts = {"columns": " ".join(map(str, blinded.columns)), "repr": repr(blinded), "describe()": str(describe()) if describe else ""}
    for name in [name for name in dir(blinded) if not name.startswith("_")]:
        value = getattr(blinded, name)
        if not callable(value):
            dtype = getattr(value, "dtype", None)
            kept = [value if not isinstance(value, np.ndarray) else "", getattr(value, "attrs", ""), getattr(dtype, "metadata", ""), dtype]
            texts[f"metadata of {name}"] = repr(kept)
    for where, text in texts.items():
        named = [word for word in (*NAMES, *DATES) if word.casefold() in text.casefold()]
        named += [match.group() for match in WORDS.finditer(text.replace("_", " ")) if where != "describe()"]
        assert not named, f"a window of {NAMES[0]} on 2020-03-01: expected no name in its {where}, got {', '.join(named)}"


def is_salted(subject: Subject) -> None:
    """AN-05: another object, the same salt; for `strong` another salt too."""
    anonymizer = subject.make()
    one, again, twin = (_bytes(maker.blind(invented(8), SALT)) for maker in (anonymizer, anonymizer, subject.make()))
    for other in (again, twin):
        differs = [name for name in one if one[name] != other[name]]
        assert not differs, f"seed 8, the same salt twice: expected the same bytes, got another {', '.join(differs)}"
    if getattr(anonymizer, "strength", "basic") != "strong":
        return
    first, second = (anonymizer.blind(invented(8), salt).ladder for salt in (SALT, OTHER_SALT))
    if first.shape == second.shape:
        changed = float(np.mean([a.tobytes() != b.tobytes() for a, b in zip(first, second, strict=True)]))
        assert changed >= CHANGED, f"seed 8, another salt: expected at least {CHANGED:.0%} of the rows to differ, got {changed:.1%}"


def keeps_hands_off(subject: Subject) -> None:
    """AN-06."""
    anonymizer = subject.make()
    for name, window in _windows():
        before = _digests(window)
        anonymizer.blind(window, SALT)
        changed = [part for part, digest in _digests(window).items() if digest != before[part]]
        assert not changed, f"window {name}: expected it unchanged, got another {', '.join(changed)}"


def _digests(window: Window) -> dict[str, str]:
    tables = {"book": window.book, "trades": window.trades, "opening": window.opening}
    said = {name: sha256(repr((table.schema, table.to_pydict())).encode()).hexdigest() for name, table in tables.items()}
    return said | {"y": sha256(window.y.tobytes()).hexdigest()}


def _sides(blinded: Blinded) -> tuple[F32, F32]:
    """F32[N, levels] of both sides, level 1 first. Raises Skip where the columns have no such names."""
    columns = list(blinded.columns)
    found = [[columns.index(f"{side}_L{k}") for k in range(1, 100) if f"{side}_L{k}" in columns] for side in ("lo", "hi")]
    if not all(found):
        raise Skip("its columns have no lo_L1 .. and hi_L1 ..")
    return blinded.ladder[:, found[0]], blinded.ladder[:, found[1]]


def never_crosses(subject: Subject) -> None:
    """AN-07: also where float32 can no longer tell two ticks apart."""
    anonymizer = subject.make()
    far = ("seed 9, a tick of 5e-6 bps", invented(9, middle=2_000_000_000, step=1))
    wide = ("seed 10, levels to 400 bps", replaced_after(invented(10), 1, cut=False))
    for name, window in (*_windows(), far, wide):
        lo, hi = _sides(anonymizer.blind(window, SALT))
        both = ~np.isnan(lo[:, 0]) & ~np.isnan(hi[:, 0])
        bad = np.flatnonzero(both & (lo[:, 0] >= hi[:, 0]))
        assert not len(bad), f"window {name}, row {bad[:1]}: expected lo_L1 < hi_L1, got {lo[bad[0], 0]!r} and {hi[bad[0], 0]!r}"
        for side, levels, sign in (("lo", lo, -1.0), ("hi", hi, 1.0)):
            steps = sign * np.diff(levels.astype(np.float64), axis=1)
            places = np.argwhere(steps <= 0)
            said = f"window {name}, {side}: expected each level farther out than the one inside it"
            assert not len(places), f"{said}, got row {places[0][0]} levels {places[0][1] + 1} and {places[0][1] + 2} the wrong way"


def counts_fit(subject: Subject) -> None:
    """AN-08: rows and prints lie on knots, just before them and twice at some instants."""
    anonymizer = subject.make()
    for name, window in _windows():
        blinded = anonymizer.blind(window, SALT)
        for kind, table, until in (("ladder", blinded.ladder, blinded.ladder_until), ("events", blinded.events, blinded.events_until)):
            said = f"window {name}, {kind}_until"
            assert len(until) == window.grid.steps + 1, f"{said}: expected {window.grid.steps + 1} counts, got {len(until)}"
            falls = [(a, b) for a, b in pairwise([0, *until.tolist()]) if b < a]
            assert not falls, f"{said}: expected counts that never fall, got {falls[0][1]} after {falls[0][0]}"
            assert until[-1] == len(table), f"{said}: expected {len(table)} at the end, got {until[-1]}"
            _times_fit(said, table, until, window, blinded.columns if kind == "ladder" else ("t", "value"))


def _times_fit(said: str, table: F32, until: I64, window: Window, columns: tuple[str, ...]) -> None:
    """Row k is before until[i] iff its time is before t_i."""
    if "t" not in columns:
        return
    times = table[:, columns.index("t")].astype(np.float64)
    for anchor in range(window.grid.steps + 1):
        knot_s = anchor * window.grid.window_s / window.grid.steps
        early = times < knot_s
        wrong = np.flatnonzero(early != (np.arange(len(times)) < until[anchor]))
        assert not len(wrong), (
            f"{said}[{anchor}] is {until[anchor]}: row {wrong[:1]} at {times[wrong[:1]]} s against t_{anchor} = {knot_s} s"
        )


def is_float32(subject: Subject) -> None:
    """AN-09."""
    anonymizer = subject.make()
    for name, window in _windows():
        blinded = anonymizer.blind(window, SALT)
        shapes = {"ladder": (len(blinded.columns), blinded.ladder), "events": (2, blinded.events)}
        for kind, (width, table) in shapes.items():
            assert table.dtype == np.float32, f"window {name}: expected {kind} in float32, got {table.dtype}"
            assert table.shape[1:] == (width,), f"window {name}: expected {width} columns in {kind}, got {table.shape}"
            assert not np.isinf(table).any(), f"window {name}: expected finite numbers in {kind}, got infinity"
        assert not np.isnan(blinded.events).any(), f"window {name}: expected finite events, got NaN"
        _path_fits(name, blinded.y, window)
        _gaps_fit(name, blinded)
    gaps = int(np.isnan(anonymizer.blind(invented(12, odd=False), SALT).ladder).sum())
    assert not gaps, f"window seed 12, every level of every row there: expected no NaN in ladder, got {gaps}"


def _path_fits(name: str, y: F64, window: Window) -> None:
    expected, got = ("float64", (window.grid.steps + 1,)), (str(y.dtype), y.shape)
    assert got == expected, f"window {name}: expected y {expected}, got {got}"
    assert np.isfinite(y).all(), f"window {name}: expected a finite y, got {y.tolist()[:5]}"
    told = y.astype(np.float32).astype(np.float64)
    assert (told == y).all(), (
        f"window {name}: expected a y that float32 can hold, got {y[told != y][:1]}: a full double gives the start away"
    )


def _gaps_fit(name: str, blinded: Blinded) -> None:
    """NaN stands in level and weight of a missing level, at the tail, and nowhere else."""
    columns, gaps = list(blinded.columns), np.isnan(blinded.ladder)
    if "t" in columns:
        assert not gaps[:, columns.index("t")].any(), f"window {name}: expected a time in every row, got NaN"
    for side in ("lo", "hi"):
        levels = [k for k in range(1, 100) if f"{side}_L{k}" in columns and f"{side}_W{k}" in columns]
        at, weight = (gaps[:, [columns.index(f"{side}_{kind}{k}") for k in levels]] for kind in "LW")
        said = f"window {name}, {side}"
        assert (at == weight).all(), f"{said}: expected NaN in level and weight alike, got one without the other"
        assert not (at[:, :-1] & ~at[:, 1:]).any(), f"{said}: expected missing levels at the tail only, got one between others"


def has_constant_shape(subject: Subject) -> None:
    """AN-10."""
    anonymizer = subject.make()
    known: tuple[str, ...] | None = None
    for name, window in (*_windows(), ("seed 11, 1 level", invented(11, levels=1))):
        columns = tuple(anonymizer.blind(window, SALT).columns)
        assert known is None or columns == known, (
            f"window {name}: expected the {len(known or ())} columns of the others, got {len(columns)}"
        )
        known = columns


CHECKS: tuple[Check, ...] = (
    Check("AN-01", "starts at zero", starts_at_zero),
    Check("AN-02", "future has no say", future_has_no_say),
    Check("AN-03", "scale-free [basic]", is_scale_free, claim="basic"),
    Check("AN-04", "nameless", is_nameless),
    Check("AN-05", "salted", is_salted),
    Check("AN-06", "hands off", keeps_hands_off),
    Check("AN-07", "never crossed", never_crosses),
    Check("AN-08", "counts fit", counts_fit),
    Check("AN-09", "float32", is_float32),
    Check("AN-10", "constant shape", has_constant_shape),
)
