"""A throw-away mount, process, network and ipc namespace: where the isolation checks run, and nowhere else (I-92)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from blindcast.testing.kit import Result, Skip, Subject, judge, subject_of
from blindcast.testing.surroundings import own_group

__all__ = ["elsewhere", "order_of"]

LIMIT_S: Final = 120.0  # of one check, on a busy machine
NAMESPACE: Final = ("--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "--mount-proc", "--kill-child", "--propagation", "private")

# What is quarantined or left there is of no matter to this host; only root keeps something there.
COVERED: Final = ("sh", "-c", 'mount -t tmpfs -o mode=755 none /run && mount -t tmpfs -o mode=1777 none /dev/shm; exec "$@"', "sh")


def elsewhere(subject: Subject, ids: Sequence[str]) -> list[Result]:
    """The results of some isolation checks of an installed backend, run in one throw-away namespace.

    Raises Skip where there is none to be had, or where the backend is no installed one.
    """
    unshare = shutil.which("unshare")
    if unshare is None:
        raise Skip("no throw-away namespace: there is no `unshare` here")
    user, before = ((), COVERED) if os.geteuid() == 0 else (("--user", "--map-current-user"), ())
    with _folder() as folder, _group() as group:
        own = [sys.executable, "-m", "blindcast.testing.throwaway", order_of(subject, ids, group)]
        argv = [unshare, *user, *NAMESPACE, *before, *own]
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "TMPDIR": folder}
        done = subprocess.run(argv, capture_output=True, text=True, env=environ, timeout=LIMIT_S * len(ids), check=False)
    if done.returncode != 0 or not done.stdout.strip():
        words = done.stderr.strip().splitlines()[-1:] or [f"exit {done.returncode}"]
        if words[0].startswith("unshare"):
            raise Skip(f"no throw-away namespace: {words[0]}")
        raise AssertionError(f"the checks of {subject.name} ended early: {done.stderr.strip()[-1000:] or words[0]}")
    return [Result(*row) for row in json.loads(done.stdout.splitlines()[-1])]


def order_of(subject: Subject, ids: Sequence[str], group: str = "") -> str:
    """What `python -m blindcast.testing.throwaway` is told. Raises Skip where the backend is no installed one."""
    if subject.offer is None or not isinstance(subject.offer.target, str):
        raise Skip("runs in a throw-away namespace, where only an installed backend can be found: install it and name it")
    return json.dumps([subject.name, dict(subject.options), list(ids), group], default=str)


@contextmanager
def _folder() -> Iterator[str]:
    """A temporary folder of its own: what is left in it was left by the backend."""
    with tempfile.TemporaryDirectory(prefix="blindcast-kit-") as folder:
        os.chmod(folder, 0o755)  # a slot uid must reach what lies in it
        yield folder


@contextmanager
def _group() -> Iterator[str]:
    """A cgroup of its own, that what others leave beside it is not laid at the backend's door; "" where none can be had."""
    group = f"{own_group()}/blindcast-kit-{os.getpid()}"
    try:
        os.mkdir(group)
    except OSError:
        yield ""
        return
    try:
        yield group
    finally:
        for path, _, _ in os.walk(group, topdown=False):
            with suppress(OSError):
                os.rmdir(path)


def main(order: str) -> None:
    """Run the checks that `order` names here, and print their results as one line of JSON."""
    from blindcast.testing.isolation import here

    name, options, ids, group = json.loads(order)
    if group:
        Path(group, "cgroup.procs").write_text("0", encoding="ascii")
    subject = subject_of("isolations", name, options)
    results = [judge(here(subject, id_), subject) for id_ in ids]
    sys.stdout.write(json.dumps([[one.id, one.title, one.result, one.detail, one.ms] for one in results]) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
