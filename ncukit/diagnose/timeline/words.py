"""Times in sentences."""

from __future__ import annotations

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
