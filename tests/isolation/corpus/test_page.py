"""docs/attacks.md is made from the data."""

from __future__ import annotations

from pathlib import Path

import pytest

from blindcast_isolation.corpus.page import page
from blindcast_isolation.corpus.rows import rows


def test_the_page_of_attacks_is_not_stale() -> None:
    """I-91: the docs table is generated from the expected cells."""
    found = next((folder / "docs" / "attacks.md" for folder in Path(__file__).parents if (folder / "docs" / "attacks.md").is_file()), None)
    if found is None:
        pytest.skip("not in a checkout: nothing to look at")
    assert found.read_text(encoding="utf-8") == page(rows()), "run scripts/attacks"


def test_every_miss_is_listed_under_how_to_cheat_here() -> None:
    """K-02: M is printed in the docs."""
    cheats = page(rows()).partition("## How to cheat here")[2]
    assert all(f"{row.id} `{row.name}`" in cheats for row in rows() if "M" in row.cells)
