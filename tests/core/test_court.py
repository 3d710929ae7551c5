"""A task spec bound to its plugins: identity, windows, where pools lie (DESIGN 5 and 8, grading.md section 2)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pytest

from blindcast import Offer, hookimpl
from blindcast.blinding import salt_of, secret_of
from blindcast.court import Court, convene
from blindcast.errors import DataError, IntegrityError, UsageError
from blindcast.host import Host
from blindcast.records import F64, Blinded, Dropped, Grid, Outcome, Selection, Window, WindowGrade, WindowRef
from blindcast.spec import SCHEMA, apply_settings, parse_spec

DAY_NS = 86_400_000_000_000


class Lined:
    """A source of `windows` windows, `every_s` apart; remembers where it was told to look."""

    looked: ClassVar[list[Path]] = []

    def __init__(
        self,
        pool: Path = Path("pool"),
        windows: int = 12,
        every_s: int = 10,
        content: str = "c",
        verdict: str = "",
        waive: tuple[str, ...] = (),
    ) -> None:
        self.looked.append(pool)
        self.count, self.every_s, self.content, self.verdict = windows, every_s, content, verdict

    def windows(self, grid: Grid) -> Sequence[WindowRef]:
        return [WindowRef(f"w{k}", k * self.every_s * 10**9, 5 + k % 3, 2) for k in range(self.count)]

    def window(self, ref: str, grid: Grid) -> Window:
        start_ns = int(ref[1:]) * self.every_s * 10**9
        book = pa.table({"ts_ns": pa.array([start_ns + k * 10**9 for k in range(4)])})
        return Window(ref, start_ns, grid, np.arange(grid.steps + 1.0), book, book[:0], book[:1], "1", "1")

    def dropped(self, grid: Grid) -> Sequence[Dropped]:
        return [Dropped(5, ("gap",))]

    def digest(self) -> str:
        return sha256(self.content.encode()).hexdigest()

    def selection(self, grid: Grid) -> Selection | None:
        return Selection(20, 8, "asked", 0.0, 0.5, self.verdict) if self.verdict else None


class Shown:
    """Shows the path and no row; keeps the salts it was given."""

    strength: ClassVar[Literal["basic", "strong"]] = "basic"
    salts: ClassVar[list[bytes]] = []

    def blind(self, window: Window, salt: bytes) -> Blinded:
        self.salts.append(salt)
        none = np.zeros(window.grid.steps + 1, dtype=np.int64)
        return Blinded(("t",), np.zeros((0, 1), np.float32), np.zeros((0, 2), np.float32), window.y, none, none)


class Strong(Shown):
    strength: ClassVar[Literal["basic", "strong"]] = "strong"

    def cap(self, grid: Grid, rows: int, prints: int) -> tuple[int, int]:
        return rows * 2, prints + 1


class Peeking(Shown):
    def blind(self, window: Window, salt: bytes) -> Blinded:
        shown = super().blind(window, salt)
        return Blinded(shown.columns, shown.ladder, shown.events, window.y / float(window.y.max()), shown.ladder_until, shown.events_until)


class Plain:
    version: ClassVar[int] = 2
    unit: ClassVar[str] = "bps"
    total: ClassVar[Literal["sum", "mean"]] = "sum"
    properties: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha

    def grade(self, outcome: Outcome, curves: F64) -> WindowGrade:
        return WindowGrade(0.0)

    def diagnostics(self, parts: Mapping[str, float]) -> Mapping[str, float | None]:
        return {}


def plugin(kind: str, **offers: object) -> ModuleType:
    module = ModuleType(f"plugged_{kind}")

    def hook() -> Iterator[Offer]:
        yield from (Offer(name, target, "of a test") for name, target in offers.items())

    hook.__name__ = kind
    setattr(module, kind, hookimpl(hook))
    return module


@pytest.fixture
def host(blindcast_host: Host) -> Iterator[Host]:
    Lined.looked.clear()
    Shown.salts.clear()
    with (
        blindcast_host.plug(plugin("datasources", lined=Lined), "blindcast"),
        blindcast_host.plug(plugin("anonymizers", shown=Shown, strong=Strong, peeking=Peeking), "blindcast"),
        blindcast_host.plug(plugin("graders", plain=Plain), "blindcast"),
        blindcast_host.plug(plugin("graders", theirs=Plain), "acme"),
    ):
        yield blindcast_host


BASE: Mapping[str, Any] = {
    "schema": SCHEMA,
    "source": {"use": "lined"},
    "anonymizer": {"use": "shown"},
    "grader": {"use": "plain"},
    "grid": {"window_s": 10, "steps": 4},
    "split": {"test_windows": 4, "targets": 3, "warmups": 2},
}


@pytest.fixture
def court(host: Host, tmp_path: Path) -> Any:
    def convened(*settings: str, environ: Mapping[str, str] | None = None, beside: Path | None = None) -> Court:
        spec = parse_spec(apply_settings(BASE, settings))
        return convene(host, spec, beside=beside or tmp_path, home=tmp_path / "home", environ=environ or {})

    return convened


def test_the_identity_is_the_hash_of_the_canonical_form_and_the_pool(court: Any) -> None:
    """DESIGN 5: JSON, keys sorted, no spaces, defaults filled in, a line feed and the pool's hash."""
    form = {
        "schema": "blindcast.task/1",
        "seed": 0,
        "source": {"use": "lined", "windows": 12, "every_s": 10, "content": "c", "verdict": "", "waive": []},
        "anonymizer": {"use": "shown"},
        "grader": {"use": "plain", "alpha": 1.0},
        "grid": {"window_s": 10, "steps": 4},
        "split": {"test_windows": 4, "targets": 3, "warmups": 2, "embargo_windows": 0},
        "budget": {"run_wall_s": 900.0, "step_wall_s": 10.0, "train_wall_s": 300.0},
        "isolation": {"state": "carry"},
    }
    text = json.dumps(form, sort_keys=True, separators=(",", ":")) + "\n" + sha256(b"c").hexdigest()
    assert court().identity() == sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    "setting",
    [
        "name=another",
        "source.pool=elsewhere/pool",
        "budget.holdout_queries=9",
        "isolation.require=kernel",
        "isolation.memory_mb=512",
        "isolation.uid_range=[70000, 70009]",
        "grader.alpha=1",
        "split.embargo_windows=0",
        'grader.use="blindcast/plain"',
    ],
)
def test_the_identity_does_not_change_with_what_changes_no_curve(court: Any, setting: str) -> None:
    """DESIGN 5: without name, paths, holdout_queries and [isolation] but state; a default said is a default."""
    assert court(setting).identity() == court().identity()


