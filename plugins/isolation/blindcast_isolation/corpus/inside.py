"""What stands between the launcher and a column's server: namespaces, mounts, what only root can plant, the drop (I-92)."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

from blindcast_isolation import root
from blindcast_isolation.cgroup import own_group
from blindcast_isolation.corpus import namespace
from blindcast_isolation.corpus.stage import TOKEN, canary

__all__ = ["NO_NAMESPACE", "main", "outermost"]

NO_NAMESPACE: Final = 5  # exit status of a launcher that got no namespace
PLANT: Final = "/run/blindcast-plant"
_PROGRAM: Final = "blindcast_isolation.corpus.server"


def main(order_fd: int, answer_fd: int) -> int:
    """Enter the namespaces and run the server there; returns an exit status."""
    with os.fdopen(order_fd) as file:
        order = json.loads(file.read())
    group = _group()
    try:
        return namespace.enter(lambda: _second(order, answer_fd, group))
    except OSError as error:
        sys.stderr.write(f"no_throwaway_namespace: {error}\n")
        return NO_NAMESPACE
    finally:
        for path, _, _ in os.walk(group, topdown=False) if group else ():
            os.rmdir(path)


def _group() -> str:
    """A control group for the server alone, so that the runs' own lie below it; "" where none can be had."""
    with suppress(OSError):
        path = f"{own_group()}/blindcast-corpus-{secrets.token_hex(4)}"
        os.mkdir(path)
        return path
    return ""


def _second(order: dict[str, Any], answer_fd: int, group: str) -> int:
    """The second process of the namespace: what comes before the server, which it becomes."""
    if group:
        with open(f"{group}/cgroup.procs", "w") as file:
            file.write("0")
    kept = outermost([*root.interpreter_paths(), *order["roots"]])
    namespace.cover(kept)
    os.chdir("/")
    uid = order["uid"]
    targets = _plants() if os.geteuid() == 0 else {"setuid_id": "", "capable": ""}
    if uid is not None:
        closed = root.closed_parents(kept)
        root.open_parents(closed, kept)
        os.chdir("/")
        namespace.give_up(uid)
    order |= {"targets": targets, "world": f"/tmp/world-{secrets.token_hex(4)}"}
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.close(reading)
        with os.fdopen(writing, "w") as file:
            file.write(json.dumps(order))
        os._exit(0)
    os.close(writing)
    for fd in (reading, answer_fd):
        os.set_inheritable(fd, True)
    environ = dict(os.environ) | {TOKEN: canary("token"), "TMPDIR": "/tmp", "HOME": "/"}
    argv = [sys.executable, "-P", "-m", _PROGRAM, str(reading), str(answer_fd), canary("argument")]
    os.execve(sys.executable, argv, environ)


def outermost(paths: Iterable[str]) -> list[str]:
    """The paths that lie below no other: a bind within a bind could not be bound again in a user namespace.

    A folder that is covered as a whole is none of them.
    """
    ordered = sorted({path.rstrip("/") for path in paths if os.path.exists(path)} - {"", *namespace.FOLDERS})
    return [path for path in ordered if not any(path.startswith(f"{other}/") for other in ordered)]


def _plants() -> dict[str, str]:
    """A setuid-root copy of `id`, and one with file capabilities ("" where it cannot be made)."""
    os.makedirs(PLANT, 0o755)
    os.chmod(PLANT, 0o755)
    program = shutil.which("id")
    if program is None:
        return {"setuid_id": "", "capable": ""}
    plants = {"setuid_id": f"{PLANT}/setuid-id", "capable": f"{PLANT}/capable-id"}
    for path in plants.values():
        shutil.copy(program, path)
    os.chmod(plants["setuid_id"], 0o4755)
    os.chmod(plants["capable"], 0o755)
    setcap = shutil.which("setcap", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    with suppress(OSError, subprocess.CalledProcessError):
        if setcap is not None:
            subprocess.run([setcap, "cap_setuid,cap_dac_read_search+ep", plants["capable"]], check=True, capture_output=True)
            return plants
    os.unlink(plants["capable"])
    return plants | {"capable": ""}


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
