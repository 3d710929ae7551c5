"""The seats of one run: made one at a time, over one buffer, one clock and one count of what was said."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final, Literal

from blindcast.buffer import RevealBuffer
from blindcast.clock import RunClock
from blindcast.conduct import Conduct, exit_of
from blindcast.errors import BlindcastError, BudgetError, DataError, DeniedError, FaultError, IntegrityError
from blindcast.freshness import fresh_mode
from blindcast.judge import Tally
from blindcast.reveal import Reveal
from blindcast.view import Context
from blindcast.walk import RunBroken
from blindcast.wire import ChildSeat

__all__ = ["Seats"]

_CLASSES: Final[dict[int, type[BlindcastError]]] = {4: IntegrityError, 5: DeniedError, 6: FaultError, 7: BudgetError}
_LOADS: Final = "a file that defines `class Predictor` with `predict(view)`"
_FITS: Final = "a `fit(warmups)` that ends without raising"
_TRACEBACK: Final = "`blindcast check FILE` shows the whole traceback"
_SETUPS: Final = {"uid_slots_spent": "setup:uid-drop", "isolation_unavailable": "setup:probe"}  # of a child in mid-run
_HINTS: Final = {"load_failed": (_LOADS, _TRACEBACK), "fit_failed": (_FITS, _TRACEBACK)}


class Seats:
    """Makes the run's seats. `buffer` is theirs; `made` counts them."""

    def __init__(self, run: Conduct, warmups: Sequence[Reveal]) -> None:
        court = run.court
        self._run, self._warmups = run, warmups
        self._context = Context(court.grid, court.alpha, warmups[0].columns, run.seed)
        self._clock = RunClock(court.policy.limits.run_wall_s)
        self._last: ChildSeat | None = None
        self._output: list[str] = []
        self.buffer = RevealBuffer(warmups[0].columns, *court.caps(), court.grid.steps + 1)
        self.tally = Tally.of(court.grid.steps, len(run.targets))
        self.made = 0

    def __call__(self) -> ChildSeat:
        """The next seat, loaded, warmed and fitted. Raises RunBroken, DeniedError."""
        self._keep_output()
        self.made += 1
        run, court = self._run, self._run.court
        try:
            self._last = ChildSeat(
                run.backend.isolation,
                run.submission.folder,
                court.policy,
                self._context,
                court.spec.isolation.state,
                self.buffer,
                lambda: self._warmups,
                self._clock,
                cpu=run.cpu,
                tally=self.tally,
            )
        except DeniedError as denied:
            if self.made == 1:
                raise
            raise RunBroken(_SETUPS.get(denied.code, denied.code), denied.what) from denied  # what was sealed stands (I-04)
        if run.uid is None:
            run.uid = self._last.uid
        return self._last

    def first(self) -> ChildSeat:
        """A predictor that loads and fits, or a refusal that costs nothing (G-55); a lost zygote is tried again once (I-32)."""
        try:
            return self()
        except RunBroken as broken:
            if broken.reason != "zygote_lost":
                raise self._refusal(broken) from broken
        self.made = 0  # a retry is no restart
        try:
            return self()
        except RunBroken as broken:
            raise self._refusal(broken) from broken

    def _refusal(self, broken: RunBroken) -> BlindcastError:
        shown = broken.trace.strip() if self._run.order.door == "run" else ""
        expected, do = _HINTS.get(broken.reason, ("a child that starts and answers", "`blindcast doctor` says what this machine offers"))
        words = f"the predictor could not be started: {broken.reason}" + (f"\n{shown}" if shown else "")
        return _CLASSES.get(exit_of(broken.reason), DataError)(broken.reason, words, expected=expected, do=do)

    def freshness(self, first: ChildSeat) -> Literal["none", "state", "refit"] | None:
        """How the windows of a `fresh` run come to their state, None in `carry`. Raises BudgetError `refit_too_slow` (I-35).

        The first window's child has fitted already: what counts is whether all the others can.
        """
        if self._run.court.spec.isolation.state == "carry":
            return None
        left_s = self._clock.deadline - time.monotonic()
        return fresh_mode(None, fit_s=first.fit_s, windows=len(self._run.targets) - 1, left_s=left_s)

    def _keep_output(self) -> None:
        if self._last is not None:
            self._output.append(self._last.output)
            self._last = None

    @property
    def output(self) -> str:
        """What all children printed, in order."""
        self._keep_output()
        return "".join(self._output)
