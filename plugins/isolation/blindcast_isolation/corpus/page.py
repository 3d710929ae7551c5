"""The docs page of the corpus, made from its data: `scripts/attacks` writes it, a test says when it is stale."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Final

from blindcast_isolation.corpus.rows import COLUMNS, Row

__all__ = ["page"]

BACKENDS: Final = {"P": "`privdrop`", "N": "`userns`, `bwrap`", "L": "`landlock`", "H": "`hook`"}
HEAD: Final = """# The attack corpus

`blindcast isolation test` runs each of these predictors under every isolation backend of the host, with canaries planted, in a
throw-away namespace, and compares what came of it with this table. A cell that differs in either direction is a failure. The
attacks themselves lie in `blindcast_isolation/corpus/attacks`; `blindcast isolation test --attack FILE` tries your own. This page
is made from `rows.toml` by `scripts/attacks`.

**B** blocked: it raises, or gains nothing. **K** killed: the window or the run ends. **H** harmless: it works and gains nothing.
**D** detected: refused by a hook that a determined submission can remove. **M** missed: it succeeds. **b**: B or K. P is `privdrop`
(started by root), N `userns` and `bwrap`, L `landlock`, H `hook`; L and H are measured from an ordinary user who also owns the server.
"""
CHEAT: Final = """## How to cheat here

Every attack that this court is known to miss, and under which backend. None of them is a secret: choose a backend in whose column
it does not stand.
"""
CHANNELS: Final = """### Channels that no backend closes

* Time and caches: two runs at once on one host can tell each other bits by how fast they are.
* The kernel: a bug in it is a way out of every backend here. A virtual machine is a plugin's matter.
* The kind of host: its kernel, its CPU and, under `landlock` and `hook`, its name can be read.
* Within a run in the state `carry`: a predictor may keep what it was shown, and threads work on from window to window. `fresh` closes that.
"""


def page(rows: Sequence[Row]) -> str:
    """The whole page, markdown."""
    attacks, controls = [row for row in rows if not row.is_control], [row for row in rows if row.is_control]
    parts = [HEAD, _table(attacks), _also(attacks), _unfiltered(attacks), CHEAT, "\n".join(_misses(attacks)) + "\n", CHANNELS]
    parts.append("## Honest controls\n\nThese must pass under every backend, with curves that are equal to the byte.\n")
    parts.append("| id | name | does |\n|---|---|---|\n" + "".join(f"| {row.id} | {row.name} | {_does(row)} |\n" for row in controls))
    return "\n".join(part for part in parts if part)


def _table(rows: Sequence[Row]) -> str:
    head = "| id | name | what it does | P | N | L | H | stopped by | incident |\n|---|---|---|---|---|---|---|---|---|\n"
    return head + "".join(
        f"| {row.id} | {row.name} | {_does(row)} | {' | '.join(row.cells)} | {row.stopped_by} | {row.incident} |\n" for row in rows
    )


def _also(rows: Sequence[Row]) -> str:
    """The cells that are better on some kernels."""
    told = (f"{row.id} may be {verdict} in column {column}: {row.why_also}.\n" for row in rows for column, verdict in row.also.items())
    return "\n".join(told)


def _unfiltered(rows: Sequence[Row]) -> str:
    """The second table (K-08): the layers behind seccomp."""
    tried = [row for row in rows if row.unfiltered]
    if not tried:
        return ""
    head = "## The layers behind seccomp\n\nThe same attacks with seccomp switched off.\n\n| id | name | P | N |\n|---|---|---|---|\n"
    return head + "".join(f"| {row.id} | {row.name} | {' | '.join(row.unfiltered)} |\n" for row in tried)


def _misses(rows: Sequence[Row]) -> Iterator[str]:
    for row in rows:
        missed = [BACKENDS[column] for column, cell in zip(COLUMNS, row.cells, strict=True) if cell == "M"]
        if missed:
            yield f"* Under {' and '.join(missed)}, {row.id} `{row.name}`: {_does(row)} Ways: {', '.join(row.variants) or 'one'}."


def _does(row: Row) -> str:
    """The first sentence of the attack's own docstring."""
    words = " ".join((ast.get_docstring(ast.parse(row.text)) or row.name).split("\n\n")[0].split())
    return words.replace("|", "/")
