"""Every shipped predictor passes all its checks, the cheater too: it finds nothing (plugins.md P-53)."""

from __future__ import annotations

import pytest

from blindcast.host import Host
from blindcast.testing.predictors import examine

HOST = Host({})


@pytest.mark.parametrize("name", [offer.name for offer in HOST.offers("predictors")])
def test_a_shipped_predictor(name: str) -> None:
    """PR-01 to PR-07, on one stage as `blindcast check` runs them."""
    results = examine(HOST.locate(name), HOST, {})
    assert {id_: detail for id_, _, result, detail, _ in results if result != "pass"} == {}
    assert [id_ for id_, *_ in results] == [f"PR-0{k}" for k in range(1, 8)]
