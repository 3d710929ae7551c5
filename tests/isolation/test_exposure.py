"""Raw roots that a child could reach (isolation.md I-21, I-23)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from blindcast.errors import DeniedError
from blindcast.records import Policy
from blindcast_isolation.exposure import exposed, open_roots, refuse_exposed


@pytest.fixture
def bound(tmp_path: Path) -> Path:
    folder = tmp_path / "prefix"
    (folder / "lib").mkdir(parents=True)
    return folder


def test_a_root_at_or_below_a_bound_path_is_exposed(bound: Path) -> None:
    """I-23."""
    assert exposed([bound], [bound]) == ((str(bound), str(bound)),)
    assert exposed([bound / "lib"], [bound]) == ((str(bound / "lib"), str(bound)),)
    assert exposed([bound / "lib" / "not-yet"], ["/usr/lib", bound]) == ((str(bound / "lib" / "not-yet"), str(bound)),)


def test_beside_or_above_it_is_not(bound: Path, tmp_path: Path) -> None:
    """I-23: the submission lies below BLINDCAST_HOME."""
    assert exposed([tmp_path, tmp_path / "prefix-data", "/"], [bound]) == ()


def test_a_link_hides_nothing(bound: Path, tmp_path: Path) -> None:
    """I-23: on either side."""
    pool = tmp_path / "pool"
    pool.symlink_to(bound / "lib")
    assert exposed([pool], [bound]) == ((str(pool), str(bound)),)
    alias = tmp_path / "alias"
    alias.symlink_to(bound)
    assert exposed([bound / "lib"], [alias]) == ((str(bound / "lib"), str(alias)),)
    assert exposed([alias / "lib"], [bound]) == ((str(alias / "lib"), str(bound)),)
    assert exposed([bound / "lib" / ".." / "x"], [bound]) == ((str(bound / "lib" / ".." / "x"), str(bound)),)


def test_a_pool_whose_files_are_links_is_looked_into(bound: Path, tmp_path: Path) -> None:
    """I-23."""
    pool = tmp_path / "pool"
    pool.mkdir()
    (bound / "lib" / "trades").touch()
    (pool / "trades").symlink_to(bound / "lib" / "trades")
    assert exposed([pool], [bound]) == ((str(pool), str(bound)),)


def test_an_exposed_root_is_refused_with_its_names(bound: Path) -> None:
    """I-23: exit 5."""
    refuse_exposed(Policy(raw_roots=(Path("/nowhere/pool"),)), [bound])
    with pytest.raises(DeniedError) as caught:
        refuse_exposed(Policy(raw_roots=(bound / "lib",)), [str(bound)])
    assert (caught.value.code, caught.value.exit_code) == ("raw_root_exposed", 5)
    assert caught.value.detail == {"raw_root": str(bound / "lib"), "bound": str(bound)}


@pytest.mark.parametrize(("mode", "count"), [(0o700, 0), (0o750, 1), (0o701, 1), (0o500, 0)])
def test_a_root_open_to_others_is_warned_of(bound: Path, mode: int, count: int) -> None:
    """I-21."""
    bound.chmod(mode)
    assert len(open_roots([bound, "/nowhere"])) == count
    bound.chmod(0o700)


def test_a_file_is_looked_at_too_and_so_is_its_owner(bound: Path) -> None:
    """I-21."""
    file = bound / "ledger.sqlite"
    file.touch(0o600)
    file.chmod(0o600)
    assert open_roots([file]) == []
    file.chmod(0o644)
    assert "chmod 0600" in open_roots([file])[0]
    if os.geteuid() == 0:
        os.chown(file, 12_345, -1)
        assert any("12345" in line for line in open_roots([file]))
