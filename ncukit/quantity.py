"""Numbers as a person reads them: three significant digits, one unit, a real minus sign.

Values come in base SI, as the model keeps them (seconds, byte, byte/s, hz, FLOP/s, %).  Traffic and rates are
scaled in powers of ten, capacities in powers of two, shared memory per block not at all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

Number = float | int

NARROW = "\u202f"
"""Narrow no-break space: stands between a number and its unit."""
MINUS = "\u2212"
MISSING = "–"

SYMBOLS = {
    "byte": "B",
    "byte/s": "B/s",
    "hz": "Hz",
    "s": "s",
    "FLOP": "FLOP",
    "FLOP/s": "FLOP/s",
    "OP": "OP",
    "OP/s": "OP/s",
    "inst/s": "inst/s",
}
"""Units that a short number carries, and how they are written; the others are left to the words beside it."""
_PREFIXES = {-12: "p", -9: "n", -6: "µ", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB")
_IN_FULL = 100_000
"""Counts below this are printed in full."""


def short(value: Number | str | None, unit: str = "", *, capacity: bool = False) -> str:
    """Return ``value`` [``unit``] the short way, for tables and sentences.

    ``capacity`` prints bytes in KiB and MiB.  None and NaN become a dash, which is no number.

    >>> short(0.00141747, "s"), short(67446928, "wavefront"), short(92.03, "%")
    ('1.42\\u202fms', '67.4\\u202fM', '92.0\\u202f%')
    """
    if value is None:
        return MISSING
    if isinstance(value, str):
        return value
    if not math.isfinite(value):
        return MISSING if math.isnan(value) else _signed("∞", value)
    if unit == "bool":
        return "yes" if value else "no"
    if unit == "%":
        return _percent(value)
    if unit == "byte/block":
        return _join(_plain(value), "B")
    if capacity:
        return _capacity(value)
    if unit in SYMBOLS:
        exponent = _exponent(value, small=unit == "s")
        return _join(_mantissa(value, exponent), _PREFIXES[exponent] + SYMBOLS[unit])
    return _count(value)


def together(
    values: Sequence[Number | None], unit: str, like: Sequence[Number | None] | None = None
) -> list[str]:
    """Return ``values`` without unit, all in one scale: for a row or column that compares.

    The scale is that of the largest of ``like``, or of the values themselves.

    >>> together([0.00208, 0.000002], "s"), scale([0.00208, 0.000002], "s")
    (['2.08', '0.00200'], 'ms')
    """
    exponent = _common(values if like is None else like, unit)
    return [MISSING if v is None or not math.isfinite(v) else _at(v, exponent, unit) for v in values]


def scale(values: Sequence[Number | None], unit: str) -> str:
    """Return the unit symbol that goes with :func:`together`."""
    return _PREFIXES[_common(values, unit)] + SYMBOLS.get(unit, "" if unit != "%" else "%")


def span(low: Number, high: Number, unit: str) -> str:
    """Return a range in one unit: "2.08–2.37 µs"; one number where both ends read the same.

    Each end has its own unit where the low one would be less than a hundredth of the high one's.

    >>> span(2.08e-6, 2.37e-6, "s"), span(3.0, 3.0, "%"), span(7.7e-6, 2.97e-3, "s")
    ('2.08–2.37\\u202fµs', '3.0\\u202f%', '7.70\\u202fµs–2.97\\u202fms')
    """
    if unit in SYMBOLS and 0 < abs(low) < 0.01 * 10.0 ** _exponent(high, small=unit == "s"):
        return f"{short(low, unit)}–{short(high, unit)}"
    if unit == "%":
        ends = [_percent(v).removesuffix(NARROW + "%") for v in (low, high)]
        symbol = "%"
    elif unit in SYMBOLS:
        ends, symbol = together([low, high], unit), scale([low, high], unit)
    else:
        ends, symbol = [short(low, unit), short(high, unit)], ""
    return _join(ends[0] if ends[0] == ends[1] else "–".join(ends), symbol)


def full(value: Number | str | None, unit: str = "") -> str:
    """Return ``value`` with all its digits and its base unit, for tooltips.

    >>> full(67446928, "wavefront"), full(0.001417472, "s")
    ('67,446,928\\u202fwavefront', '0.001417472\\u202fs')
    """
    if value is None or isinstance(value, str):
        return "missing" if value is None else value
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else _signed("∞", value)
    if unit == "bool":
        return "yes" if value else "no"
    if value == int(value) and abs(value) < 1e18:
        text = f"{int(value):,}"
    elif abs(value) >= 1e6:
        text = f"{value:,.1f}"
    else:
        text = f"{value:.10g}"
    return _join(text.replace("-", MINUS), unit)


def significant(value: Number) -> str:
    """Return ``value`` with three significant digits, in full from 100 up; whole numbers stay whole."""
    if value == 0:
        return "0"
    rounded = _rounded(value)
    size = abs(rounded)
    if size >= 1e15:
        return _power(rounded)
    if size >= 100 or (value == int(value) and size >= 1):
        text = f"{value:,.0f}"
    elif size >= 0.0001:
        text = f"{rounded:.{2 - math.floor(math.log10(size))}f}"
    else:
        return _power(rounded)
    return text.replace("-", MINUS)


def tick(value: Number) -> str:
    """Return the label of a power of ten on a logarithmic axis.

    >>> tick(1e10), tick(0.01), tick(1)
    ('10\\u202fG', '0.01', '1')
    """
    if 0.0001 <= value < 1000:
        return f"{value:g}"
    exponent = _exponent(value, small=False)
    if value < 0.0001 or value >= 10.0**21:
        return _power(value)
    return _join(f"{value / 10.0**exponent:g}", _PREFIXES[exponent])


def _percent(value: Number) -> str:
    if value == 0:
        return _join("0", "%")
    if abs(value) < 0.05:
        return _join("< 0.1" if value > 0 else f"> {MINUS}0.1", "%")
    return _join(f"{value:,.1f}".replace("-", MINUS), "%")


def _count(value: Number) -> str:
    if abs(value) < _IN_FULL:
        return significant(value)
    exponent = _exponent(value, small=False)
    return _join(_mantissa(value, exponent), _PREFIXES[exponent])


def _plain(value: Number) -> str:
    return significant(value) if value != int(value) else f"{int(value):,}".replace("-", MINUS)


def _capacity(value: Number) -> str:
    step = 0
    while abs(value) >= 1024 and step < len(_BINARY) - 1:
        value, step = value / 1024, step + 1
    return _join(significant(value), _BINARY[step])


def _rounded(value: Number) -> float:
    return float(f"{value:.2e}")


def _exponent(value: Number, *, small: bool) -> int:
    """Return the power of ten (a multiple of three) that leaves one to three digits before the point."""
    if value == 0:
        return 0
    lowest = -12 if small else 0
    return min(max(3 * math.floor(math.log10(abs(_rounded(value))) / 3), lowest), 18)


def _common(values: Sequence[Number | None], unit: str) -> int:
    if unit not in SYMBOLS:
        return 0
    known = [v for v in values if v is not None and math.isfinite(v)]
    return _exponent(max(known, key=abs), small=unit == "s") if known else 0


def _mantissa(value: Number, exponent: int) -> str:
    return significant(value) if exponent == 0 else _three(value / 10.0**exponent)


def _at(value: Number, exponent: int, unit: str) -> str:
    if unit == "%":
        return _percent(value).removesuffix(NARROW + "%")
    if unit in SYMBOLS:
        return "0" if value == 0 else _mantissa(value, exponent)
    return _count(value)


def _three(value: float) -> str:
    """Return exactly three significant digits, also of a whole number: 2.00, 20.0, 200."""
    rounded = _rounded(value)
    size = abs(rounded)
    if size >= 1000 or size < 0.0001:
        return significant(value)
    return f"{rounded:.{max(0, 2 - math.floor(math.log10(size)))}f}".replace("-", MINUS)


_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _power(value: Number) -> str:
    mantissa, exponent = f"{value:.2e}".split("e")
    mantissa = mantissa.rstrip("0").rstrip(".").replace("-", MINUS)
    power = "10" + str(int(exponent)).translate(_SUPERSCRIPTS)
    return power if mantissa == "1" else f"{mantissa}{NARROW}×{NARROW}{power}"


def _signed(text: str, value: Number) -> str:
    return MINUS + text if value < 0 else text


def _join(number: str, unit: str) -> str:
    return f"{number}{NARROW}{unit}" if unit else number


_SCALED_IN_SENTENCE = {"byte", "byte/s", "hz", "s", "FLOP", "FLOP/s"}
_IN_SENTENCE = {n: _PREFIXES[n] for n in range(-9, 18, 3)}


def brief(value: float | int | str | None, unit: str = "") -> str:
    """Return ``value`` [``unit``] for a sentence.

    >>> brief(91.53, "%"), brief(8.19e11, "byte/s"), brief(6.134e-3, "s"), brief(32.0)
    ('91.5\\u202f%', '819\\u202fGB/s', '6.13\\u202fms', '32')
    """
    if value is None or isinstance(value, str):
        return value or "unknown"
    if not math.isfinite(value):
        return "unknown"
    if unit == "%":
        return f"{_said_percent(value)}{NARROW}%"
    if unit in _SCALED_IN_SENTENCE:
        exponent = 0 if value == 0 else max(-9, min(15, 3 * math.floor(math.log10(abs(value)) / 3 + 1e-12)))
        return f"{plain(value / 10**exponent)}{NARROW}{_IN_SENTENCE[exponent]}{SYMBOLS[unit]}"
    return plain(value)


def _said_percent(value: float) -> str:
    """Return ``value`` [%] with one digit; what is not 0 never reads 0.

    >>> _said_percent(0.0), _said_percent(0.01), _said_percent(99.96)
    ('0', '< 0.1', '100.0')
    """
    if value and abs(value) < 0.05:
        return "< 0.1" if value > 0 else "> −0.1"
    return f"{value:.1f}".replace("-", "−") if value else "0"


def plain(value: float) -> str:
    """Return ``value`` with three significant digits, whole from 100 up, large counts with k, M, G.

    >>> plain(0.2883), plain(13_326), plain(65e6), plain(1.0), plain(1e300)
    ('0.288', '13,326', '65M', '1', '1e+300')
    """
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1e14:
        return f"{value:.3g}".replace("-", "−")
    if size >= 100_000:
        for power, letter in ((9, "G"), (6, "M"), (3, "k")):
            if size >= 10**power:
                return plain(value / 10**power) + letter
    text = f"{value:,.0f}" if size >= 100 else f"{value:.3g}"
    return text.replace("-", "−")


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


MUCH = 1.1
"""A gain from here on is a factor, below it a percentage."""


def factor(ratio: float) -> str:
    """Return a factor with three significant digits, or as many as show that it is not 1.

    >>> factor(1.2), factor(73.284), factor(734.2), factor(1.0013)
    ('1.20', '73.3', '734', '1.001')
    """
    if 1 < ratio < MUCH:
        return f"{ratio:.3f}"
    return f"{ratio:,.0f}" if ratio >= 99.95 else f"{ratio:.1f}" if ratio >= 9.995 else f"{ratio:.2f}"


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
    return f"at most {factor(bound)} times as fast"
