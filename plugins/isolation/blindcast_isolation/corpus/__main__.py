"""`python -m blindcast_isolation.corpus`: try attacks while they are written."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from attrs import evolve

from blindcast_isolation.corpus.launch import arms, launch
from blindcast_isolation.corpus.rows import find, read_rows, rows, stranger

parser = argparse.ArgumentParser(prog="python -m blindcast_isolation.corpus")
parser.add_argument("--backend", action="append", default=[])
parser.add_argument("--attack", action="append", default=[])
parser.add_argument("--file", type=Path, help="the source of the row")
parser.add_argument("--row", type=Path, help="a part of rows.toml")
parser.add_argument("--json", action="store_true")
parser.add_argument("-v", action="store_true")
asked = parser.parse_args()

if asked.row:
    chosen = tuple(row for row in read_rows(asked.row) if not asked.attack or row.id in asked.attack or row.name in asked.attack)
    if asked.file:
        chosen = tuple(evolve(row, source=asked.file.read_text()) for row in chosen if row.file == asked.file.name)
elif asked.file:
    chosen = (stranger(asked.file),)
else:
    chosen = find(asked.attack) if asked.attack else rows()

columns = launch(arms(asked.backend), chosen, is_talking=asked.v)
if asked.json:
    sys.stdout.write(json.dumps({arm.title: column for arm, column in columns.items()}, indent=1) + "\n")
else:
    for arm, column in columns.items():
        sys.stdout.write(f"== {arm.title}: {'available' if column['available'] else 'not available: ' + column['reason']}\n")
        for row in column["rows"]:
            mark = "ok" if row["ok"] else f"EXPECTED {row['expected']}"
            sys.stdout.write(f"{row['id']} {row['name']}: {row['verdict']} {mark} ({row['took_s']} s)\n")
            for one in row["variants"]:
                sys.stdout.write(f"    {one['verdict']} {one['name']:<28} {one['why'][:160]}\n")
sys.exit(any(not row["ok"] for column in columns.values() for row in column["rows"]))
