"""The synthetic market (data.md section 8): invented windows with a known edge, the same bytes everywhere."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from attrs import field, frozen
from attrs.validators import and_, ge, in_, instance_of, le
from numpy.random import PCG64, SeedSequence

from blindcast.errors import DataError, WindowUnknown
from blindcast.records import F64, Dropped, Grid, Window, WindowRef, read_only
from blindcast_datasources import market
from blindcast_datasources.columns import BOOK, DEPTH, TRADES
from blindcast_datasources.market import States
from blindcast_datasources.synthetic_prints import MOST_PER_ROW, Tape, tape

__all__ = ["Synthetic", "truth"]

EPOCH_NS = 1_704_067_200_000_000_000  # 2024-01-01, an arbitrary start: the market is invented
TICK_SIZE, LOT_SIZE = "0.1", "0.001"
LARGEST_SEED = 2**63 - 1


@frozen(kw_only=True)
class Synthetic:
    """An invented market of `windows` windows, `every_s` apart, with rows each `row_s`.

    `signal_strength`: how much the book says of the next moves (0 nothing, 1 as real streams, 5 easy). `edge`: the ic of a bet
    on the sign planted in levels 16 to 20. `twin`: the same random numbers with both at 0. ValueError for a bad option.
    """

    windows_: int = field(default=288, alias="windows", validator=and_(instance_of(int), ge(1), le(10_000_000)))
    seed: int = field(default=0, validator=and_(instance_of(int), ge(0), le(LARGEST_SEED)))
    signal_strength: float = field(default=1.0, converter=float, validator=and_(ge(0.0), le(100.0)))
    edge: float = field(default=0.0, converter=float, validator=and_(ge(0.0), le(1.0)))
    row_s: float = field(default=1.0, converter=float, validator=and_(ge(0.001), le(60.0)))
    every_s: int = field(default=960, validator=and_(instance_of(int), ge(1), le(86_400)))
    twin: bool = field(default=False, validator=instance_of(bool))
    version: int = field(default=1, validator=in_((1,)))

    def windows(self, grid: Grid) -> Sequence[WindowRef]:
        """Every window in time order. DataError `window_too_long` if windows would overlap."""
        self._check(grid)
        rows = _book_rows(grid, self._row_ns)
        prefix = self.digest()[:12]
        prints = rows * MOST_PER_ROW
        return [WindowRef(f"{prefix}-{k}", self._start_ns(k), rows, prints) for k in range(self.windows_)]

    def dropped(self, grid: Grid) -> Sequence[Dropped]:
        """Nothing: an invented market has no gaps."""
        self._check(grid)
        return ()

    def digest(self) -> str:
        """sha256 hex of the options that make the content; a twin has that of the market with strength and edge 0."""
        options = {"windows": self.windows_, "seed": self.seed, "signal_strength": self._strength, "edge": self._edge,
                   "row_ns": self._row_ns, "every_s": self.every_s, "version": self.version}  # fmt: skip
        text = json.dumps(options, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(f"blindcast.synthetic/1\n{text}\n".encode()).hexdigest()

    def window(self, ref: str, grid: Grid) -> Window:
        """One window's truth, made alone. Raises WindowUnknown, DataError `window_too_long`."""
        k = self._number(ref)
        self._check(grid)
        # row 0 is the opening, half a row before the start; the last may lie on the last knot
        count = 1 + (grid.window_ns + self._row_ns // 2) // self._row_ns
        bits = PCG64(SeedSequence(self.seed, spawn_key=(self.version, k)))
        tape_bits = bits.jumped()
        header = bits.random_raw(market.HEADER_WORDS)
        words = bits.random_raw(count * market.ROW_WORDS).reshape(count, market.ROW_WORDS)
        book = market.states(header, words, row_ns=self._row_ns, window_ns=grid.window_ns, strength=self._strength, edge=self._edge)
        prints = tape(book, tape_bits.random_raw, self._row_ns)
        start_ns, last = self._start_ns(k), _book_rows(grid, self._row_ns)
        return Window(
            ref=ref,
            start_ns=start_ns,
            grid=grid,
            y=_path(book, grid, self._row_ns),
            book=_book_table(book, 1, last + 1, start_ns, self._row_ns),
            trades=_trades_table(prints, start_ns, grid.window_ns),
            opening=_book_table(book, 0, 1, start_ns, self._row_ns),
            tick_size=TICK_SIZE,
            lot_size=LOT_SIZE,
        )

    @property
    def _strength(self) -> float:
        return 0.0 if self.twin else self.signal_strength + 0.0  # -0.0 is 0.0

    @property
    def _edge(self) -> float:
        return 0.0 if self.twin else self.edge + 0.0

    @property
    def _row_ns(self) -> int:
        return round(self.row_s * 1e9)

    def _start_ns(self, k: int) -> int:
        return EPOCH_NS + k * self.every_s * 1_000_000_000

    def _check(self, grid: Grid) -> None:
        if grid.window_s > self.every_s:
            raise DataError(
                "window_too_long",
                f"windows of {grid.window_s} s do not fit into slots of {self.every_s} s",
                expected=f"grid.window_s of at most source.every_s, {self.every_s}",
                do=f"set every_s = {grid.window_s} or more in [source], or a shorter window_s in [grid]",
            )

    def _number(self, ref: object) -> int:
        prefix, _, digits = ref.rpartition("-") if isinstance(ref, str) else ("", "", "")
        known = prefix == self.digest()[:12] and digits.isascii() and digits.isdigit() and len(digits) <= 8
        if not known or str(int(digits)) != digits or int(digits) >= self.windows_:
            raise WindowUnknown(ref)
        return int(digits)


def truth(source: Synthetic) -> dict[str, object]:
    """What may be said of the market's making (S-05): strength and edge in force, and that it is invented."""
    twin = source.twin
    return {
        "invented": True,
        "signal_strength": 0.0 if twin else source.signal_strength,
        "edge": 0.0 if twin else source.edge,
        "twin": twin,
        "seed": source.seed,
        "version": source.version,
    }


def _book_rows(grid: Grid, row_ns: int) -> int:
    """How many rows lie in [start, start + T)."""
    return (grid.window_ns + row_ns // 2 - 1) // row_ns


def _path(book: States, grid: Grid, row_ns: int) -> F64:
    """F64[G+1] bps of the start: the newest mid at or before each knot (G-02, G-03)."""
    newest = (grid.knots_ns(0) + row_ns // 2) // row_ns
    mid2 = (book.bid_px[:, 0] + book.ask_px[:, 0])[newest]
    start = book.bid_px[0, 0] + book.ask_px[0, 0]
    y = np.asarray(1e4 * (mid2 - start) / start, dtype=np.float64)
    read_only(y)
    return y


def _book_table(book: States, first: int, end: int, start_ns: int, row_ns: int) -> pa.Table:
    """States [first, end) in the pool's columns; state r lies r - 1/2 rows after the start."""
    number = np.arange(first, end, dtype=np.int64)
    levels = (pa.array(values[first:end].ravel()) for values in (book.bid_px, book.bid_sz, book.ask_px, book.ask_sz))
    columns = [
        pa.array(start_ns + number * row_ns - row_ns // 2),
        pa.nulls(len(number), pa.int64()),
        pa.array(number),
        pa.array(np.zeros(len(number), dtype=np.uint16)),
        *(pa.FixedSizeListArray.from_arrays(values, DEPTH) for values in levels),
    ]
    return pa.Table.from_arrays(columns, schema=BOOK)


def _trades_table(tape: Tape, start_ns: int, window_ns: int) -> pa.Table:
    """The prints of [start, start + T) in the pool's columns."""
    n = int(np.searchsorted(tape.offset_ns, window_ns))
    columns = [
        pa.array(start_ns + tape.offset_ns[:n]),
        pa.nulls(n, pa.int64()),
        pa.array(tape.px[:n]),
        pa.array(tape.sz[:n]),
        pa.array(tape.side[:n].astype(np.int8)),
        pa.array(np.arange(1, n + 1, dtype=np.int64)),
        pa.array(np.zeros(n, dtype=np.uint8)),
        pa.array(np.ones(n, dtype=np.uint16)),
    ]
    return pa.Table.from_arrays(columns, schema=TRADES)
