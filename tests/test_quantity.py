"""Numbers read the same everywhere: three digits, one unit, nothing that looks like what it is not."""

from __future__ import annotations

import math
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncukit import quantity
from ncukit.quantity import MINUS, NARROW, full, scale, short, significant, span, tick, together

SCALED = ("byte", "byte/s", "hz", "s", "FLOP", "FLOP/s", "OP", "OP/s", "inst/s")
COUNTS = ("inst", "sector", "wavefront", "block", "")
PREFIX = {"p": 1e-12, "n": 1e-9, "µ": 1e-6, "m": 1e-3, "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
PREFIX |= {"P": 1e15, "E": 1e18}
SUPERSCRIPT = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")

magnitudes = st.floats(min_value=1e-9, max_value=1e18) | st.integers(min_value=0, max_value=10**18)
signed = magnitudes.flatmap(lambda x: st.sampled_from([x, -x]))


def parse(text: str, symbol: str) -> float:
    """Read a short number back; the inverse of ``short`` up to its rounding."""
    number, _, unit = text.partition(NARROW)
    if "×" in text:
        mantissa, power = text.replace(NARROW, "").split("×10")
        digits = re.match(r"[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+", power)
        assert digits
        return number_of(mantissa) * 10.0 ** int(digits.group().translate(SUPERSCRIPT))
    if match := re.fullmatch(rf"({MINUS}?)10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)", number):
        return (-1 if match[1] else 1) * 10.0 ** int(match[2].translate(SUPERSCRIPT))
    return number_of(number) * PREFIX[unit.removesuffix(symbol)]


def number_of(text: str) -> float:
    return float(text.replace(",", "").replace(MINUS, "-"))


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.00141747, "s", "1.42 ms"),
        (0.000136, "s", "136 µs"),
        (2.208e-6, "s", "2.21 µs"),
        (9.6e-7, "s", "960 ns"),
        (12.5, "s", "12.5 s"),
        (0, "s", "0 s"),
        (1.05e9, "hz", "1.05 GHz"),
        (9.04e9, "byte", "9.04 GB"),
        (7168, "byte", "7.17 kB"),
        (512, "byte", "512 B"),
        (376.1e9, "byte/s", "376 GB/s"),
        (235_106_416_522, "inst/s", "235 Ginst/s"),
        (1.513e12, "FLOP/s", "1.51 TFLOP/s"),
        (0, "FLOP", "0 FLOP"),
        (5120, "byte/block", "5,120 B"),
        (167_936, "byte/block", "167,936 B"),
        (90.234, "%", "90.2 %"),
        (100, "%", "100.0 %"),
        (0, "%", "0 %"),
        (0.019, "%", "< 0.1 %"),
        (152.04, "%", "152.0 %"),
        (-3.2, "%", "−3.2 %"),
        (67_446_928, "wavefront", "67.4 M"),
        (99_999, "inst", "99,999"),
        (100_000, "inst", "100 k"),
        (999_950, "inst", "1.00 M"),
        (65_536, "block", "65,536"),
        (0.0709, "warp", "0.0709"),
        (158.47, "cycle", "158"),
        (4.0, "sector/request", "4"),
        (11.24, "warp", "11.2"),
        (0.0000123, "ratio", "1.23 × 10⁻⁵"),
        (1, "bool", "yes"),
        (0, "bool", "no"),
        ("warps+registers", "", "warps+registers"),
        (None, "byte", "–"),
        (math.nan, "byte", "–"),
    ],
)
def test_a_number_is_short_and_says_its_unit(value: float, unit: str, text: str) -> None:
    assert short(value, unit).replace(NARROW, " ") == text


def test_capacities_are_powers_of_two_and_traffic_powers_of_ten() -> None:
    assert short(5 * 2**20, "byte", capacity=True) == f"5{NARROW}MiB"
    assert short(5 * 2**20, "byte") == f"5.24{NARROW}MB"
    assert short(102_400, "byte", capacity=True) == f"100{NARROW}KiB"


