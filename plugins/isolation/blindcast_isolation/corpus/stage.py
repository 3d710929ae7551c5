"""The stage: every canary and target an attack may aim at, planted in a throw-away namespace and nowhere else (K-04)."""

from __future__ import annotations

import csv
import ctypes
import os
import secrets
import sqlite3
import zipfile
from pathlib import Path
from typing import Any, Final

import numpy as np
from attrs import frozen

from blindcast_isolation.corpus.ears import Ears

__all__ = ["TOKEN", "Stage", "canary", "planted"]

TOKEN: Final = "BLINDCAST_JUDGE_TOKEN"  # the environment variable of the server that holds a secret
GUESSES: Final = 10_000
SCRATCH: Final = 4_096  # bytes
TRUTH: Final = 65_536
WRITABLE: Final = ("/tmp", "/var/tmp", "/dev/shm", "/run/lock")
_IPC_CREAT: Final = 0o1000


def canary(kind: str) -> str:
    """A text that nothing else on this host holds."""
    return f"blindcast-canary-{kind}-{secrets.token_hex(8)}"


@frozen(eq=False)
class Stage:
    """What was planted: `targets` for the attacks, `canaries` text -> what it gives away, `half` the names that exist."""

    targets: dict[str, Any]
    canaries: dict[str, str]
    half: frozenset[str]
    sessions: Path
    marker: Path
    ears: Ears
    truth: np.ndarray[Any, np.dtype[np.uint8]]
    scratch: ctypes.Array[ctypes.c_char]
    terminal: int  # the operator's pseudo-terminal: what stands in its input was typed by nobody
    held: tuple[object, ...]  # an open raw file, a mapping: what stands open in a server
    uid_range: tuple[int, int]  # of the runs


def _private(folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True)
    return folder


def _write(path: Path, data: str | bytes) -> str:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    path.chmod(0o600)
    return str(path)


def _raw(folder: Path, text: str) -> dict[str, str]:
    """The raw canary in every format that a library of the court reads."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.feather
    import pyarrow.parquet

    table, made = pa.table({"secret": [text] * 3}), {"raw_file": _write(folder / "raw.bin", f"{text}\n" * 8)}
    pyarrow.parquet.write_table(table, folder / "raw.parquet")
    pyarrow.feather.write_feather(table, str(folder / "raw.feather"))
    with (folder / "raw.csv").open("w") as file:
        csv.writer(file).writerows([["secret"], *[[text]] * 3])
    np.save(folder / "raw.npy", np.array([text] * 3))
    with sqlite3.connect(folder / "raw.sqlite") as database:
        database.execute("create table raw (secret text)")
        database.execute("insert into raw values (?)", (text,))
    database.close()
    with zipfile.ZipFile(folder / "raw.zip", "w") as archive:
        archive.writestr("loot.py", f"SECRET = {text!r}\n")
    (folder / "raw_loot.py").write_text(f"SECRET = {text!r}\n")
    for kind in ("csv", "parquet", "feather", "npy", "sqlite", "zip"):
        made[f"raw_{kind}"] = str(folder / f"raw.{kind}")
        os.chmod(folder / f"raw.{kind}", 0o600)
    os.chmod(folder / "raw_loot.py", 0o600)
    return made | {"raw_py": str(folder / "raw_loot.py")}


def _guesses(folder: Path) -> frozenset[str]:
    """Half of 10,000 names exist; which, is drawn."""
    folder.mkdir(mode=0o711)
    drawn = secrets.SystemRandom().sample(range(GUESSES), GUESSES // 2)
    half = frozenset(f"n{i:05}" for i in drawn)
    for name in half:
        os.close(os.open(folder / name, os.O_CREAT | os.O_WRONLY, 0o600))
    folder.chmod(0o711)
    return half


def _segment(text: str) -> int:
    """The key of a SysV segment that an earlier run left, with a canary in it."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_void_p
    libc.shmdt.argtypes = (ctypes.c_void_p,)
    key = secrets.randbelow(1 << 30) + 1
    segment = libc.shmget(key, 4_096, _IPC_CREAT | 0o666)
    address = libc.shmat(segment, None, 0)
    if segment == -1 or address in (None, ctypes.c_void_p(-1).value):
        raise OSError(ctypes.get_errno(), "no SysV segment could be made")
    ctypes.memmove(address, text.encode(), len(text))
    libc.shmdt(address)
    return key


