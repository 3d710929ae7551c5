"""One uid per run."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from blindcast.errors import DeniedError
from blindcast_isolation.slots import take_slot


def test_the_lowest_free_uid_is_taken_and_comes_back(tmp_path: Path) -> None:
    """I-16."""
    first, second = take_slot((64100, 64199), tmp_path), take_slot((64100, 64199), tmp_path)
    assert (first.uid, second.uid) == (64100, 64101)
    first.release()
    again = take_slot((64100, 64199), tmp_path)
    assert again.uid == 64100
    again.release()
    second.release()


def test_a_uid_that_somebody_has_or_runs_under_is_skipped(tmp_path: Path) -> None:
    """I-16."""
    known = max((entry.pw_uid for entry in pwd.getpwall() if 0 < entry.pw_uid < 65_534), default=1)
    slot = take_slot((known, known + 1), tmp_path)
    assert slot.uid == known + 1
    slot.release()
    with pytest.raises(DeniedError):
        take_slot((os.getuid(), os.getuid()), tmp_path)


def test_no_slot_left_is_an_error(tmp_path: Path) -> None:
    """I-16: exit 5."""
    slot = take_slot((64150, 64150), tmp_path)
    with pytest.raises(DeniedError) as caught:
        take_slot((64150, 64150), tmp_path)
    assert (caught.value.code, caught.value.exit_code) == ("uid_slots_spent", 5)
    slot.release()