@given(signed, st.sampled_from(SCALED + COUNTS))
def test_a_short_number_stays_within_half_a_percent(value: float, unit: str) -> None:
    symbol = {"byte": "B", "byte/s": "B/s", "hz": "Hz"}.get(unit, unit if unit in SCALED else "")
    back = parse(short(value, unit), symbol)
    assert math.isclose(back, value, rel_tol=0.00501)


@given(signed, st.sampled_from((*SCALED, *COUNTS, "%", "byte/block", "ratio")))
def test_no_short_number_has_a_hyphen_a_negative_zero_or_a_plain_space_before_its_unit(value, unit) -> None:
    text = short(value, unit)
    assert "-" not in text
    assert not re.match(rf"{MINUS}0(\.0*)?($|{NARROW})", text)
    assert " " not in text.replace("< 0.1", "").replace("> ", "")


@given(st.floats(min_value=-1e6, max_value=1e6))
def test_a_percentage_has_one_decimal_and_only_a_real_zero_reads_zero(value: float) -> None:
    number = short(value, "%").removesuffix(f"{NARROW}%")
    assert (number == "0") == (value == 0)
    assert number == "0" or re.fullmatch(rf"(< 0\.1|> {MINUS}0\.1|{MINUS}?[\d,]+\.\d)", number)
    assert number not in ("0.0", f"{MINUS}0.0")


@given(st.lists(magnitudes, min_size=1, max_size=6), st.sampled_from(SCALED))
def test_a_row_that_compares_has_one_unit_and_keeps_the_order(values: list[float], unit: str) -> None:
    texts, symbol = together(values, unit), scale(values, unit)
    assert not any(NARROW in text and "×" not in text for text in texts)
    base = {"byte": "B", "byte/s": "B/s", "hz": "Hz"}.get(unit, unit)
    assert symbol.endswith(base)
    read = [parse(text, "") for text in texts]
    by_value = [number for _, number in sorted(zip(values, read, strict=True))]
    assert all(low <= high for low, high in pairwise(by_value))


def test_a_column_can_take_the_scale_of_what_is_typical() -> None:
    assert together([42.2e-6, 1.16], "s", [44e-6]) == ["42.2", "1,160,000"]
    assert scale([44e-6], "s") == "µs"


def test_a_missing_value_in_a_row_is_a_dash() -> None:
    assert together([None, 2.0], "s") == ["–", "2"]


@given(magnitudes, st.sampled_from((*SCALED, "inst", "sector/request")))
def test_the_full_number_loses_nothing_that_matters(value: float, unit: str) -> None:
    text = full(value, unit).removesuffix(NARROW + unit)
    assert math.isclose(number_of(text), value, rel_tol=1e-7)


def test_the_full_number_says_what_is_not_a_number() -> None:
    assert full(math.nan, "s") == "NaN"
    assert full(None) == "missing"


def test_a_range_has_one_unit_and_collapses_when_both_ends_read_the_same() -> None:
    assert span(2.08e-6, 2.37e-6, "s") == f"2.08–2.37{NARROW}µs"
    assert span(1.04, 2.24, "%") == f"1.0–2.2{NARROW}%"
    assert span(256, 256, "thread") == "256"


@given(st.floats(min_value=-1e14, max_value=1e14, exclude_min=True))
def test_three_significant_digits_survive(value: float) -> None:
    if value == 0 or abs(value) < 1e-300:
        return
    assert math.isclose(parse(significant(value), ""), value, rel_tol=0.00501)


@pytest.mark.parametrize(
    ("value", "text"),
    [(1e10, "10 G"), (1e12, "1 T"), (0.01, "0.01"), (1, "1"), (100, "100"), (1e-5, "10⁻⁵"), (1e21, "10²¹")],
)
def test_ticks_are_named_by_decade(value: float, text: str) -> None:
    assert tick(value).replace(NARROW, " ") == text


def test_the_space_before_the_unit_is_narrow_and_does_not_break() -> None:
    assert quantity.NARROW == "\u202f"
