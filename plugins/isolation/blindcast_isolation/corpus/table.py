"""The table attack x backend as people read it, and its digest (I-91, K-06)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any, Final

from blindcast_isolation.corpus.verdicts import agrees

__all__ = ["NOBODYS", "data", "digest", "is_as_expected", "text"]

Column = Mapping[str, Any]  # as `corpus.column.run` gives it
NOBODYS: Final = "-"  # the cell of a backend that is not available


TABLES: Final = {"rows": "attack", "unfiltered": "without seccomp"}


def _cells(columns: Mapping[str, Column], table: str) -> dict[str, dict[str, Mapping[str, Any]]]:
    """Row id -> column title -> the row as that column gave it."""
    found: dict[str, dict[str, Mapping[str, Any]]] = {}
    for title, column in columns.items():
        for row in column[table]:
            found.setdefault(row["id"], {})[title] = row
    return found


def is_as_expected(columns: Mapping[str, Column]) -> bool:
    """Whether no cell differs from the one expected, better or worse."""
    return all(row["ok"] for column in columns.values() for table in TABLES for row in column[table])


def text(columns: Mapping[str, Column], *, is_long: bool = False) -> str:
    """The tables, then what differs with each of its variants, then the backends that have no cells. `is_long`: every variant."""
    lines = [line for table in TABLES for line in _grid(columns, table)]
    lines += _differences(columns, is_long=is_long)
    lines += [f"{title}: not available: {column['reason']}" for title, column in columns.items() if not column["available"]]
    return "\n".join(line for line in lines).rstrip() + "\n"


def _grid(columns: Mapping[str, Column], table: str) -> Iterator[str]:
    cells = _cells(columns, table)
    if not cells and table != "rows":
        return
    names = {key: f"{key} {next(iter(row.values()))['name']}" for key, row in cells.items()}
    first = max(map(len, (TABLES[table], *names.values())))
    yield "  ".join([TABLES[table].ljust(first), *columns])
    for key, row in cells.items():
        shown = (_cell(row.get(title)).ljust(len(title)) for title in columns)
        yield "  ".join([names[key].ljust(first), *shown]).rstrip()
    yield ""


def _cell(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return NOBODYS
    return str(row["verdict"]) if row["ok"] else f"{row['verdict']}!={row['expected']}"


def _differences(columns: Mapping[str, Column], *, is_long: bool) -> Iterator[str]:
    for title, column in columns.items():
        for row in (*column["rows"], *({**row, "name": f"{row['name']} without seccomp"} for row in column["unfiltered"])):
            if is_long or not row["ok"]:
                wanted = f"expected {row['expected']}" if not row["ok"] else "as expected" if row["expected"] else "nothing expected"
                yield f"{row['id']} {row['name']} under {title}: {row['verdict']}, {wanted}"
                for one in row["variants"]:
                    if is_long or not agrees(row["expected"], one["verdict"]):
                        yield f"    {one['verdict']} {one['name']}: {one['why']}"


def data(columns: Mapping[str, Column]) -> dict[str, Any]:
    """The document of `isolation test --json`: every column with its rows and their variants, and the table's digest."""
    return {
        "ok": is_as_expected(columns),
        "digest": digest(columns),
        "columns": [{"title": title, **column} for title, column in columns.items()],
    }


def digest(columns: Mapping[str, Column]) -> str:
    """sha256 of the measured cells: the host's card (I-91). Times and words are not in it."""
    cells = {
        title: {table: {row["id"]: row["verdict"] for row in column[table]} for table in TABLES}
        for title, column in columns.items()
        if column["available"]
    }
    return sha256(json.dumps(cells, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
