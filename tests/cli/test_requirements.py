"""What isolation a run must have, by its spec and by the environment, with real backends and through the command line (I-03, I-04)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from attrs import evolve

from blindcast import backends
from blindcast.contracts import Child, Isolation
from blindcast.errors import DeniedError
from blindcast.host import Host, Offered
from blindcast.ledger import Ledger
from blindcast.records import IsolationReport, Policy, SpawnSpec
from blindcast.testing.runner import Said

Cli = Callable[..., Said]
Write = Callable[[str], Path]

VARIABLE = "BLINDCAST_REQUIRE_ISOLATION"
STILL = "class Predictor:\n    def predict(self, view): return 0.5\n"
DIES = "import os\nclass Predictor:\n    def predict(self, view):\n        if view.anchor == 2: os._exit(9)\n        return 0.5\n"
NO_CPU = 1_000_000  # a child cannot be bound to it: the real failure of a control


def counted(tmp_path: Path) -> list[str]:
    path = tmp_path / "home" / "ledger.sqlite"
    return [entry.kind for entry in Ledger(path).entries()] if path.exists() else []


def kept(tmp_path: Path) -> list[str]:
    return [path.name for path in (tmp_path / "home" / "runs").glob("*")]


@pytest.fixture
def asked(
    blindcast_cli: Cli, blindcast_task: Path, submission: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., Said]:
    """`asked(door, require, variable)`: run or submit with the spec's word and the environment's."""

    def ask(door: str, require: str, variable: str, source: str = STILL) -> Said:
        task = tmp_path / f"{require}.toml"
        task.write_text(blindcast_task.read_text() + f'[isolation]\nrequire = "{require}"\n')
        if variable:
            monkeypatch.setenv(VARIABLE, variable)
        return blindcast_cli(door, submission(source), "--task", task, "--json")

    return ask


def offer_only(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    real = Host.offers

    def offers(self: Host, kind: str) -> tuple[Offered, ...]:
        return tuple(offer for offer in real(self, kind) if kind != "isolations" or offer.name in names)

    monkeypatch.setattr(Host, "offers", offers)


@pytest.mark.parametrize("door", ["run", "submit"])
@pytest.mark.parametrize(
    ("require", "variable", "offered", "code"),
    [
        ("any", "kernel", ("hook",), "isolation_unavailable"),
        ("privdrop", "userns", backends.ORDER, "isolation_conflict"),
        ("kernel", "hook", backends.ORDER, "isolation_conflict"),
        ("hook", "kernel", backends.ORDER, "isolation_conflict"),
        ("kernel", "", ("hook",), "isolation_unavailable"),
        ("bwrap", "", ("privdrop", "userns", "landlock", "hook"), "isolation_unavailable"),
    ],
)
def test_a_requirement_that_cannot_be_met_costs_nothing(
    asked: Callable[..., Said],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    door: str,
    require: str,
    variable: str,
    offered: tuple[str, ...],
    code: str,
) -> None:
    """IV-09, IV-10, I-03: exit 5; nothing is revealed, charged or counted."""
    offer_only(monkeypatch, *offered)
    said = asked(door, require, variable)
    assert (said.exit_code, said.document["error"]["code"]) == (5, code)
    assert (counted(tmp_path), kept(tmp_path)) == ([], [])


def test_a_backend_that_is_not_installed_here_is_never_replaced(
    asked: Callable[..., Said], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """I-03: a name is itself. Without a path there is no bubblewrap."""
    monkeypatch.setenv("PATH", str(tmp_path))
    said = asked("run", "any", "bwrap")
    assert (said.exit_code, said.document["error"]["code"]) == (5, "isolation_unavailable")
    assert "bubblewrap is not installed" in json.dumps(said.document)
    assert counted(tmp_path) == []


def test_an_unknown_word_of_the_variable_is_a_usage_error(asked: Callable[..., Said], tmp_path: Path) -> None:
    """I-03: exit 2."""
    assert asked("run", "any", "kernal").exit_code == 2
    assert counted(tmp_path) == []


def test_any_gives_the_first_that_is_available_here(asked: Callable[..., Said], blindcast_cli: Cli) -> None:
    """IV-11, I-03: root starts at `privdrop`, others at `userns`."""
    shown = blindcast_cli("isolation", "show", "--json").data["available"]
    order = backends.ORDER if os.geteuid() == 0 else backends.ORDER[1:]
    said = asked("run", "any", "")
    assert said.exit_code == 0
    assert said.data["isolation"]["backend"] == next(name for name in order if name in shown)


def test_where_nothing_else_is_to_be_had_a_run_gets_the_tripwire_and_says_so(
    asked: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    """I-03, I-05: neither root nor namespaces nor Landlock."""
    offer_only(monkeypatch, "hook")
    said = asked("run", "any", "")
    assert (said.exit_code, said.data["isolation"]) == (0, {"backend": "hook", "class": "tripwire"})
    assert "does not stop a determined submission" in said.stderr


@pytest.mark.parametrize("name", backends.ORDER)
def test_a_run_is_isolated_by_the_backend_that_is_named(asked: Callable[..., Said], name: str) -> None:
    """I-03, I-06: spec and variable name one; the record says which, and what was required."""
    said = asked("run", name, "any")
    if said.exit_code == 5:
        pytest.skip(said.document["error"]["detail"]["expected"])
    record = json.loads((Path(said.data["folder"]) / "run.json").read_text())["isolation"]
    assert (record["backend"], record["required"]) == (name, name)


class Failing:
    """A real backend whose `fatal`-th child cannot be locked down: by its own word, or because none is made at all."""

    def __init__(self, inner: Isolation, fatal: int, denial: str) -> None:
        self.inner, self.fatal, self.denial, self.spawned = inner, fatal, denial, 0

    def probe(self, policy: Policy) -> IsolationReport:
        return self.inner.probe(policy)

    def spawn(self, spec: SpawnSpec) -> Child:
        self.spawned += 1
        if self.spawned != self.fatal:
            return self.inner.spawn(spec)
        if self.denial:
            raise DeniedError(self.denial, "it was there before", expected="it stays", do="look")
        return self.inner.spawn(evolve(spec, cpu=NO_CPU))

    def close(self) -> None:
        backends.close(self.inner)


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, str], list[Failing]]:
    """Put a failing backend around the one that is appointed."""

    def make(fatal: int, denial: str) -> list[Failing]:
        real, made = backends.appoint, list[Failing]()

        def appoint(*args: Any, **named: Any) -> backends.Backend:
            backend = real(*args, **named)
            made.append(Failing(backend.isolation, fatal, denial))
            return evolve(backend, isolation=made[-1])

        monkeypatch.setattr(backends, "appoint", appoint)
        return made

    return make


DENIALS = [("", "setup:affinity"), ("uid_slots_spent", "setup:uid-drop"), ("setup:cgroup-kill", "setup:cgroup-kill")]


@pytest.mark.parametrize(("denial", "reason"), DENIALS)
def test_a_control_that_fails_in_mid_run_ends_it_and_what_was_sealed_stands(
    asked: Callable[..., Said], failing: Callable[[int, str], list[Failing]], tmp_path: Path, denial: str, reason: str
) -> None:
    """I-04, I-73: `setup:<control>`, exit 5; no weaker child, no other backend; the first window is graded (I-74)."""
    made = failing(2, denial)
    said = asked("submit", "any", "", DIES)
    assert (said.exit_code, said.data["status"], said.data["reason"]) == (5, "failed", reason)
    assert [one.spawned for one in made] == [2]
    assert counted(tmp_path)[0] == "trial"
    commits = pq.read_table(Path(said.data["folder"]) / "commits.parquet")
    assert set(commits["window"].to_pylist()) == {0}
    assert said.data["chain_head"] == commits["link"][-1].as_py()


@pytest.mark.parametrize("denial", ["", "uid_slots_spent", "setup:cgroup-kill"])
def test_a_control_that_fails_in_the_first_child_costs_nothing(
    asked: Callable[..., Said], failing: Callable[[int, str], list[Failing]], tmp_path: Path, denial: str
) -> None:
    """I-04, G-55: exit 5 before anything is revealed, charged or counted."""
    made = failing(1, denial)
    said = asked("submit", "any", "")
    assert (said.exit_code, said.document["error"]["code"]) == (5, denial or "setup:affinity")
    assert [one.spawned for one in made] == [1]
    assert (counted(tmp_path), kept(tmp_path)) == ([], [])
