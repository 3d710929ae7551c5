"""What is left is the difference of two pictures (K-05)."""

from __future__ import annotations

import pytest

from blindcast_isolation.corpus.leftovers import Picture, grown, left


def picture(processes: str = "", files: str = "", own: tuple[int, int, float] = (10, 3, 100.0), used_mib: float = 0.0) -> Picture:
    return Picture({"process": frozenset(processes.split()), "file": frozenset(files.split())}, {"server": own}, used_mib)


def test_only_what_is_new_is_left() -> None:
    """K-05."""
    assert left(picture("1 2", "/tmp/a"), picture("2 3", "/tmp/a")) == {"process": frozenset({"3"})}
    assert left(picture("1", "/tmp/a"), picture("1", "")) == {}


@pytest.mark.parametrize(
    ("own", "used_mib", "told"),
    [
        ((10, 3, 115.0), 1.9, 0),
        ((11, 3, 100.0), 0.0, 1),
        ((10, 4, 100.0), 0.0, 1),
        ((10, 3, 116.0), 0.0, 1),
        ((10, 3, 100.0), 2.0, 1),
        ((9, 2, 200.0), 5.0, 3),
    ],
)
def test_a_server_that_grew_is_told(own: tuple[int, int, float], used_mib: float, told: int) -> None:
    """K-05: descriptors and threads as before, memory < +16 MiB; A-13: the disk < 2 MiB."""
    assert len(grown(picture(), picture(own=own, used_mib=used_mib))) == told


def test_a_renewed_zygote_is_not_compared_with_the_old_one() -> None:
    """I-32: a zygote may be renewed; a process that was not there before has nothing to compare with."""
    before, after = picture(), Picture(picture().things, {"server": (10, 3, 100.0), "zygote": (5, 1, 90.0)})
    assert grown(before, after) == []
