"""The child of `run_code`: one script, run as `__main__` in the workspace, behind the walls of a predictor (isolation.md section 11)."""

from __future__ import annotations

import os
import sys
import traceback
from typing import NoReturn

from blindcast.libraries import import_names
from blindcast_isolation import root
from blindcast_isolation.guard import Guard
from blindcast_isolation.lockdown import ANSWER, REQUEST
from blindcast_isolation.order import Order

__all__ = ["run"]


def run(order: Order) -> NoReturn:
    """Run the order's entry and leave with its exit status: of SystemExit its code, of any other exception 1."""
    workspace = root.WORKSPACE if "mountns" in order.controls else order.workspace
    sys.argv = [order.entry]
    guard = Guard(os.path.dirname(order.entry), import_names("code"), beside=[workspace])
    guard.hide()
    guard.install()
    os.close(REQUEST)
    os.close(ANSWER)  # the parent's clock starts at this end of file
    status = 0
    try:
        guard.load(order.entry, "__main__")
    except SystemExit as leaving:
        status = _status(leaving.code)
    except BaseException:
        traceback.print_exc()
        status = 1
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:
            status = status or 1
    os._exit(status)


def _status(code: object) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    sys.stderr.write(f"{code}\n")
    return 1
