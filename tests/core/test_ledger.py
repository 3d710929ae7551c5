"""The ledger on a real SQLite file (roles.md R-60 to R-63, RV-32; grading.md G-66)."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from attrs import evolve

from blindcast.entries import GENESIS
from blindcast.errors import BudgetError, FaultError, IntegrityError
from blindcast.ledger import Charge, Ledger

SPEND = Charge(
    run_id="20260101T000000Z-abcdef",
    task_digest="1" * 64,
    split="train",
    pool_digest="2" * 64,
    holdout_set="3" * 64,
    predictor_sha256="4" * 64,
    trial_family="2" * 64,
)
TEST_SPEND = evolve(SPEND, split="test")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "ledger.sqlite"


@pytest.fixture
def ledger(path: Path) -> Ledger:
    return Ledger(path)


def sql(path: Path, *statements: str, drops_triggers: bool = False) -> None:
    """Meddle with the file, as someone who has it may."""
    with closing(sqlite3.connect(path)) as connection:
        if drops_triggers:
            connection.executescript("DROP TRIGGER entries_no_update; DROP TRIGGER entries_no_delete;")
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def test_an_empty_home_has_an_empty_ledger_and_reading_makes_none(ledger: Ledger, path: Path) -> None:
    """R-61: the head of nothing is 64 zeros."""
    assert (list(ledger.entries()), ledger.head(), ledger.trials("2" * 64, "train")) == ([], GENESIS, 0)
    assert not path.exists()


def test_rows_are_chained_without_gaps(ledger: Ledger) -> None:
    """R-61."""
    heads = [ledger.record("note", {"k": k}) for k in range(3)]
    rows = list(ledger.entries())
    assert [row.seq for row in rows] == [1, 2, 3]
    assert [row.prev for row in rows] == [GENESIS, *heads[:-1]]
    assert [row.digest for row in rows] == heads
    assert [dict(row.body) for row in rows] == [{"k": 0}, {"k": 1}, {"k": 2}]
    assert all(row.is_sound() for row in rows)
    assert ledger.head() == heads[-1]


def test_a_trial_names_what_was_spent_on_what(ledger: Ledger) -> None:
    """R-62."""
    assert ledger.charge(SPEND, 3) == (1, None, None)
    (row,) = ledger.entries()
    assert row.kind == "trial"
    names = {"run_id", "task_digest", "split", "pool_digest", "holdout_set", "trial_family", "predictor_sha256", "actor"}
    assert set(row.body) >= names
    assert row.body["actor"] == "operator"


def test_a_run_on_test_spends_a_query_beside_its_trial(ledger: Ledger) -> None:
    """FE-14, G-66: counted from 1, in one transaction under one clock read."""
    assert ledger.charge(TEST_SPEND, 2) == (1, 1, 1)
    assert ledger.charge(TEST_SPEND, 2) == (2, 2, 0)
    rows = list(ledger.entries())
    assert [row.kind for row in rows] == ["trial", "holdout_query"] * 2
    assert rows[0].at == rows[1].at


def test_one_query_too_many_is_refused_and_leaves_no_row(ledger: Ledger) -> None:
    """G-35, DESIGN 5: exit 7."""
    ledger.charge(TEST_SPEND, 1)
    with pytest.raises(BudgetError) as caught:
        ledger.charge(TEST_SPEND, 1)
    assert (caught.value.code, caught.value.exit_code) == ("holdout_budget_spent", 7)
    assert len(list(ledger.entries())) == 2
    with pytest.raises(BudgetError):
        ledger.charge(evolve(TEST_SPEND, pool_digest="9" * 64), 0)


def test_trials_count_by_pool_and_split_alone(ledger: Ledger) -> None:
    """G-66: a new name, seed, predictor or alpha resets nothing; another pool or split counts apart."""
    ledger.charge(SPEND, 3)
    ledger.charge(evolve(SPEND, task_digest="8" * 64, predictor_sha256="9" * 64, run_id="x", trial_family="f"), 3)
    ledger.charge(TEST_SPEND, 3)
    ledger.charge(evolve(SPEND, pool_digest="9" * 64), 3)
    ledger.record("note", {"pool_digest": "2" * 64, "split": "train"})
    assert [ledger.trials("2" * 64, split) for split in ("train", "test")] == [2, 1]
    assert [ledger.queries(pool) for pool in ("2" * 64, "9" * 64)] == [1, 0]


def test_a_query_of_another_task_on_this_pool_counts_too(ledger: Ledger) -> None:
    """DESIGN 5: all queries on this pool's content count, under whatever spec or cap."""
    ledger.charge(TEST_SPEND, 3)
    assert ledger.charge(evolve(TEST_SPEND, task_digest="8" * 64, holdout_set="9" * 64), 3) == (2, 2, 1)


