"""The command line as tests run it: in this process, its streams captured."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

from attrs import frozen

__all__ = ["Said", "say"]


@frozen
class Said:
    """What one invocation said."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def document(self) -> Any:
        """stdout as the one strict JSON document that `--json` promises."""

        def refuse(constant: str) -> None:
            raise ValueError(f"{constant} is no strict JSON")

        return json.loads(self.stdout, parse_constant=refuse)

    @property
    def data(self) -> Any:
        """`data` of the document."""
        return self.document["data"]


def say(*argv: object) -> Said:
    """Run `blindcast ARGV` and return what it said."""
    from blindcast.cli import main

    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([str(word) for word in argv])
    return Said(code, out.getvalue(), err.getvalue())
