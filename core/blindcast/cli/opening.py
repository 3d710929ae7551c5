"""What several commands open first: the home, the court of a task file, a submission by name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from blindcast.court import Court
    from blindcast.host import Host

__all__ = ["SYNTHETIC", "demo_court", "home_of", "open_court", "submission_path"]

SYNTHETIC: dict[str, Any] = {  # the embedded market of `demo` and `check`: small enough to walk in seconds
    "schema": "blindcast.task/1",
    "name": "synthetic",
    "source": {"use": "synthetic", "windows": 40},
    "split": {"test_windows": 8, "targets": 24, "warmups": 4},
}


def home_of() -> Path:
    """BLINDCAST_HOME, default `~/.blindcast`."""
    return Path(os.environ.get("BLINDCAST_HOME") or Path.home() / ".blindcast").absolute()


def open_court(host: Host, file: Path) -> Court:
    """The court of a task file. Raises DataError for the file, its keys, its pool."""
    from blindcast.court import convene
    from blindcast.spec import parse_spec, read_spec

    spec = parse_spec(read_spec(file), file.name)
    return convene(host, spec, beside=file.absolute().parent, home=home_of(), environ=os.environ)


def demo_court(host: Host, home: Path) -> Court:
    """The court of the embedded market."""
    from blindcast.court import convene
    from blindcast.spec import parse_spec

    return convene(host, parse_spec(SYNTHETIC), beside=Path.cwd(), home=home, environ=os.environ)


def submission_path(host: Host, name: str) -> Path:
    """FILE of the command line: a file, a folder, or the name of a predictor offer."""
    path = Path(name)
    looks_like_path = name.endswith(".py") or name.startswith((".", "/")) or os.path.exists(path)
    return path if looks_like_path else host.locate(name)