@pytest.mark.parametrize(
    "statement", ["UPDATE entries SET kind = 'note' WHERE seq = 1", "DELETE FROM entries WHERE seq = 2", "DELETE FROM entries"]
)
def test_no_row_can_be_changed_or_deleted(ledger: Ledger, path: Path, statement: str) -> None:
    """R-60, RV-32: plain UPDATE and DELETE raise."""
    for k in range(2):
        ledger.record("note", {"k": k})
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        sql(path, statement)
    assert len(list(ledger.entries())) == 2


@pytest.mark.parametrize(
    "change",
    [
        "body = replace(body, '6', '5')",
        "body = replace(body, ':', ': ')",
        "at = '2020-01-01T00:00:00.000000Z'",
        "kind = 'trial'",
        "goal_id = 'g1'",
        "key = 'k'",
        "prev = upper(prev)",
        "digest = '0' || substr(digest, 2, 62) || 'x'",
        "body = '[]'",
        "body = '{'",
        "body = CAST(x'7b226b223a22ff227d' AS TEXT)",
        "seq = 70",
    ],
)
def test_a_changed_row_is_told_by_its_seq(path: Path, change: str) -> None:
    """R-61, RV-32: exit 4; the rows before it are given, none after it is."""
    ledger = Ledger(path)
    for k in range(9):
        ledger.record("note", {"k": k})
    sql(path, f"UPDATE entries SET {change} WHERE seq = 7", drops_triggers=True)
    given: list[int] = []
    with pytest.raises(IntegrityError) as caught:
        given.extend(entry.seq for entry in Ledger(path).entries())
    assert (caught.value.code, caught.value.exit_code, caught.value.detail) == ("ledger_corrupt", 4, {"seq": 7})


def test_a_row_of_another_chain_is_told_by_its_seq(path: Path) -> None:
    """R-61: sound in itself, but not after the row before it."""
    for name, words in (("ledger.sqlite", "ab"), ("other.sqlite", "xb")):
        for word in words:
            Ledger(path.with_name(name)).record("note", {"word": word})
    copied = "at, kind, goal_id, key, body, prev, digest"
    sql(path, "DELETE FROM entries WHERE seq = 2", drops_triggers=True)
    sql(
        path,
        f"ATTACH '{path.with_name('other.sqlite')}' AS other",
        f"INSERT INTO entries (seq, {copied}) SELECT seq, {copied} FROM other.entries WHERE seq = 2",
    )
    with pytest.raises(IntegrityError) as caught:
        list(Ledger(path).entries())
    assert caught.value.detail == {"seq": 2}


def test_a_missing_row_is_told_by_its_seq(path: Path) -> None:
    """R-61: no gaps."""
    ledger = Ledger(path)
    for k in range(9):
        ledger.record("note", {"k": k})
    sql(path, "DELETE FROM entries WHERE seq = 7", drops_triggers=True)
    with pytest.raises(IntegrityError) as caught:
        list(Ledger(path).entries())
    assert caught.value.detail == {"seq": 7}


def test_a_byte_of_the_file_is_enough(path: Path) -> None:
    """RV-32: flipped on the disk, not by SQL."""
    ledger = Ledger(path)
    for k in range(9):
        ledger.record("note", {"word": f"sealed-{k}"})
    sql(path, "PRAGMA wal_checkpoint(TRUNCATE)")
    data = path.read_bytes()
    assert data.count(b"sealed-6") == 1
    path.write_bytes(data.replace(b"sealed-6", b"sealee-6"))
    with pytest.raises(IntegrityError) as caught:
        list(Ledger(path).entries())
    assert caught.value.detail == {"seq": 7}


