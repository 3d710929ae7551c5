"""The ledger: one append-only, hash-chained table of everything that counts (roles.md R-60 to R-63).

Trials and holdout queries are charged here, in one transaction, before the first reveal. There is no way to change or
delete a row; a row that does not check raises `ledger_corrupt` and none is skipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa
from attrs import asdict, frozen
from sqlalchemy import event
from sqlalchemy import exc as sa_exc

from blindcast.entries import GENESIS, METADATA, Entry, append, checked, head
from blindcast.errors import BudgetError, FaultError

__all__ = ["Charge", "Ledger", "ledger_file", "query_refused"]

VARIABLE: Final = "BLINDCAST_LEDGER_URL"
_LOCK: Final = 7_216_030_561  # PostgreSQL advisory lock of the ledger: any constant of our own

_SQLITE_TRIGGERS = tuple(
    f"CREATE TRIGGER IF NOT EXISTS entries_no_{verb.lower()} BEFORE {verb} ON entries "
    f"BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
    for verb in ("UPDATE", "DELETE")
)
_TRIGGER_NAMES: Final = {"entries_no_update", "entries_no_delete"}
_POSTGRES_TRIGGERS = (
    "CREATE OR REPLACE FUNCTION entries_append_only() RETURNS trigger AS $$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$ "
    "LANGUAGE plpgsql",
    "DROP TRIGGER IF EXISTS entries_append_only ON entries",
    "CREATE TRIGGER entries_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON entries "
    "FOR EACH STATEMENT EXECUTE FUNCTION entries_append_only()",
)


@frozen
class Charge:
    """What a run spends before its first reveal: a trial, and on test a holdout query (G-66, FE-14)."""

    run_id: str
    task_digest: str
    split: str
    pool_digest: str
    holdout_set: str
    predictor_sha256: str
    trial_family: str
    actor: str = "operator"
    dry_runs: int = 0

    def body(self) -> dict[str, Any]:
        """The row's body."""
        return asdict(self)


def ledger_file(environ: Mapping[str, str]) -> Path | None:
    """The file that BLINDCAST_LEDGER_URL names; None where it names none: then it lies in the home, or on a server."""
    try:
        url = sa.engine.make_url(environ.get(VARIABLE) or "sqlite://")
    except sa_exc.ArgumentError:
        return None  # whoever opens it says so
    is_file = url.get_backend_name() == "sqlite" and url.database and url.database != ":memory:"
    return Path(str(url.database)) if is_file else None


class Ledger:
    """The ledger of one home, or of BLINDCAST_LEDGER_URL."""

    def __init__(self, url: str | Path) -> None:
        self._url = url

    @cached_property
    def _engine(self) -> sa.Engine:
        return _engine(self._url)

    @property
    def _is_absent(self) -> bool:
        """A home without a ledger: reading makes none."""
        return isinstance(self._url, Path) and not self._url.exists()

    @classmethod
    def of(cls, home: Path, environ: Mapping[str, str]) -> Ledger:
        """The ledger of `home`; BLINDCAST_LEDGER_URL goes first."""
        return cls(environ.get(VARIABLE) or home / "ledger.sqlite")

    def entries(self) -> Iterator[Entry]:
        """Every row in order, checked. Raises IntegrityError `ledger_corrupt` with the seq (R-61)."""
        if self._is_absent:
            return
        with _connected(self._engine) as connection:
            yield from checked(connection)

    def head(self) -> str:
        """The newest digest; 64 zeros for an empty ledger."""
        if self._is_absent:
            return GENESIS
        with _connected(self._engine) as connection:
            return head(connection)

    def trials(self, pool_digest: str, split: str) -> int:
        """How many runs have scored a target of this pool content and split (G-66)."""
        return sum(1 for entry in self.entries() if _counts(entry, "trial", pool_digest, split))

    def queries(self, pool_digest: str) -> int:
        """How many holdout queries this pool content has seen, under whatever spec."""
        return sum(1 for entry in self.entries() if _counts(entry, "holdout_query", pool_digest, "test"))

    def charge(self, spend: Charge, holdout_queries: int) -> tuple[int, int | None, int | None]:
        """Spend a trial, and on test a query, in one transaction: (trial index, query index, queries left), from 1.

        Raises BudgetError `holdout_budget_spent` and writes nothing where `holdout_queries` are spent.
        """
        with _writing(self._engine) as connection:
            rows = list(checked(connection))
            trial = 1 + sum(_counts(row, "trial", spend.pool_digest, spend.split) for row in rows)
            if spend.split != "test":
                append(connection, rows[-1:], [("trial", spend.body())])
                return trial, None, None
            query = 1 + sum(_counts(row, "holdout_query", spend.pool_digest, "test") for row in rows)
            if query > holdout_queries:
                raise query_refused(holdout_queries)
            append(connection, rows[-1:], [("trial", spend.body()), ("holdout_query", spend.body())])
            return trial, query, holdout_queries - query

    def record(self, kind: str, body: Mapping[str, Any]) -> str:
        """Append one row and return the new head."""
        with _writing(self._engine) as connection:
            rows = list(checked(connection))
            return append(connection, rows[-1:], [(kind, body)])


