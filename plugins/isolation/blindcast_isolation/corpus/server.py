"""The server of one column, inside its namespace: it takes an order, plants the stage, tries the rows and answers one line of JSON."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from blindcast_isolation import mutation
from blindcast_isolation.corpus import column
from blindcast_isolation.corpus.rows import made
from blindcast_isolation.corpus.stage import TOKEN, planted

__all__ = ["main"]


def main(order_fd: int, answer_fd: int, argument: str) -> None:
    """Serve the one order of this process."""
    with os.fdopen(order_fd) as file:
        order = json.loads(file.read())
    if order.get("mutates"):
        _tell(answer_fd, mutation.column(order["backend"], tuple(order["uid_range"])))
        return
    stage = planted(Path(order["world"]), os.environ[TOKEN], argument, order["targets"], tuple(order["uid_range"]))
    rows, (control,) = made(order["rows"]), made([order["control"]])
    done = column.run(order["backend"], rows, control, stage, variants=order["variants"], is_talking=order["is_talking"])
    _tell(answer_fd, done)


def _tell(answer_fd: int, done: dict[str, Any]) -> None:
    with os.fdopen(answer_fd, "w") as file:
        file.write(json.dumps(done) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
