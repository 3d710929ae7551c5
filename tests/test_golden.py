"""Rewards and chain heads of the small task, to the last bit: promised on every machine for these predictors (G-15, PF-05)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from blindcast.testing.runner import Said

GOLDEN = {
    "flat": ("0x0.0p+0", "667fb53282735942e91350198cd2878934d4bbe8f6a6be7cdd8fa38bc3edb15b"),
    "always-long": ("0x1.cc967487f6cbbp+6", "347400feb3b3f7e4d40cc23da194794bfc1faf2887bfca9ae3a6b1a78d9f0db1"),
    "always-short": ("-0x1.cc967487f6cbbp+6", "70856a1e4bf2959fa75aabd2e39f97e4c9891fd4030a8fb719b1ada171cc4bb9"),
    "persistence": ("0x1.490683c245f3fp+5", "ef4a5e7e08678b932b6c8d7092b462230340d71d18e1cbaf7e6a64436b992fa0"),
    "imbalance": ("0x1.489919c2c5710p+4", "f202f88fe6072f0f18d1273a8dc4a2fac4038ad14d24a7d91d62c89601d575f0"),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_a_promised_predictor_earns_the_same_bits_everywhere(blindcast_cli: Callable[..., Said], blindcast_task: Path, name: str) -> None:
    """The reward and the head of the chain, which holds every revealed row and every curve."""
    said = blindcast_cli("run", name, "--task", blindcast_task, "--json")
    assert said.exit_code == 0, said.stderr
    assert (said.data["reward_bps"].hex(), said.data["chain_head"]) == GOLDEN[name]
