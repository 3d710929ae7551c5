"""The rows of the corpus: which attack, what it may come to under each kind of backend, and how that is shown (K-01 to K-03)."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

import cattrs
from attrs import field, frozen

from blindcast.errors import UsageError
from blindcast_isolation.corpus.verdicts import agrees

__all__ = ["ATTACKS", "COLUMNS", "QUICK", "QUICK_VARIANTS", "Row", "find", "read_rows", "rows", "stranger"]

HERE: Final = Path(__file__).parent
ATTACKS: Final = HERE / "attacks"
COLUMNS: Final = "PNLH"
QUICK: Final = ("A-01", "A-02", "A-05", "A-09", "A-14", "A-19", "A-22", "A-30", "A-35", "A-39")
QUICK_VARIANTS: Final = 2  # of a row that starts a run for each

Proof = Literal["canary", "word", "outside"]


def _cells(_row: object, attribute: Any, value: str) -> None:
    if value and (set(value) - set("BKHDMb") or len(value) != (2 if attribute.name == "unfiltered" else 4)):
        raise ValueError(f"{attribute.name} {value!r}: expected one of B K H D M b for each column")


@frozen(kw_only=True)
class Row:
    """One attack. `cells` are the verdicts expected in the columns P N L H; "" expects nothing.

    `proof` says when `got` counts as a success: when a canary is found, by its word, or by something found outside.
    `each` starts a run of its own for every variant; the first walks `windows`, the others one. `reasons` are the endings a
    K allows, () any. `fresh` adds a run in that state, `unfiltered` the cells P N with seccomp off (K-08). `asserts` names a
    further check of `corpus.asserts`.
    """

    id: str
    name: str
    file: str
    cells: str = field(default="", validator=_cells)
    proof: Proof = "canary"
    each: bool = False
    variants: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    incident: str = ""
    stopped_by: str = ""
    asserts: str = ""
    fresh: bool = False
    beside: bool = False  # an honest run of another session goes on beside it
    files: Mapping[str, str] = field(factory=dict)  # name -> text of what else lies in its folder
    unfiltered: str = field(default="", validator=_cells)
    also: Mapping[str, str] = field(factory=dict)  # column -> a verdict that is taken too, for the reason in `why_also`
    why_also: str = ""
    windows: int = 2
    step_wall_s: float = 1.0
    run_wall_s: float = 30.0
    memory_mb: int = 4_096
    source: str = ""  # where it is no file of the corpus

    @property
    def is_control(self) -> bool:
        """Whether it is honest (C-01 to C-06)."""
        return self.id.startswith("C-")

    @property
    def text(self) -> str:
        """The predictor's source."""
        return self.source or (ATTACKS / self.file).read_text(encoding="utf-8")

    def cell(self, column: str) -> str:
        """The verdict expected in a column of P N L H; "" where none is."""
        return self.cells[COLUMNS.index(column)] if self.cells else ""

    def agrees(self, column: str, verdict: str) -> bool:
        """Whether a verdict is one expected in a column."""
        return agrees(self.cell(column), verdict) or verdict == self.also.get(column)


_converter: Final = cattrs.Converter(forbid_extra_keys=True)


def made(tables: Iterable[Mapping[str, Any]]) -> tuple[Row, ...]:
    """Rows from plain tables. Raises what cattrs raises for a key that no row has."""
    return tuple(_converter.structure(dict(table), Row) for table in tables)


def plain(row: Row) -> dict[str, Any]:
    """A row as a plain table, its source with it."""
    table: dict[str, Any] = _converter.unstructure(row)
    return table | {"source": row.text}


def read_rows(path: Path) -> tuple[Row, ...]:
    """The rows of a data file, in its order."""
    return made(tomllib.loads(path.read_text(encoding="utf-8")).get("row", ()))


@cache
def rows() -> tuple[Row, ...]:
    """The whole corpus, by id."""
    return tuple(sorted(read_rows(HERE / "rows.toml"), key=lambda row: row.id))


def stranger(path: Path) -> Row:
    """Anyone's predictor as a row that expects nothing; all its words are its own."""
    return Row(id=path.name, name=path.stem, file=path.name, source=path.read_text(encoding="utf-8"), proof="canary", run_wall_s=60.0)


def find(wanted: Iterable[str]) -> tuple[Row, ...]:
    """The rows that ids, names or files mean. Raises UsageError `attack_unknown`."""
    known = {key: row for row in rows() for key in (row.id, row.name)}
    found = []
    for word in wanted:
        if word not in known and not Path(word).is_file():
            raise UsageError(
                "attack_unknown",
                f"{word!r} is no attack and no file",
                expected="A-01 .. A-39, C-01 .. C-06, a row's name, or the path of a predictor",
                do="`blindcast isolation test` without --attack runs them all",
            )
        found.append(known[word] if word in known else stranger(Path(word)))
    return tuple(found)
