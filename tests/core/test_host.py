"""Discovery, names and blame (plugins.md sections 3 and 4)."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
import pytest

from blindcast import Offer, hookimpl
from blindcast.errors import BlindcastError, DataError, FaultError, UsageError
from blindcast.host import Host
from blindcast.names import grade_id
from blindcast.records import Outcome, WindowGrade
from blindcast.testing.fabric import fabricate

HEAD = "from blindcast import Offer, hookimpl\n"
GOOD_PROBE = "@hookimpl\ndef probes():\n    yield Offer('calm', 'json:dumps', 'a probe')\n"

Install: TypeAlias = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Put fabricated distributions on sys.path for the test; their modules are forgotten afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    known = set(sys.modules)

    def put(distribution: str, modules: Mapping[str, str], **more: Any) -> None:
        fabricate(tmp_path, distribution, modules, **more)
        importlib.invalidate_caches()

    yield put
    for name in set(sys.modules) - known:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def plugin(**members: object) -> ModuleType:
    """A plugin module made of hooks and constants."""
    module = ModuleType("plugged")
    for name, member in members.items():
        setattr(module, name, member)
    return module


def offering(kind: str, *offers: Offer, **members: object) -> ModuleType:
    """A plugin module whose one hook yields these offers."""

    def hook() -> Iterator[Offer]:
        yield from offers

    hook.__name__ = kind
    return plugin(**{kind: hookimpl(hook)}, **members)


def only_error(host: Host) -> str:
    (broken,) = host.broken
    return f"{broken.stage} {broken.hook} {broken.message}"


def test_shipped_plugins_are_found_by_their_entry_points() -> None:
    """P-20."""
    host = Host({})
    assert [offered.qualified for offered in host.offers("graders")] == ["blindcast/earliness_x_horizon"]
    assert {plugin.status for plugin in host.plugins} == {"loaded"}
    assert host.find("graders", "earliness-x-horizon").name == "earliness_x_horizon"


def test_a_plugin_that_does_not_import_stops_no_other(install: Install) -> None:
    """PV-01."""
    install("acme-broken", {"acme_broken_a": "import no_such_thing\n"})
    host = Host({})
    (broken,) = host.broken
    assert (broken.plugin, broken.stage, broken.version) == ("acme-broken:acme_broken_a", "import", "1.0")
    assert "no_such_thing" in broken.line
    assert host.offers("graders")
    assert [p.status for p in host.plugins if p.entry.distribution == "acme-broken"] == ["broken"]


def test_a_plugin_that_exits_at_import_is_broken(install: Install) -> None:
    """PV-02."""
    install("acme-exit", {"acme_exit_a": "import sys\nsys.exit(3)\n"})
    assert only_error(Host({})) == "import  SystemExit: 3"


def test_ctrl_c_at_import_is_not_caught(install: Install) -> None:
    """PV-02."""
    install("acme-ctrl", {"acme_ctrl_a": "raise KeyboardInterrupt\n"})
    with pytest.raises(KeyboardInterrupt):
        Host({}).discover()


def test_a_print_at_import_and_in_a_hook_goes_to_stderr(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    """PV-03."""
    install("acme-loud", {"acme_loud_a": HEAD + "print('one')\n@hookimpl\ndef probes():\n    print('two')\n    return []\n"})
    Host({}).discover()
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.split() == ["one", "two"]


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"blindcast_api": 2}, "needs hook API 2, this is 1"),
        ({"blindcast_api": 0}, "needs hook API 0, this is 1"),
        ({"blindcast_api": True}, "must be an int"),
        ({"blindcast_api": "1"}, "must be an int"),
        ({"grader": hookimpl(lambda: iter(()))}, "did you mean 'graders'?"),
        ({"graders": hookimpl(lambda path: [])}, "takes parameters"),
        ({"graders": hookimpl(lambda path=1: [])}, "takes parameters"),
        ({"graders": hookimpl(lambda: iter(()), wrapper=True)}, "wrapper"),
        ({"graders": hookimpl(lambda: iter(()), hookwrapper=True)}, "wrapper"),
        ({"window_scored": hookimpl(lambda run, secret: None)}, "secret"),
    ],
)
def test_what_a_module_may_not_do_at_registration(blindcast_host: Host, members: Mapping[str, object], said: str) -> None:
    """PV-04, PV-05, P-11: refused whole."""
    module = offering("probes", Offer("calm", "json:dumps", "a probe"), **members)
    with blindcast_host.plug(module):
        assert said in only_error(blindcast_host)
        assert blindcast_host.broken[0].stage == "register"
        assert not blindcast_host.offers("probes")


def test_a_module_without_a_hook_is_refused(blindcast_host: Host) -> None:
    """P-11."""
    with blindcast_host.plug(plugin(graders=lambda: iter(()))):
        assert "no function is marked @hookimpl" in only_error(blindcast_host)


def test_a_class_as_entry_point_is_refused(install: Install) -> None:
    """P-11."""
    install("acme-class", {"acme_class_a": "class Hooks: pass\n"}, entries={"acme": "acme_class_a:Hooks"})
    assert "must name a module" in only_error(Host({}))


def test_a_hook_that_fails_half_way_offers_nothing_and_the_others_stand(install: Install) -> None:
    """PV-06."""
    half = "@hookimpl\ndef graders():\n    yield Offer('half', 'json:dumps', 'a grader')\n    raise RuntimeError('torn')\n"
    install("acme-half", {"acme_half_a": HEAD + half + GOOD_PROBE})
    host = Host({})
    assert only_error(host) == "offer graders RuntimeError: torn"
    assert "half" not in [offered.name for offered in host.offers("graders")]
    assert [offered.status for offered in host.offers("probes")] == ["ok"]


@pytest.mark.parametrize(
    "answer",
    [
        lambda: None,
        lambda: ["capped"],
        lambda: [Offer("a-b", "json:dumps", "x"), Offer("a_b", "json:dumps", "x")],
        lambda: [Offer("Upper", "json:dumps", "x")],
        lambda: [Offer("a", "json", "x")],
        lambda: [Offer("a", "json:dumps", "x" * 73)],
        lambda: [Offer("a", "json:dumps", "x", protocol="Importer")],
        lambda: 1,
        lambda: sys.exit(0),
    ],
)
def test_a_bad_or_repeated_offer_empties_its_hook(blindcast_host: Host, answer: Callable[[], Any]) -> None:
    """P-10, P-12."""
    answer.__name__ = "graders"
    with blindcast_host.plug(plugin(graders=hookimpl(answer))):
        assert blindcast_host.broken[0].stage == "offer"
        assert not blindcast_host.offers("graders")


def test_one_name_may_stand_in_two_protocols_of_a_kind(blindcast_host: Host) -> None:
    """P-10."""
    offers = Offer("lake", "json:dumps", "source", protocol="DataSource"), Offer("lake", "json:loads", "importer", protocol="Importer")
    with blindcast_host.plug(offering("datasources", *offers)):
        assert blindcast_host.find("datasources", "lake").offer.target == "json:dumps"
        assert blindcast_host.find("datasources", "lake", "Importer").offer.target == "json:loads"


def test_each_hook_is_asked_once(blindcast_host: Host) -> None:
    """P-12."""
    calls: list[int] = []

    def graders() -> list[Offer]:
        calls.append(1)
        return [Offer("a", "json:dumps", "x")]

    with blindcast_host.plug(plugin(graders=hookimpl(graders))):
        for _ in range(3):
            blindcast_host.offers("graders")
            blindcast_host.find("graders", "a")
    assert calls == [1]


def test_a_name_of_two_distributions_needs_the_distribution(install: Install) -> None:
    """PV-07."""
    install(
        "Acme_Twin", {"acme_twin_a": HEAD + "@hookimpl\ndef graders():\n    yield Offer('earliness-x-horizon', 'json:dumps', 'a twin')\n"}
    )
    host = Host({})
    assert [offered.status for offered in host.offers("graders")] == ["ambiguous", "ambiguous"]
    with pytest.raises(UsageError) as error:
        host.find("graders", "earliness_x_horizon")
    assert error.value.code == "plugin_ambiguous"
    assert "blindcast/earliness_x_horizon" in error.value.expected
    assert "acme-twin/earliness-x-horizon" in error.value.expected
    assert host.find("graders", "blindcast/earliness_x_horizon").distribution == "blindcast"
    assert host.find("graders", "ACME.twin/earliness_x_horizon").distribution == "acme-twin"


def test_the_second_entry_point_with_one_value_is_a_duplicate(install: Install) -> None:
    """PV-08."""
    install("acme-one", {"acme_shared_a": HEAD + GOOD_PROBE})
    install("acme-two", {}, entries={"again": "acme_shared_a"})
    host = Host({})
    first, second = (p for p in host.plugins if p.entry.distribution.startswith("acme"))
    assert (first.status, second.status) == ("loaded", "refused")
    assert second.why.startswith("duplicate")
    assert [offered.distribution for offered in host.offers("probes")] == ["acme-one"]


def test_an_empty_allowance_lets_nothing_load() -> None:
    """PV-09."""
    host = Host({"BLINDCAST_PLUGINS": ""})
    assert {p.status for p in host.plugins} == {"refused"}
    assert len(host.plugins) >= 5
    with pytest.raises(UsageError) as error:
        host.find("graders", "earliness_x_horizon")
    assert error.value.code == "plugin_unknown"
    assert "blindcast:graders" in error.value.what


@pytest.mark.parametrize("item", ["blindcast:graders", " Blindcast : graders ", "blindcast:graders,blindcast==99"])
def test_an_allowance_may_name_one_entry_point(item: str) -> None:
    """PV-09, P-21."""
    host = Host({"BLINDCAST_PLUGINS": item})
    assert [p.entry.key for p in host.plugins if p.status == "loaded"] == ["blindcast:graders"]
    assert len(host.warnings) == item.count("99")


def test_a_denial_beats_an_allowance() -> None:
    """P-21."""
    host = Host({"BLINDCAST_PLUGINS": "blindcast", "BLINDCAST_DISABLE_PLUGINS": "blindcast:graders"})
    assert not host.offers("graders")
    assert host.offers("anonymizers")


def test_disabling_plugins_leaves_only_blindcast_and_imports_nothing_else(install: Install, tmp_path: Path) -> None:
    """PV-10."""
    install("acme-mark", {"acme_mark_a": f"open({str(tmp_path / 'mark')!r}, 'w').close()\nraise SystemExit\n"})
    host = Host({"BLINDCAST_DISABLE_PLUGINS": "1"})
    assert not host.broken
    assert {p.entry.distribution: p.status for p in host.plugins} == {"acme-mark": "refused", "blindcast": "loaded"}
    assert not (tmp_path / "mark").exists()


def test_an_item_that_matches_nothing_is_a_warning_with_the_nearest_name() -> None:
    """P-21."""
    (warning,) = Host({"BLINDCAST_DISABLE_PLUGINS": "blindcats"}).warnings
    assert "did you mean 'blindcast'?" in warning


def test_a_missing_target_attribute_is_broken_on_use_and_names_what_it_requires(blindcast_host: Host) -> None:
    """PV-11, P-25."""
    with blindcast_host.plug(offering("graders", Offer("gone", "json:no_such", "x", requires=("acme>=2",)))):
        assert blindcast_host.offers("graders")[0].status == "ok"
        assert not blindcast_host.broken
        with pytest.raises(FaultError) as error:
            blindcast_host.build("graders", "gone", {})
        assert error.value.code == "plugin_broken"
        assert "acme>=2" in error.value.do
        assert blindcast_host.broken[0].stage == "resolve"


def test_an_unknown_name_is_a_usage_error_with_the_nearest() -> None:
    """PV-12."""
    with pytest.raises(UsageError) as error:
        Host({}).build("graders", "earliness", {})
    assert (error.value.code, error.value.exit_code) == ("plugin_unknown", 2)
    assert "did you mean 'earliness_x_horizon'?" in error.value.do
    assert "earliness_x_horizon" in error.value.expected


def test_an_unknown_name_in_a_spec_is_a_data_error() -> None:
    """PV-12."""
    with pytest.raises(DataError) as error:
        Host({}).build("graders", "earliness", {}, from_spec=True)
    assert error.value.code == "plugin_unknown"


def test_an_unknown_name_beside_a_broken_plugin_may_be_its(install: Install) -> None:
    """PV-12."""
    install("acme-lost", {"acme_lost_a": "import no_such_thing\n"})
    with pytest.raises(FaultError) as error:
        Host({}).build("graders", "earliness", {})
    assert error.value.code == "plugin_unknown"
    assert "acme-lost:acme_lost_a" in error.value.what
    with pytest.raises(DataError):
        Host({}).build("graders", "earliness", {}, from_spec=True)


def test_without_any_entry_point_the_installation_is_to_blame(blindcast_host: Host) -> None:
    """P-24."""
    with pytest.raises(FaultError) as error:
        blindcast_host.find("graders", "earliness_x_horizon")
    assert error.value.code == "plugin_none"
    assert "pip install -e ." in error.value.do


def capped(outcome: Outcome, curves: Any, *, cap_bps: float = 25.0) -> float:
    moves = outcome.y[None, :] - outcome.y[:-1, None]
    return float((curves * moves.clip(-cap_bps, cap_bps)).sum())


@pytest.mark.parametrize(("cap_bps", "reward_bps"), [(25.0, 55.0), (100, 60.0), (0.0, 0.0)])
def test_a_plain_function_is_a_grader(blindcast_host: Host, cap_bps: float, reward_bps: float) -> None:
    """PV-14, P-32."""
    with blindcast_host.plug(offering("graders", Offer("capped", capped, "x")), "Blindcast.Capped"):
        grader = blindcast_host.build("graders", "capped", {"cap_bps": cap_bps})
        offered = blindcast_host.find("graders", "capped")
        options = blindcast_host.options("graders", "capped", {})
    curves = np.triu(np.ones((2, 3)), 1)
    outcome = Outcome(np.array([0.0, 10.0, 30.0]), 1.0)
    assert grader.grade(outcome, curves) == WindowGrade(reward_bps)
    assert grader.grade(outcome=outcome, curves=curves).reward == reward_bps
    assert (grader.version, grader.unit, grader.total, grader.properties) == (1, "bps", "sum", frozenset())
    assert dict(grader.diagnostics({})) == {}
    assert grade_id("capped", offered.distribution, grader.version, 2, options) == "blindcast-capped/capped/1;G=2;cap_bps=25"


def test_a_plain_function_of_another_kind_is_broken(blindcast_host: Host) -> None:
    """P-32."""
    with blindcast_host.plug(offering("datasources", Offer("pool", capped, "x"))):
        with pytest.raises(FaultError):
            blindcast_host.build("datasources", "pool", {})
        assert blindcast_host.broken[0].stage == "build"


class Picky:
    def __init__(self, fault: str = "") -> None:
        if fault:
            raise {"value": ValueError("no such level"), "type": TypeError("not that"), "key": KeyError("oops")}[fault]


@pytest.mark.parametrize("fault", ["value", "type"])
def test_a_constructors_refusal_is_a_bad_value_with_its_path(blindcast_host: Host, fault: str) -> None:
    """P-31."""
    with blindcast_host.plug(offering("anonymizers", Offer("picky", Picky, "x"))):
        with pytest.raises(DataError) as error:
            blindcast_host.build("anonymizers", "picky", {"fault": fault}, where="anonymizer")
        assert error.value.code == "config_bad_value"
        assert error.value.detail["errors"][0]["path"] == "anonymizer"
        assert not blindcast_host.broken


def test_any_other_error_of_a_constructor_is_the_plugins(blindcast_host: Host) -> None:
    """P-31."""
    with blindcast_host.plug(offering("anonymizers", Offer("picky", Picky, "x"))):
        with pytest.raises(FaultError) as error:
            blindcast_host.build("anonymizers", "picky", {"fault": "key"})
        assert error.value.code == "plugin_broken"
        assert blindcast_host.broken[0].stage == "build"


class Untyped:
    def __init__(self, depth=1) -> None:  # type: ignore[no-untyped-def]  # the fault under test
        self.depth = depth


def test_an_option_without_annotation_is_the_plugins_fault(blindcast_host: Host) -> None:
    """P-31."""
    with blindcast_host.plug(offering("anonymizers", Offer("untyped", Untyped, "x"))), pytest.raises(FaultError, match="no annotation"):
        blindcast_host.build("anonymizers", "untyped", {})


def test_an_unknown_option_of_a_shipped_grader_names_the_nearest() -> None:
    """PV-13."""
    with pytest.raises(DataError) as error:
        Host({}).build("graders", "earliness_x_horizon", {"alpah": 2}, where="grader", from_spec=True)
    assert error.value.code == "config_unknown_key"
    assert "grader.alpah" in error.value.what
    assert "did you mean 'alpha'?" in error.value.do


@pytest.mark.parametrize(
    ("alpha", "code"),
    [("1", "config_wrong_type"), (True, "config_wrong_type"), (float("nan"), "config_wrong_type"), (-1, "config_bad_value")],
)
def test_a_wrong_option_of_a_shipped_grader_is_told_by_its_path(alpha: object, code: str) -> None:
    """PV-13."""
    with pytest.raises(DataError) as error:
        Host({}).build("graders", "earliness_x_horizon", {"alpha": alpha}, where="grader", from_spec=True)
    assert error.value.code == code
    assert error.value.detail["errors"][0]["path"] == "grader.alpha"
    assert code == "config_wrong_type" or "must be >= 0" in error.value.what


def test_a_predictor_is_located_and_nothing_of_it_is_imported(install: Install, tmp_path: Path) -> None:
    """P-25."""
    offers = "yield Offer('one', 'acme_hostile_a.one:Predictor', 'x')\n    yield Offer('two', 'acme_hostile_a.two:Predictor', 'x')\n"
    install(
        "acme-seer",
        {"acme_seer_a": HEAD + f"@hookimpl\ndef predictors():\n    {offers}    yield Offer('gone', 'acme_nowhere:Predictor', 'x')\n"},
    )
    package = tmp_path / "acme_hostile_a"
    (package / "two").mkdir(parents=True)
    for file in ("__init__.py", "one.py", "two/__init__.py", "two/predictor.py"):
        (package / file).write_text("raise SystemExit('imported')\n")
    host = Host({})
    assert host.locate("one") == package / "one.py"
    assert host.locate("acme-seer/two") == package / "two"
    assert "acme_hostile_a" not in sys.modules
    with pytest.raises(FaultError) as error:
        host.locate("gone")
    assert error.value.code == "plugin_broken"


def test_a_host_of_the_fixture_discovers_nothing(blindcast_host: Host) -> None:
    """P-52."""
    with pytest.raises(BlindcastError) as error:
        blindcast_host.discover()
    assert error.value.code == "plugin_discovery_refused"
    with blindcast_host.plug(offering("graders", Offer("a", capped, "x"))):
        assert [offered.name for offered in blindcast_host.offers("graders")] == ["a"]
    assert blindcast_host.offers("graders") == ()


@pytest.mark.parametrize(
    ("options", "tail"),
    [
        ({"alpha": 1.0, "returns": "window_bps"}, ";alpha=1;returns=window_bps"),
        ({"returns": "log_bps", "alpha": 0.5}, ";alpha=0.5;returns=log_bps"),
        ({"alpha": 0.1 + 0.2}, ";alpha=0.30000000000000004"),
        ({"alpha": -0.0}, ";alpha=0"),
        ({"alpha": 3}, ";alpha=3"),
        ({"deep": True}, ";deep=true"),
    ],
)
def test_a_grades_identity_holds_every_option(options: Mapping[str, object], tail: str) -> None:
    """P-33, G-32."""
    assert grade_id("earliness_x_horizon", "blindcast", 1, 15, options) == "earliness_x_horizon/1;G=15" + tail