@pytest.mark.parametrize(
    "setting",
    [
        "seed=1",
        "grader.alpha=2",
        "isolation.state=fresh",
        "split.targets=2",
        "split.warmups=1",
        "split.test_windows=3",
        "split.embargo_windows=1",
        "grid.steps=2",
        "grid.window_s=5",
        "budget.step_wall_s=1",
        "budget.run_wall_s=1",
        "budget.train_wall_s=1",
        "anonymizer.use=strong",
        'grader.use="acme/theirs"',
        "source.content=d",
        "source.windows=13",
    ],
)
def test_the_identity_changes_with_all_else(court: Any, setting: str) -> None:
    """DESIGN 5."""
    assert court(setting).identity() != court().identity()


def test_a_cap_belongs_to_the_identity(court: Any) -> None:
    """G-18."""
    convened = court()
    assert len({convened.identity(), convened.identity(2), convened.identity(3)}) == 3
    assert convened.identity(None) == convened.identity()


def test_a_grade_carries_version_grid_and_options(court: Any) -> None:
    """P-33."""
    assert court("grader.alpha=0.5").grader_id == "plain/2;G=4;alpha=0.5"
    assert court('grader.use="theirs"').grader_id == "acme/theirs/2;G=4;alpha=1"


def test_alpha_is_the_graders_or_nothing(court: Any) -> None:
    """DESIGN 6."""
    assert court("grader.alpha=2").alpha == 2.0
    convened = court()
    del convened.grader.alpha
    assert convened.alpha is None


def test_the_plugins_of_a_task_are_known_for_the_lock(court: Any) -> None:
    used = court('grader.use="theirs"').used
    assert set(used) == {("datasources", "blindcast/lined"), ("anonymizers", "blindcast/shown"), ("graders", "acme/theirs")}


@pytest.mark.parametrize("setting", ['grader.use="nosuch"', 'source.use="nosuch"', 'anonymizer.use="nosuch"'])
def test_an_unknown_plugin_is_a_fault_of_the_spec(court: Any, setting: str) -> None:
    """P-24: exit 3, since the spec names it."""
    with pytest.raises(DataError) as caught:
        court(setting)
    assert (caught.value.code, caught.value.exit_code) == ("plugin_unknown", 3)


def test_an_unknown_option_is_told_with_its_path(court: Any) -> None:
    """G-32, P-31."""
    with pytest.raises(DataError) as caught:
        court("grader.alpah=2")
    assert caught.value.code == "config_unknown_key"
    assert "grader.alpah" in caught.value.what


def test_tasks_are_counted_and_named(court: Any) -> None:
    convened = court()
    assert convened.counts() == (4, 1)
    assert convened.task("test", 0) == ((6, 7), range(8, 12))
    assert convened.overlap()["distinct_windows"] == 6
    assert convened.dropped() == (Dropped(5, ("gap",)),)
    with pytest.raises(UsageError):
        convened.task("train", 4)


def test_a_pool_that_is_too_small_is_told_when_tasks_are_asked_for(court: Any) -> None:
    """G-16."""
    with pytest.raises(DataError) as caught:
        court("source.windows=5").counts()
    assert caught.value.code == "pool_too_small"


