"""Rows of the ledger and their chain: canonical form, digests, checking, appending (roles.md R-61 to R-63)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final

import sqlalchemy as sa
from attrs import frozen
from sqlalchemy import exc as sa_exc

from blindcast.errors import IntegrityError, UsageError

__all__ = ["ENTRIES", "GENESIS", "METADATA", "Entry", "append", "canonical", "checked", "digest", "head", "now_utc"]

GENESIS: Final = "0" * 64

METADATA = sa.MetaData()
ENTRIES = sa.Table(
    "entries",
    METADATA,
    sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True, autoincrement=False),
    sa.Column("at", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("goal_id", sa.Text),
    sa.Column("key", sa.Text),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("prev", sa.Text, nullable=False),
    sa.Column("digest", sa.Text, nullable=False, unique=True),
)


def canonical(value: object) -> str:
    """Canonical JSON: keys sorted, no spaces, UTF-8 unescaped (R-13)."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def now_utc() -> datetime:
    """The one clock; BLINDCAST_CLOCK (ISO, UTC) stands in for it in tests."""
    fixed = os.environ.get("BLINDCAST_CLOCK")
    if not fixed:
        return datetime.now(UTC)
    try:
        at = datetime.fromisoformat(fixed)
    except ValueError:
        raise UsageError("clock_invalid", f"BLINDCAST_CLOCK is {fixed!r}", expected="an ISO time in UTC", do="unset it") from None
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


@frozen
class Entry:
    """One row, as it was sealed."""

    seq: int
    at: str
    kind: str
    goal_id: str | None
    key: str | None
    body: Mapping[str, Any]
    prev: str
    digest: str

    def is_sound(self) -> bool:
        """Whether the digest is that of the row (R-61)."""
        return self.digest == digest(self.prev, self.seq, self.at, self.kind, self.goal_id, self.key, self.body)


def digest(prev: str, seq: int, at: str, kind: str, goal_id: str | None, key: str | None, body: Mapping[str, Any]) -> str:
    """sha256 hex of the canonical row (R-61)."""
    return sha256(canonical([prev, seq, at, kind, goal_id, key, body]).encode()).hexdigest()


def checked(connection: sa.Connection) -> Iterator[Entry]:
    """Every row in order. Raises IntegrityError `ledger_corrupt` with the first seq that does not check; none is skipped."""
    prev, expected = GENESIS, 1
    rows = connection.execute(sa.select(ENTRIES).order_by(ENTRIES.c.seq))
    while True:
        try:
            row = rows.fetchone()
        except sa_exc.DBAPIError as error:  # bytes that are no text, or a damaged page
            raise _corrupt(expected) from error
        if row is None:
            return
        entry = _sound(row, expected, prev)
        if entry is None:
            raise _corrupt(expected)
        yield entry
        prev, expected = entry.digest, expected + 1


def _sound(row: sa.Row[Any], seq: int, prev: str) -> Entry | None:
    """The row as an entry; None where it is not the one of `seq` after `prev`, or is not as it was sealed."""
    try:
        entry = Entry(row.seq, row.at, row.kind, row.goal_id, row.key, json.loads(row.body), row.prev, row.digest)
        is_sound = entry.seq == seq and entry.prev == prev and row.body == canonical(entry.body) and entry.is_sound()
    except (ValueError, TypeError):
        return None
    return entry if is_sound else None


def _corrupt(seq: int) -> IntegrityError:
    return IntegrityError(
        "ledger_corrupt",
        f"row {seq} of the ledger does not check",
        expected="a chain without gaps, each row's digest that of its fields",
        do="restore the ledger from a backup: nothing that counts can be trusted until then",
        seq=seq,
    )


def head(connection: sa.Connection) -> str:
    """The newest digest; 64 zeros for an empty ledger."""
    row = connection.execute(sa.select(ENTRIES.c.digest).order_by(ENTRIES.c.seq.desc()).limit(1)).first()
    return str(row.digest) if row else GENESIS


def append(connection: sa.Connection, last: Sequence[Entry], rows: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """Append rows under one clock read, never below the last row's time (R-63); returns the new head."""
    seq, prev, floor = (last[0].seq, last[0].digest, last[0].at) if last else (0, GENESIS, "")
    at = max(floor, now_utc().strftime("%Y-%m-%dT%H:%M:%S.%fZ"))
    for kind, body in rows:
        seq += 1
        sealed = digest(prev, seq, at, kind, None, None, body)
        fields = {"seq": seq, "at": at, "kind": kind, "goal_id": None, "key": None, "body": canonical(body), "prev": prev, "digest": sealed}
        connection.execute(ENTRIES.insert().values(fields))
        prev = sealed
    return prev
