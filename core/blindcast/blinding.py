"""Salts, and the proof that an anonymizer looks at nothing that comes later (data.md DA-02, DA-06)."""

from __future__ import annotations

import hmac
import os
import secrets
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve

from blindcast.contracts import Anonymizer
from blindcast.errors import IntegrityError
from blindcast.records import Window, read_only

__all__ = ["check_causal", "salt_of", "secret_of"]


def secret_of(home: Path) -> bytes:
    """The 32 secret bytes of a home, made on first need, mode 0600."""
    path = home / "salt.key"
    if not path.exists():
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        aside = home / f".salt.key.{secrets.token_hex(4)}"
        with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(secrets.token_bytes(32))
        try:
            os.link(aside, path)  # the first one wins
        except FileExistsError:
            pass
        finally:
            aside.unlink()
    return path.read_bytes()


def salt_of(secret: bytes | None, identity: str, seed: int, start_ns: int) -> bytes:
    """A window's salt: 32 zero bytes for a basic anonymizer, else keyed by the home's secret (DA-06)."""
    if secret is None:
        return bytes(32)
    key = hmac.digest(secret, f"{identity}{seed}".encode(), "sha256")
    return hmac.digest(key, str(start_ns).encode(), "sha256")


def check_causal(anonymizer: Anonymizer, window: Window, salt: bytes, anchor: int) -> None:
    """Blind the window with all after `anchor` cut away, and compare what that anchor sees, byte for byte (DA-02).

    Raises IntegrityError `anonymizer_not_causal`.
    """
    if window.grid.steps <= anchor:
        return
    knot_ns = int(window.grid.knots_ns(window.start_ns)[anchor])
    y = np.where(np.arange(len(window.y)) <= anchor, window.y, window.y[anchor])
    read_only(y)
    before = evolve(
        window,
        y=y,
        book=_earlier(window.book, knot_ns),
        trades=_earlier(window.trades, knot_ns),
    )
    whole, cut = anonymizer.blind(window, salt), anonymizer.blind(before, salt)
    rows, prints = int(whole.ladder_until[anchor]), int(whole.events_until[anchor])
    is_causal = (
        int(cut.ladder_until[anchor]) == rows
        and int(cut.events_until[anchor]) == prints
        and whole.ladder[:rows].tobytes() == cut.ladder[:rows].tobytes()
        and whole.events[:prints].tobytes() == cut.events[:prints].tobytes()
        and whole.y[: anchor + 1].tobytes() == cut.y[: anchor + 1].tobytes()
    )
    if not is_causal:
        raise IntegrityError(
            "anonymizer_not_causal",
            f"what the anonymizer shows at anchor {anchor} depends on what comes after it",
            expected="rows that depend on the opening, the salt and what lies before them alone (DA-02)",
            do="use another anonymizer; `blindcast plugins doctor` names the check that fails (AN-02)",
        )


def _earlier(table: pa.Table, knot_ns: int) -> pa.Table:
    """The rows before a knot, in their order."""
    return table.filter(pc.call_function("less", [table["ts_ns"], knot_ns]))