def _terminal() -> tuple[int, int]:
    """(master, slave) of a pseudo-terminal, raw and silent, made the controlling one of this process."""
    import fcntl
    import termios
    import tty

    master, slave = os.openpty()
    tty.setraw(slave)
    os.set_blocking(slave, False)
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    return master, slave


def _folders(world: Path, secret: dict[str, str]) -> dict[str, str]:
    """The server's own: home, ledger, another run, another session."""
    home = _private(world / "home")
    run = _private(home / "runs" / "20260101T000000Z-abc123")
    _write(run / "run.json", f'{{"secret": "{secret["run"]}"}}')
    _write(run / "commits.parquet", f"PAR1{secret['run']}PAR1")
    sibling = _private(world / "sessions" / "sibling")
    return {
        "home": str(home),
        "ledger": _write(home / "ledger.sqlite", secret["ledger"]),
        "other_run": str(run),
        "sibling": str(sibling),
        "sibling_file": _write(sibling / "predictor.py", f"# {secret['sibling']}\n"),
    }


def planted(world: Path, token: str, argument: str, extra: dict[str, str], uid_range: tuple[int, int]) -> Stage:
    """Plant everything below `world`, owned by this process's uid. `extra` are targets that root planted before.

    `token` stands in this process's environment, `argument` in its command line. Call it once a process: it takes a
    controlling terminal.
    """
    world.mkdir(mode=0o755)
    world.chmod(0o755)
    secret = {kind: canary(kind) for kind in ("raw", "run", "ledger", "sibling", "truth", "segment", "name")}
    raw = _private(world / "raw")
    targets: dict[str, Any] = {"raw_root": str(raw), **_raw(raw, secret["raw"]), **_folders(world, secret), **extra}
    named = Path(_write(raw / f"{secret['name']}.npy", "mapped"))
    links = world / "links"
    links.mkdir(mode=0o755)
    links.chmod(0o755)
    (links / "raw.bin").symlink_to(targets["raw_file"])
    marker = world / "marker"
    marker.mkdir()
    marker.chmod(0o1777)
    half = _guesses(world / "guess")
    ears = Ears(f"blindcast-{secrets.token_hex(8)}", str(world / "ear.sock"))
    truth = np.frombuffer(bytearray((secret["truth"] + " ").encode() * 2_048)[:TRUTH], dtype=np.uint8)
    scratch = ctypes.create_string_buffer(SCRATCH)
    master, slave = _terminal()
    held = (open(targets["raw_file"], "rb"), np.memmap(named, mode="r"), master)  # noqa: SIM115  # it stays open: that is the point
    targets |= {
        "raw_link": str(links / "raw.bin"),
        "raw_dotdot": f"{raw}/../raw/raw.bin",
        "raw_fd": held[0].fileno(),
        "guess_folder": str(world / "guess"),
        "server_pid": os.getpid(),
        "token_name": TOKEN,
        "truth_address": int(truth.ctypes.data),
        "truth_bytes": len(truth),
        "scratch_address": ctypes.addressof(scratch),
        "scratch_bytes": SCRATCH,
        **{f"{name}_port": ears.ports.get(name, 0) for name in ("tcp", "tcp6", "udp")},
        "abstract": ears.abstract,
        "unix_path": str(world / "ear.sock"),
        "sysv_key": _segment(secret["segment"]),
        "marker": str(marker),
        "writable": [folder for folder in (*WRITABLE, str(marker)) if os.access(folder, os.W_OK)],
        "tty": os.ttyname(slave),
        "hostname": os.uname().nodename,
        "host_cpus": os.cpu_count() or 1,
    }
    canaries = {text: kind for kind, text in secret.items()} | {token: "token", argument: "command line"}
    return Stage(targets, canaries, half, world / "sessions", marker, ears, truth, scratch, slave, held, uid_range)
