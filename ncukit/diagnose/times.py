"""Times in sentences."""

from __future__ import annotations

MUCH = 1.1
"""A gain from here on is a factor, below it a percentage."""

_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns"))


def time(nanoseconds: float) -> str:
    """Return a duration [ns] with three significant digits.

    >>> time(25_021_861), time(999_960), time(0)
    ('25.0 ms', '1.00 ms', '0 ns')
    """
    for scale, unit in _UNITS:
        value = nanoseconds / scale
        if abs(value) >= 0.9995:
            digits = max(0, 2 - len(str(int(abs(value) + 0.0005))) + 1)
            return f"{value:.{digits}f} {unit}" if scale > 1 else f"{value:.0f} {unit}"
    return f"{nanoseconds:.0f} ns"


def faster(bound: float | None) -> str:
    """Return in words how much faster something can be at most; None: no bound.

    >>> faster(1.2), faster(73.284), faster(1.0013), faster(1.00001), faster(None)
    ('at most 1.20 times as fast', 'at most 73.3 times as fast', 'at most 0.1 % faster', \
'not measurably faster', 'faster without bound')
    """
    if bound is None:
        return "faster without bound"
    if bound < MUCH:
        gain = 100 * (bound - 1)
        return f"at most {gain:.1f} % faster" if gain >= 0.05 else "not measurably faster"
    return f"at most {times(bound)} times as fast"


def times(factor: float) -> str:
    """Return a factor with three significant digits, or as many as show that it is not 1.

    >>> times(1.2), times(73.284), times(734.2), times(1.0013)
    ('1.20', '73.3', '734', '1.001')
    """
    if 1 < factor < MUCH:
        return f"{factor:.3f}"
    return f"{factor:,.0f}" if factor >= 99.95 else f"{factor:.1f}" if factor >= 9.995 else f"{factor:.2f}"