@pytest.mark.parametrize(("every_s", "is_fine"), [(10, True), (11, True), (9, False)])
def test_windows_that_overlap_are_refused(court: Any, every_s: int, is_fine: bool) -> None:
    """G-10: exit 3; one may start where the last one ends."""
    if is_fine:
        assert len(court(f"source.every_s={every_s}").refs) == 12
        return
    with pytest.raises(DataError) as caught:
        court(f"source.every_s={every_s}")
    assert (caught.value.code, caught.value.exit_code) == ("windows_overlap", 3)


def test_holes_are_no_fault(court: Any) -> None:
    """G-10, GV-123: position counts, not time."""
    assert court("source.every_s=3600").counts() == court().counts()


def test_a_relative_pool_lies_in_the_data_folder_or_beside_the_task_file(court: Any, tmp_path: Path) -> None:
    """DESIGN 8: BLINDCAST_DATA_DIR goes first; never the working directory."""
    places = []
    for environ in ({"BLINDCAST_DATA_DIR": "/data"}, {"BLINDCAST_DATA_DIR": ""}, {}):
        court("source.pool=pools/x", environ=environ, beside=tmp_path / "tasks")
        places.append(Lined.looked[-1])
    assert places == [Path("/data/pools/x"), tmp_path / "tasks" / "pools" / "x", tmp_path / "tasks" / "pools" / "x"]
    court("source.pool=/else/x", environ={"BLINDCAST_DATA_DIR": "/data"})
    assert Lined.looked[-1] == Path("/else/x")


def test_a_pool_whose_gaps_are_not_random_is_refused_unless_waived(court: Any) -> None:
    """DK-05."""
    with pytest.raises(DataError) as caught:
        court("source.verdict=FAIL")
    assert (caught.value.code, caught.value.exit_code) == ("missing_not_random", 3)
    assert "(p 0)" in caught.value.what
    assert "waive" in caught.value.do
    assert court("source.verdict=PASS").warnings == ()
    waived = court("source.verdict=FAIL", 'source.waive=["missing_not_random"]')
    assert waived.warnings[0].startswith("missing_not_random: ")


def test_a_basic_anonymizer_needs_no_secret(court: Any, tmp_path: Path) -> None:
    """DA-06: 32 zero bytes, without a key file."""
    court().reveal(0)
    assert Shown.salts == [bytes(32)]
    assert not (tmp_path / "home").exists()


def test_a_strong_one_gets_a_salt_per_window_of_the_homes_secret(court: Any, tmp_path: Path) -> None:
    """DA-06, FE-05: the same through every door."""
    convened = court("anonymizer.use=strong", "seed=5")
    for position in (0, 3, 0):
        convened.reveal(position)
    secret = secret_of(tmp_path / "home")
    expected = [salt_of(secret, convened.identity(), 5, start) for start in (0, 30 * 10**9, 0)]
    assert Shown.salts == expected
    assert len(set(expected)) == 2


def test_a_reveal_is_the_truth_and_what_is_shown_of_it(court: Any) -> None:
    y, reveal = court().reveal(2)
    assert y.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert (reveal.steps, reveal.columns) == (4, ("t",))
    assert court().path(2).tolist() == y.tolist()


def test_an_audited_reveal_catches_an_anonymizer_that_looks_ahead(court: Any) -> None:
    """DA-02: in every run, one random cut of one window."""
    court("anonymizer.use=peeking").reveal(0)
    with pytest.raises(IntegrityError) as caught:
        court("anonymizer.use=peeking").reveal(0, audited=True)
    assert (caught.value.code, caught.value.exit_code) == ("anonymizer_not_causal", 4)
    court().reveal(0, audited=True)


def test_an_audit_of_one_step_has_nothing_to_cut(court: Any) -> None:
    court("grid.steps=1").reveal(0, audited=True)


def test_the_buffer_is_sized_without_reading_a_window(court: Any) -> None:
    """I-40: the most rows any window may show, as the anonymizer bounds it."""
    assert court().caps() == (7, 2)
    assert court("anonymizer.use=strong").caps() == (14, 3)


@pytest.mark.parametrize(
    ("url", "files"),
    [
        ("", []),
        ("sqlite:////elsewhere/ledger.sqlite", [Path("/elsewhere/ledger.sqlite")]),
        ("sqlite://", []),
        ("postgresql://host/ledger", []),
        ("no url", []),
    ],
)
def test_a_court_knows_what_no_child_may_reach(court: Any, tmp_path: Path, url: str, files: list[Path]) -> None:
    """I-23: the source's paths, the home, and a ledger that is a file elsewhere."""
    convened = court("source.pool=pools/x", environ={"BLINDCAST_LEDGER_URL": url})
    assert convened.policy.raw_roots == (tmp_path / "pools" / "x", tmp_path / "home", *files)
    assert convened.policy.limits == convened.spec.policy.limits
