"""The catalog is data: sound, complete, and an interface by id and unit."""

from __future__ import annotations

import math
import re

import pytest
import yaml

from ncukit.metrics import load
from ncukit.metrics.catalog import FAMILIES, UNITS, validate
from ncukit.metrics.evaluation import Missing, Undefined, half_operations
from ncukit.metrics.expression import FUNCTIONS, compile_expression, instanced, named, needs_every_name

CATALOG = load()
SOURCES = [s for metrics in (CATALOG.metrics, CATALOG.signals) for m in metrics.values() for s in m.sources]


class Launch:
    """A launch of raw values only."""

    def __init__(self, raw):
        self.raw, self.instances = raw, {}


def evaluate(text, **raw):
    return compile_expression(text).evaluate(Launch(raw))


def test_the_catalog_is_sound():
    assert validate(CATALOG) == []


def test_the_drafted_ids_and_units_are_the_interface(shared):
    drafted = yaml.load((shared / "domain/metrics.yaml").read_text(), Loader=yaml.CSafeLoader)["metrics"]
    expected = {m["id"]: ("s" if m["id"] == "kernel_duration" else m["unit"], m["family"]) for m in drafted}
    assert {m.id: (m.unit, m.family) for m in CATALOG.metrics.values()} == expected


def test_there_are_266_metrics_in_seven_families():
    assert len(CATALOG.metrics) == 266
    assert {m.family for m in CATALOG.metrics.values()} == set(FAMILIES)


def test_a_fault_in_the_data_is_found():
    from dataclasses import replace

    bad = replace(CATALOG.metrics["dram_bytes"], unit="furlong", sources=())
    faults = validate(replace(CATALOG, metrics={**CATALOG.metrics, "dram_bytes": bad}))
    assert any("unknown unit" in fault for fault in faults)
    assert any("no source" in fault for fault in faults)
    assert "furlong" not in UNITS


@pytest.mark.parametrize(
    ("text", "raw", "expected"),
    [
        ("{a}+{b}*2", {"a": 1, "b": 2}, 5),
        ("({a}+{b})*2", {"a": 1, "b": 2}, 6),
        ("{a}-{b}-1", {"a": 5, "b": 2}, 2),
        ("8/{a}/2", {"a": 2}, 2),
        ("2**(5+{a})", {"a": 3}, 256),
        ("-{a}", {"a": 3}, -3),
        ("1e-9*{a}", {"a": 2e9}, 2),
        ("opt({a})+1", {}, 1),
        ("sum_opt({a},{b},{c})", {"a": 1, "c": 3}, 4),
        ("max(1,{a})", {"a": 4}, 4),
        ("ceil({a})", {"a": 1.2}, 2),
        ("tail({a})", {"a": 1.5}, 50),
        ("tail({a})", {"a": 2.0}, 0),
        ("argmin(x={a},y={b})", {"a": 2, "b": 1}, "y"),
        ("argmin(x={a},y={b},z={c}?)", {"a": 1, "b": 1}, "x+y"),
        ("argmin(x={a},y={b})", {"a": 0, "b": 3}, "y"),
        ("argmin(x={a},y={b})", {"a": 0, "b": 0}, "x+y"),
    ],
)
def test_expressions(text, raw, expected):
    assert evaluate(text, **raw) == expected


def test_exact_integers_stay_exact():
    assert evaluate("{a}+{b}", a=2**53, b=1) == 2**53 + 1


def test_division_by_zero_is_undefined_and_names_the_denominator():
    with pytest.raises(Undefined) as caught:
        evaluate("{a}/({b}+{c})*100", a=1, b=0, c=0)
    assert caught.value.args[0] == "({b}+{c})"


@pytest.mark.parametrize("text", ["{a}", "{a}+1", "sum_opt({a},{b})", "max({a},1)", "argmin(x={a})"])
def test_a_missing_operand_is_missing_not_zero(text):
    with pytest.raises(Missing):
        evaluate(text)


@pytest.mark.parametrize(
    "text", ["", "{a", "__import__('os')", "{a}.x", "a+1", "{a} {b}", "open(1)", "max({a}"]
)
def test_what_is_not_in_the_language_is_refused(text):
    with pytest.raises(ValueError, match=r"."):
        compile_expression(text)


