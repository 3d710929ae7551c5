"""Writing a pool: aside, fsynced, renamed; a failed import leaves nothing at the target (DP-01)."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from blindcast.errors import FaultError, UsageError
from blindcast_datasources.columns import INVALID, prints_of, rows_of
from blindcast_datasources.hashes import PoolHashes
from blindcast_datasources.parts import TABLES, PartWriter

__all__ = ["PoolWriter", "aside", "refuse_existing"]


def refuse_existing(target: Path, *, force: bool) -> None:
    """Raises UsageError `pool_exists` where something stands in the way; `force` replaces pools only."""
    if not (target.exists() or target.is_symlink()):
        return
    is_pool = (target / "meta.json").is_file() or (target.is_dir() and not any(target.iterdir()))
    if force and is_pool and not target.is_symlink():
        return
    raise UsageError(
        "pool_exists",
        f"there is something at {target} already" + ("" if is_pool else ", and it is no pool"),
        expected="a path where nothing is",
        do="choose another, or --force to replace a pool" if is_pool else "choose another: --force replaces pools only",
        path=str(target),
    )


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def aside(target: Path, *, force: bool) -> Iterator[Path]:
    """A new folder beside `target` that becomes it at the end of the block, or vanishes if the block fails.

    Raises UsageError `pool_exists`, FaultError `pool_unwritable` (a full disk, no permission).
    """
    refuse_existing(target, force=force)
    folder = target.parent / f".{target.name}.{secrets.token_hex(6)}.part"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir()
        yield folder
        _sync(folder)
        refuse_existing(target, force=force)
        _replace(folder, target)
        _sync(target.parent)
    except OSError as error:
        raise FaultError(
            "pool_unwritable",
            f"the pool could not be written to {target}: {error.strerror or error}",
            expected="room and permission to write there and in the temporary folder",
            do="free some space or choose another folder; nothing was left behind",
            path=str(target),
        ) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _replace(folder: Path, target: Path) -> None:
    """Rename `folder` to `target`; a pool that stands there steps back first and is then deleted."""
    if not target.exists():
        folder.rename(target)
        return
    old = folder.with_suffix(".old")
    target.rename(old)
    try:
        folder.rename(target)
    except OSError:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


class PoolWriter:
    """Writes the two tables and `meta.json` of a pool into a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._hashes = PoolHashes()
        self._parts: dict[str, PartWriter] = {}
        self.valid_states = 0
        try:
            for table in TABLES:
                self._parts[table] = PartWriter(folder, table)
        except BaseException:
            self.abandon()
            raise

    def put(self, batch: pa.RecordBatch) -> None:
        """Append a batch of either table, in time order within its kind. Raises OSError."""
        if "flags" in batch.schema.names:
            rows = rows_of(batch)
            self._hashes.see_rows(rows)
            self.valid_states += int(((rows.flags & INVALID) == 0).sum())
            self._parts["book_events"].put(batch)
        else:
            self._hashes.see_prints(prints_of(batch))
            self._parts["trades"].put(batch)

    def close(self, known: Mapping[str, Any]) -> dict[str, Any]:
        """Finish the files; `known` are the keys of DP-05 that the tables do not tell. Returns `meta`."""
        parts = [writer.close() for writer in self._parts.values()]
        bounds = [part[key] for part in parts for key in ("t0_ns", "t1_ns") if part[key] is not None]
        bounds += [known[key] for key in ("t0_ns", "t1_ns") if known.get(key) is not None]
        meta = {
            **known,
            "t0_ns": min(bounds, default=None),
            "t1_ns": max(bounds, default=None),
            "rows": self._parts["book_events"].rows,
            "trades": self._parts["trades"].rows,
            "parts": parts,
            "hashes": self._hashes.result(known["tick_size"], known["lot_size"]),
        }
        with (self._folder / "meta.json").open("w", encoding="utf-8") as stream:
            json.dump(meta, stream, indent=1, allow_nan=False)
            stream.write("\n")
            stream.flush()
            os.fsync(stream.fileno())
        return meta

    def abandon(self) -> None:
        """Let the files go."""
        for writer in self._parts.values():
            writer.abandon()
