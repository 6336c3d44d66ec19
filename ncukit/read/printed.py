"""Numbers and units as ncu prints them: any scale, any locale, back in the base units of a report."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from decimal import Decimal
from functools import lru_cache

from ncukit.model import Instance, RawValue

_MISSING = {"", "n/a", "no data", "none", "-"}
_NOT_A_NUMBER = {"nan": math.nan, "-nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_PLAIN = re.compile(r"[-+]?\d+(\.\d+)?([eE][-+]?\d+)?")
_POINT = re.compile(r"[-+]?\d{1,3}([,\u00a0\u202f'’ ]\d{3})+(\.\d+)?")
_COMMA = re.compile(r"[-+]?(\d+|\d{1,3}([.\u00a0\u202f'’ ]\d{3})+)(,\d+)?")
# Only with a decimal comma, and only with a decimal point: a group of three digits can be either.
_ONLY_COMMA = re.compile(r"[-+]?(0|\d+(\.\d{3})+|\d{4,}),\d+|[-+]?\d+,(\d{1,2}|\d{4,})")
_ONLY_POINT = re.compile(r"[-+]?(0|\d+(,\d{3})+|\d{4,})\.\d+|[-+]?\d+\.(\d{1,2}|\d{4,})")
_INSTANCES = re.compile(r"([^()]*?) ?\((.+)\)", re.DOTALL)
_OFFSET = re.compile(r" \(\+\d+\)$")

_SECONDS = {
    **dict.fromkeys(("ns", "nsecond"), Decimal("1e-9")),
    **dict.fromkeys(("us", "usecond"), Decimal("1e-6")),
    **dict.fromkeys(("ms", "msecond"), Decimal("1e-3")),
    **dict.fromkeys(("s", "second"), Decimal(1)),
    **dict.fromkeys(("min", "minute"), Decimal(60)),
    **dict.fromkeys(("h", "hour"), Decimal(3600)),
}
_SCALED = re.compile(r"([KMGTPE])(byte|bit|hz)", re.IGNORECASE)
_SCALES = {letter: Decimal(1000) ** (power + 1) for power, letter in enumerate("KMGTPE")}


@lru_cache(maxsize=1024)
def base_unit(unit: str) -> tuple[Decimal, str]:
    """Return the factor to the base unit, and the base unit as ``ncu_report`` spells it.

    Times become ns, rates 1/s, frequencies hz; ncu's K, M, G are powers of 1000, of bytes too.

    >>> base_unit("Gbyte/second"), base_unit("usecond"), base_unit("cycle/nsecond")
    ((Decimal('1E+9'), 'byte/s'), (Decimal('1E+3'), 'ns'), (Decimal('1E+9'), 'hz'))
    """
    above, slash, below = unit.strip().partition("/")
    factor, numerator = _part(above, Decimal("1e9"), "ns")
    if not slash:
        return factor, numerator
    divisor, denominator = _part(below, Decimal(1), "s")
    if denominator != "s":  # ncu prints 4225 %/byte as 4.225 %/Kbyte
        divisor = 1 / divisor
    base = f"{numerator}/{denominator}"
    return (factor / divisor).normalize(), "hz" if base == "cycle/s" else base


def _part(unit: str, per_second: Decimal, time_unit: str) -> tuple[Decimal, str]:
    if unit in _SECONDS:
        return (_SECONDS[unit] * per_second).normalize(), time_unit
    if scaled := _SCALED.fullmatch(unit):
        return _SCALES[scaled[1].upper()], scaled[2].lower()
    return Decimal(1), unit.lower() if unit.lower() == "hz" else unit


def decimal_comma(texts: Iterable[str]) -> bool | None:
    """Return whether the numbers among ``texts`` have a decimal comma, or None when some do and some do not.

    >>> decimal_comma(["1.234,5", "12"]), decimal_comma(["1,234", "12.5"]), decimal_comma(["1,5", "1.5"])
    (True, False, None)
    """
    comma = point = False
    for text in texts:
        comma = comma or ("," in text and _ONLY_COMMA.fullmatch(text) is not None)
        point = point or ("." in text and _ONLY_POINT.fullmatch(text) is not None)
    return None if comma and point else comma


def value(text: str, comma: bool = False) -> RawValue | None:
    """Return a printed value as int, float or text, None when ncu printed that there is none; NaN stays NaN.

    >>> value("4,398"), value("3.26"), value("3,26", comma=True), value("n/a"), value("CachePreferNone")
    (4398, 3.26, 3.26, None, 'CachePreferNone')
    """
    text = text.strip()
    number = _number(text, comma)
    if number is not None:
        return number
    low = text.lower().removeprefix("(!)").strip()
    if low in _MISSING:
        return None
    return _NOT_A_NUMBER.get(low, text)


def scaled(number: float, factor: Decimal) -> float:
    """Return ``number`` times ``factor``, rounded once.

    >>> scaled(3.264, Decimal(1000))
    3264.0
    """
    if factor == 1 or not math.isfinite(number):
        return number
    return float(Decimal(repr(number)) * factor)


def instances(text: str, comma: bool = False) -> tuple[RawValue | None, tuple[Instance, ...]] | None:
    """Return total and instances of ``text`` where ncu printed both, else None.

    Without correlation ids there are no instances to return, only the total.

    >>> instances("12 (LDG: 8; STG: 4)"), instances("2.5 (1; 4)"), instances("a (b)")
    ((12, (('LDG', 8), ('STG', 4))), (2.5, ()), None)
    """
    found = _INSTANCES.fullmatch(text.strip())
    if found is None:
        return None
    total = value(found[1], comma)
    rows: list[Instance] = []
    numbers = True
    for item in found[2].split("; "):
        id, _, printed = item.rpartition(": ")
        number = value(printed, comma)
        numbers = numbers and isinstance(number, int | float)
        if id and number is not None:
            rows.append((_correlation_id(id), number))
    if isinstance(total, str) or not (numbers or total is not None):
        return None
    return total, tuple(rows)


def _correlation_id(text: str) -> int | str:
    text = _OFFSET.sub("", text)
    if text.startswith("0x"):
        return int(text, 16)
    return int(text) if text.isdigit() else text


def _number(text: str, comma: bool) -> int | float | None:
    if not comma and not _PLAIN.fullmatch(text):
        if not _POINT.fullmatch(text):
            return None
        text = re.sub(r"[^\d.+-]", "", text)
    elif comma:
        if not _COMMA.fullmatch(text):
            return None
        text = re.sub(r"[^\d,+-]", "", text).replace(",", ".")
    return int(text) if text.lstrip("+-").isdigit() else float(text)