def query_refused(holdout_queries: int) -> BudgetError:
    """The refusal of one query too many."""
    return BudgetError(
        "holdout_budget_spent",
        f"all {holdout_queries} holdout queries on this pool are spent",
        expected="a query left in [budget] holdout_queries",
        do="work on train, or ask whoever owns the pool for new data: a look at the test split cannot be taken back",
        holdout_queries=holdout_queries,
    )


def _counts(entry: Entry, kind: str, pool_digest: str, split: str) -> bool:
    return entry.kind == kind and entry.body.get("pool_digest") == pool_digest and entry.body.get("split") == split


def _engine(url: str | Path) -> sa.Engine:
    if isinstance(url, Path):
        url.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        engine = sa.create_engine(f"sqlite:///{url}", connect_args={"timeout": 5.0, "isolation_level": None}, poolclass=sa.NullPool)
    else:
        try:
            engine = sa.create_engine(url, poolclass=sa.NullPool)
        except (sa_exc.ArgumentError, ImportError) as error:  # no URL, or a database whose driver is not installed
            raise _unavailable(error) from error
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _set_pragmas)
    try:
        with engine.begin() as connection:
            _create(connection)
    except sa_exc.DBAPIError as error:
        raise _unavailable(error) from error
    return engine


def _create(connection: sa.Connection) -> None:
    """Make the table and its triggers, all or nothing; two processes may meet here."""
    if connection.dialect.name != "sqlite":
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
    elif set(connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE type = 'trigger'").scalars()) >= _TRIGGER_NAMES:
        return  # readers take no lock
    else:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    METADATA.create_all(connection)
    for statement in _SQLITE_TRIGGERS if connection.dialect.name == "sqlite" else _POSTGRES_TRIGGERS:
        connection.exec_driver_sql(statement)


def _set_pragmas(connection: Any, _record: object) -> None:
    cursor = connection.cursor()
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "busy_timeout = 5000"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _unavailable(error: Exception) -> FaultError:
    is_busy = "locked" in str(error)
    return FaultError(
        "ledger_busy" if is_busy else "ledger_unavailable",
        f"the ledger {'is held by another process' if is_busy else 'cannot be used'}: {getattr(error, 'orig', error)}",
        expected="a ledger that answers within 5 s",
        do="try again" if is_busy else "check BLINDCAST_HOME and BLINDCAST_LEDGER_URL, and the space on the disk",
    )


@contextmanager
def _connected(engine: sa.Engine) -> Iterator[sa.Connection]:
    """A connection; what the database refuses (busy, full, damaged) becomes a FaultError."""
    try:
        with engine.connect() as connection:
            yield connection
    except sa_exc.DBAPIError as error:
        raise _unavailable(error) from error


@contextmanager
def _writing(engine: sa.Engine) -> Iterator[sa.Connection]:
    """One writing transaction: BEGIN IMMEDIATE on SQLite, an advisory lock on PostgreSQL; all or nothing."""
    with _connected(engine) as connection:
        if engine.dialect.name != "sqlite":
            with connection.begin():
                connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
                yield connection
            return
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        try:
            yield connection
        except BaseException:
            with suppress(sa_exc.DBAPIError):  # a full disk has rolled back already
                connection.exec_driver_sql("ROLLBACK")
            raise
        connection.exec_driver_sql("COMMIT")
