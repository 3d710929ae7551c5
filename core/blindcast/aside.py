"""A run directory while it is written: hidden, held by a lock, renamed into place when it is whole (DESIGN 7)."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from attrs import field, frozen

from blindcast.entries import now_utc
from blindcast.errors import FaultError
from blindcast.journal import Sealed, read_journal
from blindcast.records import F64

__all__ = ["COMMITS", "Aside", "new_run_id", "not_written", "read_commits", "write_json"]

COMMITS: Final = pa.schema(
    [
        pa.field("window", pa.int32(), nullable=False),
        pa.field("anchor", pa.int32(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("code", pa.string()),
        pa.field("curve", pa.list_(pa.float64()), nullable=False),
        pa.field("prefix_sha256", pa.string(), nullable=False),
        pa.field("link", pa.string(), nullable=False),
    ]
)
_CHUNK = 1024  # links a row group: what is in memory at once


def new_run_id(at: datetime | None = None) -> str:
    """`<UTC>-<6 hex>`."""
    return f"{(at or now_utc()).strftime('%Y%m%dT%H%M%SZ')}-{secrets.token_hex(3)}"


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Write strict JSON aside, fsync, rename: never half a file."""
    text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    aside = path.with_name(f".{path.name}.aside")
    with aside.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path)


@frozen
class Aside:
    """A run directory while it is written: hidden, held by a lock for as long as its process lives."""

    folder: Path
    run_id: str
    _lock: int = field(repr=False)

    @classmethod
    def begin(cls, home: Path, run_id: str, facts: Mapping[str, Any]) -> Aside:
        """Make the folder aside, hold it, and note what is about to run. Raises FaultError `run_not_written`."""
        folder = home / "runs" / f".{run_id}"
        try:
            home.mkdir(parents=True, exist_ok=True, mode=0o700)
            folder.mkdir(parents=True, mode=0o700)
        except OSError as error:  # where it exists it is another run's: not ours to remove
            raise not_written(error) from error
        try:
            lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX)
            write_json(folder / "begun.json", facts)
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise not_written(error) from error
        return cls(folder, run_id, lock)

    def write_commits(self) -> None:
        """`commits.parquet` from the journal, a chunk at a time (G-27)."""
        with pq.ParquetWriter(self.folder / "commits.parquet", COMMITS, compression="zstd") as writer:
            for links in _chunks(read_journal(self.folder / "journal.bin")):
                writer.write_batch(_batch(links))

    def finish(self) -> Path:
        """Fsync every file, rename into place, then drop the journal and the lock. Returns the run directory."""
        for path in [p for p in self.folder.rglob("*") if p.is_file()]:
            with path.open("rb") as file:
                os.fsync(file.fileno())
        final = self.folder.with_name(self.run_id)
        self.folder.rename(final)
        for name in ("journal.bin", "begun.json", "lock"):
            (final / name).unlink(missing_ok=True)
        self.release()
        return final

    def digests(self) -> dict[str, str]:
        """sha256 of each file of the run, by POSIX path; what is not part of the record left out (G-95)."""
        files = sorted(p for p in self.folder.rglob("*") if p.is_file())
        skipped = {"journal.bin", "begun.json", "lock", "state.json"}
        return {
            p.relative_to(self.folder).as_posix(): sha256(p.read_bytes()).hexdigest()
            for p in files
            if p.relative_to(self.folder).as_posix() not in skipped
        }

    def discard(self) -> None:
        """Remove it: nothing was revealed, so nothing is kept."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.release()

    def release(self) -> None:
        """Let the lock go."""
        if self._lock >= 0:
            os.close(self._lock)
            object.__setattr__(self, "_lock", -1)


def not_written(error: OSError) -> FaultError:
    """The fault of a run that could not be written."""
    return FaultError(
        "run_not_written",
        f"the run could not be written: {error.strerror or error}",
        expected="space and write access below BLINDCAST_HOME",
        do="free some space and run again; what was charged stays charged, `blindcast runs list` shows the run as interrupted",
    )


def _chunks(links: Iterable[Sealed]) -> Iterator[list[Sealed]]:
    chunk: list[Sealed] = []
    for sealed in links:
        chunk.append(sealed)
        if len(chunk) == _CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _batch(links: Sequence[Sealed]) -> pa.RecordBatch:
    columns = [
        [s.ordinal for s in links],
        [s.anchor for s in links],
        [s.kind for s in links],
        [s.code for s in links],
        [s.curve for s in links],
        [s.prefix.hex() for s in links],
        [s.link.hex() for s in links],
    ]
    arrays = [pa.array(column, type=entry.type) for column, entry in zip(columns, COMMITS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=COMMITS)


def read_commits(path: Path, targets: int, steps: int) -> F64:
    """F64[targets, G, G+1] from `commits.parquet`: flat after a window's last row, and where nothing was asked (G-24)."""
    curves = np.zeros((targets, steps, steps + 1))
    table = pq.read_table(path, columns=["window", "anchor", "curve"])
    for window, anchor, curve in zip(*(table[name].to_pylist() for name in ("window", "anchor", "curve")), strict=True):
        curves[window, anchor, anchor + 1 :] = curve
    return curves
