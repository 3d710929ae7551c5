"""What a grade may be believed: statistics over windows (grading.md section 7)."""

from collections.abc import Callable
from functools import lru_cache
from math import log
from operator import index
from typing import SupportsIndex

__all__ = ["expected_best"]


def expected_best(n: SupportsIndex) -> float:
    """m_N, the mean of the largest of `n` standard normals (G-66): the integral of x*N*phi*Phi^(N-1), m_1 = 0.

    Raises ValueError unless `n` is an integer >= 1, Python's or numpy's.
    """
    count = 0 if isinstance(n, bool) or not isinstance(n, SupportsIndex) else index(n)
    if count < 1:
        raise ValueError(f"a number of trials is an integer >= 1, got {n!r}")
    return 0.0 if count == 1 else _mean_largest(count)


@lru_cache(maxsize=256)
def _mean_largest(n: int) -> float:
    """The integral by parts: 1 - Phi^N over x > 0 less Phi^N over x < 0."""
    import numpy as np
    from scipy.integrate import quad
    from scipy.special import log_ndtr, ndtri_exp

    def at_most(x: float) -> float:
        return float(n * log_ndtr(x))  # log of Phi(x)^N

    def integral(of: Callable[[float], float], low: float, high: float) -> float:
        return float(quad(of, low, high, epsabs=1e-13, epsrel=1e-13, limit=200)[0])

    middle = float(ndtri_exp(log(0.5) / n))  # the median of the largest: the integrand falls there
    above = sum(integral(lambda x: -float(np.expm1(at_most(x))), low, low + span) for low, span in ((0.0, middle), (middle, 10.0)))
    below = sum(integral(lambda x: float(np.exp(at_most(x))), low, high) for low, high in ((-40.0, -3.0), (-3.0, 0.0)))
    return above - below
