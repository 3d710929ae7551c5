"""The task spec: a TOML file that `task build` writes and people edit (DESIGN 5)."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal

from attrs import asdict, field, frozen
from attrs.validators import and_, ge, gt, le

from blindcast.config import structure
from blindcast.errors import DataError, UsageError
from blindcast.records import Grid, Limits, Policy
from blindcast.tasks import Split

__all__ = [
    "DEFAULTS",
    "SCHEMA",
    "Budget",
    "IsolationTable",
    "PluginTable",
    "TaskSpec",
    "apply_settings",
    "parse_spec",
    "read_spec",
    "spec_text",
]

SCHEMA: Final = "blindcast.task/1"
MAX_WINDOW_S: Final = 366 * 86_400  # times are int64 ns
MAX_DEPTH: Final = 32  # of tables and lists in one another
MAX_STEPS: Final = 8_000  # a curve, 8 bytes a horizon, goes into one frame of 65,536 (I-50)
_PLUGIN_TABLES: Final = ("source", "anonymizer", "grader")
DEFAULTS: Final[Mapping[str, Mapping[str, str]]] = {"anonymizer": {"use": "bps"}, "grader": {"use": "earliness_x_horizon"}}


@frozen
class PluginTable:
    """One plugin by name; every other key of its table is the plugin's own option (P-31)."""

    use: str
    options: Mapping[str, Any] = field(factory=dict)


@frozen
class GridTable:
    """The `[grid]` table: `window_s` whole seconds cut in `steps`."""

    window_s: int = field(default=900, validator=and_(ge(1), le(MAX_WINDOW_S)))
    steps: int = field(default=15, validator=and_(ge(1), le(MAX_STEPS)))


@frozen
class Budget:
    """The `[budget]` table; wall limits in seconds of the parent's clock."""

    holdout_queries: int = field(default=3, validator=ge(0))
    run_wall_s: float = field(default=900.0, validator=gt(0))
    step_wall_s: float = field(default=10.0, validator=gt(0))
    train_wall_s: float = field(default=300.0, validator=gt(0))


def _is_range(_table: IsolationTable, _attribute: object, value: tuple[int, ...]) -> None:
    if len(value) != 2 or not 1 <= value[0] <= value[1]:
        raise ValueError("must be two uids, lowest and highest")


@frozen
class IsolationTable:
    """The `[isolation]` table: what must hold, sizes in MiB, and how state is carried (G-28)."""

    require: str = "any"
    state: Literal["carry", "fresh"] = "carry"
    uid_range: tuple[int, ...] = field(default=(61000, 61999), validator=_is_range)
    memory_mb: int = field(default=4096, validator=ge(64))
    workspace_mb: int = field(default=512, validator=ge(1))
    state_mb: int = field(default=64, validator=ge(1))


def _is_name(_spec: object, _attribute: object, value: str) -> None:
    if not value.isprintable():
        raise ValueError("must be one line without control characters")


def _is_seed(_spec: object, _attribute: object, value: int) -> None:
    if not 0 <= value < 2**63:
        raise ValueError("must be 0 to 2^63 - 1")


@frozen
class _Tables:
    """A spec as it is written; the plugins' tables are still raw."""

    schema: str
    source: Mapping[str, Any]
    name: str = field(default="task", validator=_is_name)
    seed: int = field(default=0, validator=_is_seed)
    anonymizer: Mapping[str, Any] = DEFAULTS["anonymizer"]
    grader: Mapping[str, Any] = DEFAULTS["grader"]
    grid: GridTable = GridTable()
    split: Split = field(factory=Split)
    budget: Budget = Budget()
    isolation: IsolationTable = IsolationTable()


@frozen
class TaskSpec:
    """A whole task spec, structured; plugins' options are structured by the plugins."""

    name: str
    seed: int
    source: PluginTable
    anonymizer: PluginTable
    grader: PluginTable
    grid: Grid
    split: Split
    budget: Budget
    isolation: IsolationTable

    @property
    def policy(self) -> Policy:
        """What the task asks of its isolation."""
        limits = Limits(
            run_wall_s=self.budget.run_wall_s,
            step_wall_s=self.budget.step_wall_s,
            memory_mb=self.isolation.memory_mb,
            train_wall_s=self.budget.train_wall_s,
            workspace_mb=self.isolation.workspace_mb,
        )
        return Policy(limits, (self.isolation.uid_range[0], self.isolation.uid_range[1]))


