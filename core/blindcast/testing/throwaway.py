"""A throw-away mount, process, network and ipc namespace: where the isolation checks run, and nowhere else (I-92)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Final

from blindcast.testing.kit import Result, Skip, Subject, judge, subject_of

__all__ = ["elsewhere"]

LIMIT_S: Final = 120.0
NAMESPACE: Final = ("--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "--mount-proc", "--kill-child", "--propagation", "private")


def elsewhere(subject: Subject, ids: Sequence[str]) -> list[Result]:
    """The results of some isolation checks of an installed backend, run in one throw-away namespace.

    Raises Skip where there is none to be had, or where the backend is no installed one.
    """
    if subject.offer is None or not isinstance(subject.offer.target, str):
        raise Skip("runs in a throw-away namespace, where only an installed backend can be found: install it and name it")
    unshare = shutil.which("unshare")
    if unshare is None:
        raise Skip("no throw-away namespace: there is no `unshare` here")
    user = () if os.geteuid() == 0 else ("--user", "--map-current-user")
    order = json.dumps([subject.name, dict(subject.options), list(ids)], default=str)
    argv = [unshare, *user, *NAMESPACE, sys.executable, "-m", "blindcast.testing.throwaway", order]
    with tempfile.TemporaryDirectory(prefix="blindcast-kit-") as folder:  # of its own: what is left in it was left by the backend
        os.chmod(folder, 0o755)  # a slot uid must reach what lies in it
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "TMPDIR": folder}
        done = subprocess.run(argv, capture_output=True, text=True, env=environ, timeout=LIMIT_S, check=False)
    if done.returncode != 0 or not done.stdout.strip():
        words = done.stderr.strip().splitlines()[-1:] or [f"exit {done.returncode}"]
        if words[0].startswith("unshare"):
            raise Skip(f"no throw-away namespace: {words[0]}")
        raise AssertionError(f"the checks of {subject.name} ended early: {done.stderr.strip()[-1000:] or words[0]}")
    return [Result(*row) for row in json.loads(done.stdout.splitlines()[-1])]


def main(order: str) -> None:
    """Run the checks that `order` names here, and print their results as one line of JSON."""
    from blindcast.testing.isolation import here

    name, options, ids = json.loads(order)
    subject = subject_of("isolations", name, options)
    results = [judge(here(subject, id_), subject) for id_ in ids]
    sys.stdout.write(json.dumps([[one.id, one.title, one.result, one.detail, one.ms] for one in results]) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
