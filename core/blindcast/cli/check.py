"""`blindcast check FILE`."""

from __future__ import annotations

import os

import click

from blindcast.cli.completion import predictors
from blindcast.cli.door import Answer, command, current_host
from blindcast.cli.opening import submission_path

__all__ = ["check"]


@command("check", short_help="check a predictor on the synthetic market", epilog="Example: blindcast check my_signal.py")
@click.argument("file", shell_complete=predictors)
def check(file: str) -> Answer:
    """Check a predictor on the synthetic market: PR-01 to PR-07; counts nothing."""
    from blindcast.testing.predictors import examine

    host = current_host()
    rows = [
        {"id": id_, "title": title, "result": result, "detail": detail, "ms": ms}
        for id_, title, result, detail, ms in examine(submission_path(host, file), host, os.environ)
    ]
    failed = sum(row["result"] == "fail" for row in rows)
    lines = [f"{row['id']}  {row['result']:<5} {row['title']:<28} {row['detail'] or ''}".rstrip() for row in rows]
    lines.append(f"{len(rows) - failed} of {len(rows)} checks passed" if failed else f"all {len(rows)} checks passed")
    following = f"blindcast run {file} --task task.toml" if not failed else f"mend {file}, then blindcast check {file}"
    return Answer({"file": file, "checks": rows, "failed": failed}, "\n".join(lines), 1 if failed else 0, next=following)