def test_nothing_is_charged_on_a_damaged_ledger(path: Path) -> None:
    """R-61."""
    ledger = Ledger(path)
    ledger.charge(SPEND, 3)
    sql(path, "UPDATE entries SET body = replace(body, 'operator', 'somebody') WHERE seq = 1", drops_triggers=True)
    with pytest.raises(IntegrityError):
        Ledger(path).charge(SPEND, 3)


def test_at_never_falls(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-63: one clock read a transaction, never below the last row's."""
    for clock in ("2026-01-01T00:00:01Z", "2026-01-01T00:00:00Z", "2026-01-01T00:00:02.5Z"):
        monkeypatch.setenv("BLINDCAST_CLOCK", clock)
        ledger.charge(TEST_SPEND, 9)
    assert [row.at for row in ledger.entries()] == [
        *["2026-01-01T00:00:01.000000Z"] * 4,
        *["2026-01-01T00:00:02.500000Z"] * 2,
    ]


def test_the_ledger_may_be_named_by_a_url(tmp_path: Path) -> None:
    """R-60: BLINDCAST_LEDGER_URL goes before the home's."""
    url = f"sqlite:///{tmp_path / 'other.sqlite'}"
    ledger = Ledger.of(tmp_path / "home", {"BLINDCAST_LEDGER_URL": url})
    assert ledger.charge(TEST_SPEND, 2) == (1, 1, 1)
    with pytest.raises(BudgetError):
        ledger.charge(TEST_SPEND, 1)
    assert len(list(Ledger(tmp_path / "other.sqlite").entries())) == 2
    assert not (tmp_path / "home").exists()
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        sql(tmp_path / "other.sqlite", "DELETE FROM entries")


@pytest.mark.parametrize("url", ["nonsense", "nosuch://x/y", "sqlite:////nowhere/at/all/ledger.sqlite"])
def test_a_url_that_leads_nowhere_is_told(url: str) -> None:
    with pytest.raises(FaultError) as caught:
        Ledger(url).record("note", {})
    assert caught.value.code == "ledger_unavailable"


def test_a_file_that_is_no_ledger_is_told(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(b"this is no database, not even a small one" * 40)
    with pytest.raises(FaultError) as caught:
        list(Ledger(path).entries())
    assert caught.value.code == "ledger_unavailable"


def test_the_ledger_is_written_through(ledger: Ledger, path: Path) -> None:
    """R-60: WAL; the folder is the owner's alone."""
    ledger.record("note", {})
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert path.parent.stat().st_mode & 0o777 == 0o700


RACER = f"""
import sys
from pathlib import Path
from blindcast.errors import BlindcastError
from blindcast.ledger import Charge, Ledger
spend = Charge(**{TEST_SPEND.body()!r})
ledger = Ledger(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
try:
    print(*ledger.charge(spend, int(sys.argv[2])))
except BlindcastError as error:
    print(error.code)
"""


def race(path: Path, processes: int, holdout_queries: int) -> list[str]:
    """What each of several processes says that spend at the same moment."""
    command = [sys.executable, "-c", RACER, str(path), str(holdout_queries)]
    racers = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(processes)]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    return sorted(racer.communicate()[0].strip() for racer in racers)


def test_of_two_processes_exactly_one_gets_the_last_query(path: Path) -> None:
    """R-60, FE-14: BEGIN IMMEDIATE; the loser writes nothing."""
    Ledger(path).charge(TEST_SPEND, 2)
    assert race(path, 2, 2) == ["2 2 0", "holdout_budget_spent"]
    assert [row.kind for row in Ledger(path).entries()] == ["trial", "holdout_query"] * 2


def test_processes_may_meet_at_a_ledger_that_does_not_exist_yet(path: Path) -> None:
    """R-60: whoever comes first makes it, everybody's row is there."""
    assert race(path, 4, 9) == [f"{k} {k} {9 - k}" for k in (1, 2, 3, 4)]
    assert len(list(Ledger(path).entries())) == 8
