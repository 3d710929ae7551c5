"""Portable arithmetic: close to the real functions, and exact where it says so (data.md S-01)."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import PCG64

from blindcast_datasources.portable import exp, normals, tanh, uniforms


def test_exp_is_the_exponential_to_a_few_parts_in_ten_to_the_thirteen() -> None:
    x = np.linspace(-600, 600, 20_001)
    np.testing.assert_allclose(exp(x), np.exp(x), rtol=1e-12)


def test_exp_of_zero_is_one_and_far_values_stay_finite() -> None:
    assert exp(np.array([0.0])) == 1.0
    assert np.isfinite(exp(np.array([-1e9, 1e9]))).all()


def test_tanh_of_zero_is_zero_so_a_fair_coin_stays_fair() -> None:
    """S-04."""
    assert tanh(np.array([0.0, -0.0])).tolist() == [0.0, 0.0]


def test_tanh_is_the_hyperbolic_tangent() -> None:
    x = np.linspace(-30, 30, 5_001)
    np.testing.assert_allclose(tanh(x), np.tanh(x), atol=1e-12)


def test_uniforms_fill_the_unit_interval_without_its_end() -> None:
    words = np.array([0, 2**63, 2**64 - 1], dtype=np.uint64)
    low, middle, high = uniforms(words).tolist()
    assert (low, middle) == (0.0, 0.5)
    assert 1 - 2**-50 < high < 1


def test_normals_have_mean_nought_and_deviation_one() -> None:
    z = normals(PCG64(3).random_raw(200_000))
    assert abs(z.mean()) < 0.01
    assert z.std() == pytest.approx(1, abs=0.01)
    assert np.corrcoef(z[1:], z[:-1])[0, 1] == pytest.approx(0, abs=0.01)


def test_a_normal_is_the_sum_of_the_four_parts_of_its_word() -> None:
    word = np.array([0x0001_0002_0003_0004], dtype=np.uint64)
    assert normals(word).tolist() == [(10 - 131070.0) / 37837.227201605906]
