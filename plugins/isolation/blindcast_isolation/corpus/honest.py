"""The honest controls in a process of their own without any isolation: what every backend's curves are compared with (I-33)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from blindcast.errors import FaultError
from blindcast.local import LocalSeat
from blindcast_isolation.corpus.market import CONTEXT, reveals, walk_seat
from blindcast_isolation.corpus.rows import Row, made, plain
from blindcast_isolation.order import ENVIRONMENT

__all__ = ["compared", "curves"]

LIMIT_S: Final = 120.0


def curves(controls: Sequence[Row]) -> dict[str, str]:
    """Row id -> the curves, hex, of each control walked by a seat in one fresh process. Raises FaultError `corpus_failed`."""
    if not controls:
        return {}
    order = json.dumps([plain(row) for row in controls])
    environ = ENVIRONMENT | {"PATH": os.environ.get("PATH", ""), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    argv = [sys.executable, "-P", "-m", "blindcast_isolation.corpus.honest"]
    done = subprocess.run(argv, input=order, capture_output=True, text=True, env=environ, timeout=LIMIT_S, check=False)
    if done.returncode:
        raise FaultError(
            "corpus_failed",
            f"the honest controls fail without any isolation: {done.stderr[-1_000:]}",
            expected="curves",
            do="run it again; it is a fault of this court or of a library",
        )
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


def compared(columns: Mapping[str, dict[str, Any]], expected: Mapping[str, str]) -> None:
    """Mark every control whose curves are not, byte for byte, those of `expected`."""
    for column in columns.values():
        for row in column["rows"]:
            if row["id"] in expected and row["curves"] != expected[row["id"]]:
                row |= {"ok": False, "verdict": "?"}
                row["variants"].append({"name": "(curves)", "verdict": "?", "why": "other curves than without isolation"})


def _walked(row: Row, folder: Path) -> str:
    (folder / "predictor.py").write_text(row.text, encoding="utf-8")
    for name, text in row.files.items():
        (folder / name).write_text(text, encoding="utf-8")
        (folder / name).chmod(0o400)
    space: dict[str, Any] = {"__name__": "predictor", "__file__": str(folder / "predictor.py")}
    exec(compile(row.text, space["__file__"], "exec"), space)
    seat = LocalSeat(space["Predictor"], CONTEXT, reveals()[0])
    return b"".join(walked.curves.astype("<f8").tobytes() for walked in walk_seat(seat)).hex()


def main() -> None:
    """Walk the controls of standard input and print their curves as one line of JSON."""
    found = {}
    for row in made(json.loads(sys.stdin.read())):
        with tempfile.TemporaryDirectory(prefix="blindcast-honest-") as folder:
            found[row.id] = _walked(row, Path(folder))
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
