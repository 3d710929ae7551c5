"""IS-04: the whole attack corpus against an installed backend, by the command that anyone runs (isolation.md I-07, I-91)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, Final

from blindcast.testing.kit import Skip

__all__ = ["differing"]

LIMIT_S: Final = 600.0  # on a quiet machine it takes a fifth of that
_LAUNCHES: Final = ("-m", "blindcast", "isolation", "test")


def differing(backend: str, *words: str) -> list[str]:
    """Each cell of the backend's column that is not the one expected of the class it claims, in words; none is as it should be.

    `words` are further ones of `isolation test`, such as `--quick`. Raises Skip where the corpus cannot be run, or the
    backend cannot.
    """
    argv = [sys.executable, *_LAUNCHES, "--backend", backend, *words, "--json"]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(argv, capture_output=True, text=True, env=environ, timeout=LIMIT_S, check=False)
    try:
        document = json.loads(done.stdout)
    except ValueError:
        raise AssertionError(f"{' '.join(argv[3:])} gave no document: {done.stderr.strip()[-1000:]}") from None
    if "error" in document:
        raise Skip(f"the corpus was not run: {document['error']['code']}: {document['error']['message']}")
    columns = document["data"]["columns"]
    if absent := [column["reason"] for column in columns if not column["available"]]:
        raise Skip(f"{backend} is not available here: {absent[0]}")
    return [line for column in columns for table in ("rows", "unfiltered") for line in _told(column, table)]


def _told(column: dict[str, Any], table: str) -> list[str]:
    return [
        f"{row['id']} {row['name']} under {column['title']}: expected {row['expected']}, got {row['verdict']}"
        for row in column[table]
        if not row["ok"]
    ]
