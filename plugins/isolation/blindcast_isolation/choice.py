"""Choices made by rule: the backend, and how `fresh` windows start. The rules stand in the core, where runs obey them."""

from __future__ import annotations

from blindcast.backends import choose
from blindcast.freshness import STATE_BYTES, fresh_mode

__all__ = ["STATE_BYTES", "choose", "fresh_mode"]
