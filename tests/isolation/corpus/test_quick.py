"""Ten attacks under every backend of this host, in throw-away namespaces; `blindcast isolation test` runs them all."""

from __future__ import annotations

import fcntl
import json
import os
from typing import Any

import pytest

from blindcast.errors import DeniedError
from blindcast_isolation.corpus.launch import Arm, arms, launch
from blindcast_isolation.corpus.rows import QUICK, QUICK_VARIANTS, find

REQUIRED = {"privdrop", "userns", "bwrap"} if os.geteuid() == 0 else {"userns", "bwrap"}
IS_CI = os.environ.get("CI") == "true"
ARMS = tuple(arm for arm in arms() if not arm.is_again)
CONTROLS = tuple(f"C-0{i}" for i in range(1, 7))


@pytest.fixture(scope="session")
def columns(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Measured once a test run: the first worker that comes does it, the others wait."""
    base = tmp_path_factory.getbasetemp()
    folder = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with (folder / "corpus.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        answer = folder / "corpus.json"
        if not answer.is_file():
            answer.write_text(json.dumps(measured()))
    found: dict[str, Any] = json.loads(answer.read_text())
    if refusal := found.get("refusal"):
        assert not IS_CI, refusal
        pytest.skip(refusal)
    return found


def measured() -> dict[str, Any]:
    try:
        return {arm.title: column for arm, column in launch(ARMS, find((*QUICK, *CONTROLS)), variants=QUICK_VARIANTS).items()}
    except DeniedError as refusal:
        return {"refusal": f"{refusal.code}: {refusal.what}"}


@pytest.mark.parametrize("attack", [*QUICK, *CONTROLS])
@pytest.mark.parametrize("arm", ARMS, ids=lambda arm: arm.title)
def test_a_cell_is_as_expected(columns: dict[str, Any], arm: Arm, attack: str) -> None:
    """K-01 to K-06; for the controls section 8: curves equal to the byte."""
    column = columns[arm.title]
    if not column["available"]:
        assert not (IS_CI and arm.backend in REQUIRED), column["reason"]
        pytest.skip(f"{arm.title}: {column['reason']}")
    row = next(row for row in column["rows"] if row["id"] == attack)
    wrong = [one for one in row["variants"] if one["verdict"] != row["expected"]]
    assert row["ok"], f"{row['verdict']}, expected {row['expected']}: {wrong}"
