"""Numbers inside sentences: three significant digits, one unit, a real minus sign."""

from __future__ import annotations

import math

NARROW = "\u202f"
"""Narrow no-break space between a number and its unit."""

LARGEST = 1e14
"""From here on a count is written with a power of ten."""

_SCALED = {"byte": "B", "byte/s": "B/s", "hz": "Hz", "s": "s", "FLOP": "FLOP", "FLOP/s": "FLOP/s"}
_PREFIXES = {-9: "n", -6: "µ", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P"}


def short(value: float | int | str | None, unit: str = "") -> str:
    """Return ``value`` [``unit``] for a sentence.

    >>> short(91.53, "%"), short(8.19e11, "byte/s"), short(6.134e-3, "s"), short(32.0)
    ('91.5\\u202f%', '819\\u202fGB/s', '6.13\\u202fms', '32')
    """
    if value is None or isinstance(value, str):
        return value or "unknown"
    if not math.isfinite(value):
        return "unknown"
    if unit == "%":
        return f"{_percent(value)}{NARROW}%"
    if unit in _SCALED:
        exponent = 0 if value == 0 else max(-9, min(15, 3 * math.floor(math.log10(abs(value)) / 3 + 1e-12)))
        return f"{digits(value / 10**exponent)}{NARROW}{_PREFIXES[exponent]}{_SCALED[unit]}"
    return digits(value)


def _percent(value: float) -> str:
    """Return ``value`` [%] with one digit; what is not 0 never reads 0.

    >>> _percent(0.0), _percent(0.01), _percent(99.96)
    ('0', '< 0.1', '100.0')
    """
    if value and abs(value) < 0.05:
        return "< 0.1" if value > 0 else "> −0.1"
    return f"{value:.1f}".replace("-", "−") if value else "0"


def digits(value: float) -> str:
    """Return ``value`` with three significant digits, whole from 100 up, large counts with k, M, G.

    >>> digits(0.2883), digits(13_326), digits(65_000_000.0), digits(1.0), digits(1e300)
    ('0.288', '13,326', '65M', '1', '1e+300')
    """
    if value == 0:
        return "0"
    size = abs(value)
    if size >= LARGEST:
        return f"{value:.3g}".replace("-", "−")
    if size >= 100_000:
        for power, letter in ((9, "G"), (6, "M"), (3, "k")):
            if size >= 10**power:
                return digits(value / 10**power) + letter
    text = f"{value:,.0f}" if size >= 100 else f"{value:.3g}"
    return text.replace("-", "−")


def listed(items: list[str]) -> str:
    """Return ``items`` as a list in a sentence.

    >>> listed(["registers", "shared memory"])
    'registers and shared memory'
    """
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def sentence(text: str) -> str:
    """Return ``text`` with a capital first letter.

    >>> sentence("shared memory is full")
    'Shared memory is full'
    """
    return text[:1].upper() + text[1:]