def parse_spec(table: Mapping[str, Any], path: str = "task") -> TaskSpec:
    """Structure a spec. Raises DataError `config_*` with path, value and suggestion, or `spec_schema`."""
    if table.get("schema") != SCHEMA:
        raise DataError(
            "spec_schema",
            f"{path}: schema is {table.get('schema')!r}",
            expected=f'schema = "{SCHEMA}"',
            do="`blindcast task build` writes one",
        )
    tables = structure(table, _Tables)
    return TaskSpec(
        name=tables.name,
        seed=tables.seed,
        source=_plugin_table("source", tables.source),
        anonymizer=_plugin_table("anonymizer", tables.anonymizer),
        grader=_plugin_table("grader", tables.grader),
        grid=Grid(tables.grid.window_s, tables.grid.steps),
        split=tables.split,
        budget=tables.budget,
        isolation=tables.isolation,
    )


def _plugin_table(name: str, table: Mapping[str, Any]) -> PluginTable:
    if not isinstance(table.get("use"), str):
        raise DataError(
            "config_wrong_type" if "use" in table else "config_missing_key",
            f"{name}.use is {table.get('use')!r}",
            expected="the name of a plugin, as text",
            do="`blindcast plugins list` shows the names",
            path=f"{name}.use",
        )
    return PluginTable(table["use"], {key: value for key, value in table.items() if key != "use"})


def read_spec(path: Path) -> dict[str, Any]:
    """The raw table of a task file. Raises DataError `spec_missing` or `spec_unreadable`."""
    try:
        return _shallow(tomllib.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        raise DataError(
            "spec_missing",
            f"there is no task file {path}",
            expected="a TOML file",
            do="`blindcast task build --pool POOL -o task.toml` writes one",
        ) from None
    except (ValueError, OSError, RecursionError) as error:
        raise DataError("spec_unreadable", f"{path}: {error}", expected="TOML 1.0, UTF-8", do="mend the line it names") from None


def _shallow(table: dict[str, Any]) -> dict[str, Any]:
    """The table, if it is nested as a spec is. Raises ValueError: a deeper one would end every walk over it."""
    level: list[Any] = [table]
    for _ in range(MAX_DEPTH):
        level = [v for item in level for v in (item.values() if isinstance(item, dict) else item if isinstance(item, list) else ())]
    if level:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
    return table


def apply_settings(table: Mapping[str, Any], settings: Iterable[str]) -> dict[str, Any]:
    """The table with each `TABLE.KEY=VALUE` put in; a value is TOML, or plain text where it is none."""
    result: dict[str, Any] = {key: dict(value) if isinstance(value, Mapping) else value for key, value in table.items()}
    for setting in settings:
        key, equals, text = setting.partition("=")
        parts = key.strip().split(".")
        if not equals or not all(parts) or len(parts) > 2:
            raise UsageError(
                "bad_setting", f"--set {setting!r} names no key", expected="TABLE.KEY=VALUE", do="for example --set split.targets=10"
            )
        place = result
        if len(parts) == 2:
            place = result.setdefault(parts[0], {})
            if not isinstance(place, dict):
                raise UsageError(
                    "bad_setting", f"--set {setting!r}: {parts[0]} is no table", expected="TABLE.KEY=VALUE", do="see DESIGN: task spec"
                )
        place[parts[-1]] = _value(text.strip())
    return result


def _value(text: str) -> Any:
    try:
        return _shallow(tomllib.loads(f"value = {text}"))["value"]
    except (ValueError, RecursionError):
        return text


def spec_text(spec: TaskSpec) -> str:
    """The spec as the TOML file that people edit, every default spelt out."""
    lines = [f'schema = "{SCHEMA}"', f"name = {_toml(spec.name)}", f"seed = {spec.seed}"]
    tables: dict[str, Mapping[str, Any]] = {}
    for name in _PLUGIN_TABLES:
        plugin: PluginTable = getattr(spec, name)
        tables[name] = {"use": plugin.use, **plugin.options}
    tables["grid"] = {"window_s": spec.grid.window_s, "steps": spec.grid.steps}
    tables |= {name: asdict(getattr(spec, name)) for name in ("split", "budget", "isolation")}
    for name, table in tables.items():
        lines += ["", f"[{name}]", *(f"{_key(key)} = {_toml(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)} = {_toml(item)}" for key, item in value.items()) + "}"
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")  # the one character that JSON lets stand


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _toml(key)
