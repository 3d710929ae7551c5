"""exp, tanh, uniforms and normals with the same bits on every CPU (data.md S-01).

Only elementwise `+ - * /`, floor, shifts and comparisons, each one numpy call: IEEE fixes their last bit. The last bit of
numpy's and libm's own exp, tanh and log depends on the CPU (AVX-512 or not, FMA or not), so none of them is used here.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from blindcast.records import F64

__all__ = ["U64", "exp", "normals", "tanh", "uniforms"]

U64: TypeAlias = NDArray[np.uint64]

_LOG2_E = 1.4426950408889634
_LN2_HIGH = 0.6931471803691238  # 32 bits: times a small whole number it is exact
_LN2_LOW = 1.9082149292705877e-10
_TAYLOR = tuple(1.0 / f for f in (3628800, 362880, 40320, 5040, 720, 120, 24, 6, 2, 1, 1))  # 1/10! .. 1/0!
_PAIRS = np.uint64(0x0000FFFF0000FFFF)
_HALF = np.uint64(0xFFFFFFFF)
_SUM_MEAN = 131070.0  # of four whole numbers in [0, 65535]
_SUM_SD = 37837.227201605906  # sqrt(4 * (65536^2 - 1) / 12)


def exp(x: F64) -> F64:
    """e^x to 2e-13, x taken into [-700, 700]: Taylor on [-ln2/2, ln2/2], then an exact power of two."""
    x = np.minimum(np.maximum(x, -700.0), 700.0)
    power = np.floor(x * _LOG2_E + 0.5)
    rest = x - power * _LN2_HIGH - power * _LN2_LOW
    total = rest * _TAYLOR[0]
    for term in _TAYLOR[1:-1]:
        total += term
        total *= rest
    total += _TAYLOR[-1]
    scale = ((power.astype(np.int64) + 1023) << 52).view(np.float64)
    return np.asarray(total * scale)


def tanh(x: F64) -> F64:
    """The hyperbolic tangent; exactly 0 at 0 and odd to 2e-13."""
    return np.asarray(1.0 - 2.0 / (exp(2.0 * x) + 1.0))


def uniforms(words: U64) -> F64:
    """Each word's top 53 bits as a number in [0, 1)."""
    return np.asarray((words >> np.uint64(11)).astype(np.float64) * 2.0**-53)


def normals(words: U64) -> F64:
    """One nearly normal number per word, mean 0, sd 1: the sum of its four 16-bit parts (kurtosis 2.7, |z| < 3.5)."""
    pairs = (words & _PAIRS) + ((words >> np.uint64(16)) & _PAIRS)
    total = (pairs & _HALF) + (pairs >> np.uint64(32))
    return np.asarray((total.astype(np.float64) - _SUM_MEAN) / _SUM_SD)
