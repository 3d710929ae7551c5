"""A spool: record batches kept on disk while the recording is still being read, so that nothing is used before its end is checked."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from types import TracebackType
from typing import IO, Self

import pyarrow as pa

__all__ = ["Spool"]


class Spool:
    """Batches of one schema in an unnamed temporary file, gone with the process."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # closed by `close`
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        self._writer = pa.ipc.new_stream(self._file, schema, options=options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def put(self, batch: pa.RecordBatch) -> None:
        """Append a batch. Raises OSError on a full disk."""
        self._writer.write_batch(batch)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Every batch in the order put; nothing can be put afterwards."""
        self._writer.close()
        self._file.seek(0)
        with pa.ipc.open_stream(self._file) as reader:
            yield from reader

    def close(self) -> None:
        """Let the file go."""
        self._file.close()
