"""The table as people and programs read it."""

from __future__ import annotations

from typing import Any

from blindcast_isolation.corpus import table


def row(id_: str, verdict: str, expected: str, ok: bool) -> dict[str, Any]:
    variants = [{"name": "open", "verdict": verdict, "why": "gave away: raw"}]
    return {
        "id": id_,
        "name": "read",
        "verdict": verdict,
        "expected": expected,
        "ok": ok,
        "variants": variants,
        "curves": "",
        "took_s": 0.1,
    }


def column(*rows: dict[str, Any], reason: str = "", unfiltered: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    return {"available": not reason, "reason": reason, "rows": list(rows), "unfiltered": list(unfiltered)}


def test_a_cell_that_differs_is_shown_with_what_was_expected_and_its_variants() -> None:
    """K-06, I-91."""
    text = table.text({"privdrop": column(row("A-01", "M", "B", False)), "hook": column(row("A-01", "D", "D", True))})
    assert text.splitlines()[:2] == ["attack     privdrop  hook", "A-01 read  M!=B      D"]
    assert "A-01 read under privdrop: M, expected B\n    M open: gave away: raw" in text


def test_a_backend_that_is_not_available_has_no_cells_and_is_named_with_its_reason() -> None:
    """I-91."""
    columns = {"privdrop": column(row("A-01", "B", "B", True)), "bwrap": column(reason="there is no bwrap here")}
    assert "A-01 read  B         -" in table.text(columns)
    assert "bwrap: not available: there is no bwrap here" in table.text(columns)
    assert table.is_as_expected(columns)


def test_a_better_cell_fails_too() -> None:
    """K-06: better or worse."""
    assert not table.is_as_expected({"hook": column(row("A-02", "B", "M", False))})


def test_the_layers_behind_seccomp_are_a_second_table() -> None:
    """K-08."""
    columns = {"privdrop": column(row("A-25", "B", "B", True), unfiltered=(row("A-25", "M", "B", False),))}
    assert "without seccomp  privdrop\nA-25 read        M!=B" in table.text(columns)
    assert not table.is_as_expected(columns)


def test_the_digest_is_of_cells_alone() -> None:
    """I-91: times and words are not in the card."""
    one, other = row("A-01", "B", "B", True), row("A-01", "B", "B", True) | {"took_s": 9.0, "variants": []}
    assert table.digest({"privdrop": column(one)}) == table.digest({"privdrop": column(other)})
    assert table.digest({"privdrop": column(one)}) != table.digest({"privdrop": column(row("A-01", "K", "B", False))})
