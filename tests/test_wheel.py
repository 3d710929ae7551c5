"""What the wheel leg tests is the wheel (plugins.md P-81)."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path

import pytest

PACKAGES = (
    "blindcast",
    "blindcast_anonymizers",
    "blindcast_datasources",
    "blindcast_graders",
    "blindcast_isolation",
    "blindcast_predictors",
)


@pytest.mark.skipif(os.environ.get("BLINDCAST_TEST_WHEEL") != "1", reason="set BLINDCAST_TEST_WHEEL=1 where a wheel is installed")
@pytest.mark.parametrize("name", PACKAGES)
def test_the_package_comes_from_site_packages(name: str) -> None:
    """P-81."""
    file = import_module(name).__file__
    assert file is not None
    assert "site-packages" in Path(file).parts