@pytest.mark.parametrize("text", sorted({source.expr for source in SOURCES}))
def test_what_is_told_without_compiling_is_what_compiling_finds(text):
    compiled = compile_expression(text)
    assert set(named(text)) == {*compiled.raws, *compiled.optional}
    assert set(instanced(text)) == set(compiled.instanced)
    assert not (needs_every_name(text) and (compiled.optional or compiled.choices))


def test_every_function_of_the_language_is_used_or_documented_nowhere_else():
    used = {f for m in CATALOG.metrics.values() for s in m.sources for f in FUNCTIONS if f + "(" in s.expr}
    assert used >= set(FUNCTIONS) - {"min"}


@pytest.mark.parametrize(
    ("opcode", "expected"),
    [
        ("FFMA", "fp32"),
        ("HMMA", "tensor"),
        ("HFMA2", "fp16"),
        ("UTCOMMA", "tensor"),
        ("LDGSTS", "async_copy"),
        ("NEW", "other"),
    ],
)
def test_opcodes_have_one_class(opcode, expected):
    assert CATALOG.opcodes.class_of(opcode) == expected


@pytest.mark.parametrize(
    ("opcode", "dtype", "expected"),
    [
        ("HMMA.16816.F32.BF16", "bf16", 4096),
        ("HMMA.16816.F32.BF16", "fp16", 0),
        ("HMMA.1688.F32", "fp16", 2048),
        ("HMMA.1688.F32.TF32", "tf32", 2048),
        ("IMMA.16832.S8.S8.SAT", "int8", 8192),
        ("IMMA.16864.S4.S4", "int4", 16384),
        ("DMMA.884", "fp64", 512),
        ("HMMA.884.F32.F32.STEP0", "fp16", 512),
        ("HGMMA.64x128x16.F32.BF16", "bf16", 2 * 64 * 128 * 16 / 4),
        ("QGMMA.64x128x32.F32.E4M3.E4M3", "fp8", 2 * 64 * 128 * 32 / 4),
    ],
)
def test_tensor_operations_per_warp_instruction(opcode, dtype, expected):
    assert CATALOG.opcodes.tensor_operations(((opcode, 1),), dtype) == expected


def test_every_pattern_of_opcodes_can_be_compiled(monkeypatch):
    patterns = [pattern for _, pattern in CATALOG.opcodes.classes]
    monkeypatch.setattr(
        "ncukit.metrics.evaluation.instances", lambda metric, pattern: patterns.append(pattern) or float
    )
    before = len(patterns)
    for metric in (*CATALOG.metrics.values(), *CATALOG.signals.values()):
        for source in metric.sources:
            compile_expression(source.expr)
    assert len(patterns) > before > 0
    for pattern in patterns:
        re.compile(pattern)


def test_tensor_operations_are_unknown_when_the_shape_is_in_a_descriptor():
    with pytest.raises(Missing):
        CATALOG.opcodes.tensor_operations((("UTCHMMA", 8), ("HMMA.16816.F32", 1)), "fp16")


def test_a_tensor_opcode_that_never_ran_changes_nothing():
    assert CATALOG.opcodes.tensor_operations((("UTCHMMA", 0), ("HMMA.16816.F32", 1)), "fp16") == 4096


def test_packed_half_work_leaves_out_constant_loads_and_conversions():
    sass = {
        0x00: "      HFMA2.MMA R3, -RZ, RZ, 1.875, 0 ",
        0x10: "      HADD2.F32 R4, -RZ, R5.H0_H0 ",
        0x20: "@!P0  HFMA2 R6, R7, R8, R9 ",
        0x30: "      HADD2 R6, R7, R8 ",
        0x40: "      HMUL2.BF16_V2 R6, R7, R8 ",
        0x50: "      FFMA R6, R7, R8, R9 ",
    }
    threads = [(pc, 32) for pc in sass]
    assert half_operations(threads, sass) == 32 * (4 + 2 + 2)


def test_every_metric_says_what_collects_it():
    for metric in CATALOG.metrics.values():
        assert metric.collected_by, metric.id
        assert metric.collected_by in ("always", "C2CLink") or metric.sections, metric.id


def test_every_peak_of_the_table_is_a_positive_number():
    for row in CATALOG.peaks.values():
        for value in row.values():
            assert value is None or (value > 0 and math.isfinite(value))
