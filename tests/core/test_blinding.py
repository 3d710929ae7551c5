"""Salts, and the proof of causality (data.md DA-02 and DA-06)."""

from __future__ import annotations

import hmac
import stat
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from blindcast.blinding import check_causal, salt_of, secret_of
from blindcast.errors import IntegrityError
from blindcast.records import Blinded, Grid, Window

GRID = Grid(window_s=4, steps=4)
START_NS = 10_000_000_000


def a_window() -> Window:
    """Four steps of one second, a row each half second and one exactly on each knot, a print each 0.7 s."""
    book = pa.table({"ts_ns": pa.array([START_NS + k * 500_000_000 for k in range(8)]), "price": pa.array(range(8))})
    trades = pa.table({"ts_ns": pa.array([START_NS + k * 700_000_000 for k in range(5)]), "price": pa.array(range(5))})
    return Window("w", START_NS, GRID, np.array([0.0, 1.0, 3.0, 2.0, 5.0]), book, trades, book[:1], "1", "1")


class Plain:
    """Shows each row's place and value."""

    def blind(self, window: Window, salt: bytes) -> Blinded:
        tables = [self.shown(table, window) for table in (window.book, window.trades)]
        knots = window.grid.knots_ns(window.start_ns)
        until = [np.searchsorted(np.array(table["ts_ns"]), knots) for table in (window.book, window.trades)]
        return Blinded(("t", "a"), tables[0], tables[1], self.path(window), until[0], until[1])

    def shown(self, table: pa.Table, window: Window) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        columns = [np.array(table["ts_ns"]) - window.start_ns, np.array(table["price"])]
        return np.stack(columns, axis=1).astype(np.float32)

    def path(self, window: Window) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        return window.y


class Centred(Plain):
    """Takes the mean of the whole window away."""

    def shown(self, table: pa.Table, window: Window) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        return super().shown(table, window) - np.float32(np.array(table["price"]).mean())


class Scaled(Plain):
    """Divides the path by how far it gets."""

    def path(self, window: Window) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        return window.y / max(1.0, float(np.abs(window.y).max()))


class Padded(Plain):
    """Counts, at each knot, one row more where there is one."""

    def blind(self, window: Window, salt: bytes) -> Blinded:
        shown = super().blind(window, salt)
        more = np.minimum(shown.ladder_until + 1, len(shown.ladder))
        return Blinded(shown.columns, shown.ladder, shown.events, shown.y, more, shown.events_until)


@pytest.mark.parametrize("anchor", [1, 2, 3])
def test_an_anonymizer_that_looks_back_alone_is_causal(anchor: int) -> None:
    """DA-02."""
    check_causal(Plain(), a_window(), bytes(32), anchor)  # type: ignore[arg-type]  # has no `strength`; blinding asks for none


@pytest.mark.parametrize("kind", [Centred, Scaled, Padded])
def test_an_anonymizer_that_looks_ahead_is_caught(kind: Callable[[], Plain]) -> None:
    """DA-02: `anonymizer_not_causal`, exit 4."""
    with pytest.raises(IntegrityError) as caught:
        check_causal(kind(), a_window(), bytes(32), 2)  # type: ignore[arg-type]  # as above
    assert (caught.value.code, caught.value.exit_code) == ("anonymizer_not_causal", 4)


def test_a_cut_at_the_end_proves_nothing_and_is_not_made() -> None:
    check_causal(Centred(), a_window(), bytes(32), 4)  # type: ignore[arg-type]  # as above


def test_the_window_is_left_as_it_was() -> None:
    window = a_window()
    y, book = window.y.tobytes(), window.book
    check_causal(Plain(), window, bytes(32), 2)  # type: ignore[arg-type]  # as above
    assert window.y.tobytes() == y
    assert window.book is book
    assert window.y.flags.writeable


def test_a_basic_anonymizer_gets_32_zero_bytes() -> None:
    """DA-06."""
    assert salt_of(None, "identity", 0, 1) == bytes(32)


def test_a_salt_is_keyed_by_the_homes_secret() -> None:
    """DA-06: HMAC-SHA256(key, start_ns), key = HMAC-SHA256(secret, identity + seed)."""
    key = hmac.digest(b"s" * 32, b"identity7", "sha256")
    assert salt_of(b"s" * 32, "identity", 7, 1_000) == hmac.digest(key, b"1000", "sha256")


def test_a_salt_follows_the_window_and_the_task() -> None:
    """G-28, DA-06."""
    calls = [(b"s" * 32, "i", 0, 1), (b"t" * 32, "i", 0, 1), (b"s" * 32, "j", 0, 1), (b"s" * 32, "i", 1, 1), (b"s" * 32, "i", 0, 2)]
    assert len({salt_of(*call) for call in calls}) == 5
    assert salt_of(*calls[0]) == salt_of(*calls[0])


def test_a_home_has_one_secret_that_only_its_owner_reads(tmp_path: Path) -> None:
    """DA-06: 32 bytes, mode 0600."""
    secret = secret_of(tmp_path / "home")
    assert len(secret) == 32
    assert secret_of(tmp_path / "home") == secret != secret_of(tmp_path / "other")
    assert stat.S_IMODE((tmp_path / "home" / "salt.key").stat().st_mode) == 0o600
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["salt.key"]
