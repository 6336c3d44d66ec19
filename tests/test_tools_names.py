"""Kernel names: what a user types finds the kernels that are meant, in ncukit and in ncu alike."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncukit.errors import UsageError
from ncukit.run.tools.names import NamePattern, escape, nvtx_range

CUTLASS = (
    "Kernel",
    "void cutlass::Kernel<cutlass::gemm::kernel::Gemm<GemmShape<(int)128, (int)128, (int)8>>>(T1::Params)",
)
REFERENCE = ("ReferenceGemm_kernel", "void ReferenceGemm_kernel(int, float const*)")
INITIAL = ("InitializeMatrix_kernel", "void InitializeMatrix_kernel(float*, int)")


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("gemm", [CUTLASS, REFERENCE]),
        ("GEMM", [CUTLASS, REFERENCE]),
        ("cutlass::", [CUTLASS]),
        ("GemmShape<(int)128", [CUTLASS]),
        ("float*", []),  # a glob: the whole name
        ("*(float?, int)", [INITIAL]),
        ("*_kernel", [REFERENCE, INITIAL]),
        ("kernel", [CUTLASS, REFERENCE, INITIAL]),
        ("regex:^Kernel$", [CUTLASS]),
        ("regex:gemm", [CUTLASS]),
        ("regex:(?i)^reference", [REFERENCE]),
        ("nothing", []),
    ],
)
def test_patterns_look_into_both_names(pattern: str, found: list[tuple[str, str]]) -> None:
    names = (CUTLASS, REFERENCE, INITIAL)
    assert [pair for pair in names if NamePattern(pattern).matches(*pair)] == found


@pytest.mark.parametrize(
    ("pattern", "filter", "base"),
    [
        ("gemm", "regex:(?i)gemm", "demangled"),
        ("f<(int)1>", "regex:(?i)f<\\(int\\)1>", "demangled"),
        ("gemm_*", "regex:(?i)^gemm_.*$", "function"),
        ("void gemm<*>", "regex:(?i)^void gemm<.*>$", "demangled"),
        ("regex:^gemm", "regex:^gemm", "function"),
        ("regex:gemm$", "regex:gemm$", "demangled"),
    ],
)
def test_filters_for_ncu_have_their_base(pattern: str, filter: str, base: str) -> None:
    assert NamePattern(pattern).ncu_filter() == (filter, base)


@pytest.mark.parametrize(
    "pattern",
    ["", " ", "regex:", "regex:("],
)
def test_empty_and_broken_patterns_are_refused(pattern: str) -> None:
    with pytest.raises(UsageError):
        NamePattern(pattern)


SHORTENED = (
    "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x128_32x3_nn_align1>(cutlass_80_tensorop_s168…"
)


@pytest.mark.parametrize(
    "pattern", [SHORTENED, SHORTENED + " ", "void f(cutlass_80...", "sgemm_128x…_align1"]
)
def test_c54_a_name_that_a_program_cut_off_is_no_filter(pattern: str) -> None:
    with pytest.raises(UsageError, match="was cut off by the program that printed it") as caught:
        NamePattern(pattern)
    assert "the whole name" in caught.value.hint


@given(st.text(st.characters(codec="ascii", min_codepoint=32), min_size=1))
def test_an_escaped_name_matches_itself_and_only_itself(name: str) -> None:
    assert re.fullmatch(escape(name), name)
    assert not re.fullmatch(escape(name), name + "x")


@pytest.mark.parametrize(
    ("name", "options", "expression"),
    [
        ("ncukit", {}, "ncukit"),
        ("step", {"push_pop": True}, "step/"),
        ("step", {"domain": "my.lib"}, "my.lib@step"),
        ("a@b,c[0]/d*+\\e", {}, "a\\@b\\,c\\[0\\]\\/d\\*\\+\\\\e"),
    ],
)
def test_ranges_are_quoted(name: str, options: dict[str, object], expression: str) -> None:
    assert nvtx_range(name, **options) == expression  # type: ignore[arg-type]
