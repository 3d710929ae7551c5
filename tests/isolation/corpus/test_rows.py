"""The corpus as data: complete, and as attacks.md has it."""

from __future__ import annotations

import ast

import pytest

from blindcast.errors import UsageError
from blindcast_isolation.corpus.asserts import CHECKS
from blindcast_isolation.corpus.rows import ATTACKS, QUICK, Row, find, made, plain, rows

CELLS = {  # attacks.md sections 2 to 8, columns P N L H
    "A-01": "BBBD",
    **dict.fromkeys(("A-02", "A-03", "A-04", "A-05", "A-07", "A-10", "A-11", "A-12", "A-14", "A-15", "A-16", "A-18", "A-20"), "BBBM"),
    **dict.fromkeys(("A-22", "A-23", "A-24", "A-25", "A-27", "A-28", "A-39"), "BBBM"),
    "A-06": "BBMM",
    "A-08": "HHHH",
    "A-09": "bbbb",
    "A-13": "BBBB",
    "A-17": "HHHM",
    "A-19": "BBBB",
    "A-21": "BBBB",
    "A-26": "BBBB",
    "A-29": "bbbb",
    **dict.fromkeys(("A-30", "A-31", "A-32", "A-33", "A-34"), "KKKK"),
    "A-35": "bbbb",
    **dict.fromkeys(("A-36", "A-37", "A-38"), "HHHH"),
    **dict.fromkeys((f"C-0{i}" for i in range(1, 7)), "HHHH"),
}
NAMES = (
    "read_raw_open read_raw_ctypes read_raw_pyarrow read_raw_odd_doors list_raw stat_oracle guess_names old_window write_view "
    "hardlink_keep tmp_persist ipc_persist disk_fill environ parent_mem parent_fd census signal_parent setuid_hunt "
    "ld_preload_env tty_inject net_tcp_udp net_by_uring spawn_all_ways fork_bomb thread_bomb ns_play kernel_surface mem_bomb "
    "cpu_spin sleep_stop flood_stdout flood_frames crash pickle_payload monkeypatch_host thread_state allowlist_walk "
    "audit_off constant rolling lightgbm sklearn scipy arrow"
).split()


def test_every_row_of_the_page_has_its_data_row_and_its_cells() -> None:
    """K-06, attacks.md."""
    assert {row.id: row.cells for row in rows()} == CELLS
    assert [row.name for row in rows()] == NAMES


def test_every_row_has_its_file_and_every_file_its_row() -> None:
    """attacks.md: one `.py` file a row."""
    files = {path.name for path in ATTACKS.glob("*.py")} - {"toolbox.py"}
    assert {row.file for row in rows()} == files
    assert all(row.file == f"{row.id.lower().replace('-', '')}_{row.name}.py" for row in rows())


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.id)
def test_an_attack_says_what_it_does_and_names_its_variants(row: Row) -> None:
    """K-03: each variant's outcome is listed."""
    assert ast.get_docstring(ast.parse(row.text))
    assert row.is_control or row.variants
    assert len(set(row.variants)) == len(row.variants)
    assert not row.asserts or row.asserts in CHECKS
    assert row.stopped_by or row.is_control


def test_a_row_survives_the_way_into_the_namespace() -> None:
    """K-07: the source goes with it."""
    for row in rows():
        (again,) = made([plain(row)])
        assert again.text == row.text
        assert again.cells == row.cells


def test_the_quick_set_is_ten_attacks() -> None:
    """attacks.md: the ordinary test command runs these."""
    assert len(QUICK) == len(find(QUICK)) == 10


def test_an_unknown_attack_is_a_usage_error() -> None:
    """I-91."""
    with pytest.raises(UsageError) as caught:
        find(["A-99"])
    assert caught.value.code == "attack_unknown"
