"""Quantiles of Student's t, which the standard library lacks."""

from __future__ import annotations

import functools
import math


def cdf(t: float, degrees: int) -> float:
    """Return P(T <= t) for whole ``degrees`` of freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4).

    >>> round(cdf(2.776445, 4), 6), cdf(0.0, 7)
    (0.975, 0.5)
    """
    angle = math.atan2(t, math.sqrt(degrees))
    cosine, sine = math.cos(angle), math.sin(angle)
    odd = degrees % 2
    term = cosine if odd else 1.0
    total = 0.0 if degrees == 1 else term
    for k in range(3 if odd else 2, degrees - 1, 2):
        term *= cosine * cosine * (k - 1) / k
        total += term
    inside = 2 * (angle + sine * total) / math.pi if odd else sine * total
    return 0.5 + inside / 2


@functools.cache
def quantile(probability: float, degrees: int) -> float:
    """Return the t that T stays below with ``probability`` (above 0.5), by bisection.

    >>> round(quantile(0.975, 9), 4), round(quantile(0.975, 1), 3)
    (2.2622, 12.706)
    """
    low, high = 0.0, 1.0
    while cdf(high, degrees) < probability:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if cdf(middle, degrees) < probability else (low, middle)
    return (low + high) / 2
