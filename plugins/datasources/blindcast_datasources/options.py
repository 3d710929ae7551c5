"""Checks of the options that all importers share (DI-02), for attrs fields."""

from __future__ import annotations

from typing import Any

from attrs.validators import and_, ge, instance_of, le

from blindcast_datasources.columns import DEPTH
from blindcast_datasources.lattice import step_of
from blindcast_datasources.states import RowPolicy
from blindcast_datasources.times import check_zone

__all__ = ["is_depth", "is_rows", "is_step", "is_zone"]

is_depth = and_(instance_of(int), ge(1), le(DEPTH))


def is_step(_importer: object, attribute: Any, value: str | int | float | None) -> None:
    """A tick or lot is a positive number, or None. Raises ValueError."""
    step_of(value, attribute.name)


def is_rows(_importer: object, _attribute: object, value: str) -> None:
    """`rows` is change, message or grid:MS. Raises ValueError."""
    _ = RowPolicy(value).grid_ns


def is_zone(_importer: object, _attribute: object, value: str) -> None:
    """`tz` names a time zone. Raises ValueError."""
    check_zone(value)
