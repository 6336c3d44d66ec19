"""Worked values of every analytic model, by hand; what its options change; how it grows with its shape."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncukit import models
from ncukit.errors import UsageError
from ncukit.model.work import WorkModel
from ncukit.roofline.models.estimate import EXAMPLES, MODELS, SYNONYMS, make, named, parameters
from ncukit.roofline.models.terms import BITS
from scripts.pages import models as documents
from tests.test_models import Number, counted, dot, matrix

# model call -> FLOPs by precision, bytes read, bytes written; every number by hand
WORKED: dict[str, tuple[Callable[[], WorkModel], dict[str, float], float, float]] = {
    "copy in fp64": (lambda: models.vector(1000, "fp64", 1, 1, 0), {}, 8000, 8000),
    "triad in fp64": (lambda: models.vector(1000, "fp64", 2, 1, 2), {"fp64": 2000}, 16000, 8000),
    "add in fp8": (lambda: models.vector(1000, "fp8"), {"fp32": 1000}, 2000, 1000),
    "chain of 3, fused": (
        lambda: models.elementwise(100, 3, "fp32", inputs=2), {"fp32": 300}, 2 * 400, 400,
    ),
    "chain of 3, one kernel each": (
        lambda: models.elementwise(100, 3, "fp32", inputs=2, fused=False),
        {"fp32": 300}, (2 + 2) * 400, (1 + 2) * 400,
    ),
    "transpose in int8": (lambda: models.transpose(10, 20, "int8"), {}, 200, 200),
    "one sum in bf16": (lambda: models.reduction(1024, "bf16"), {"fp32": 1023}, 2048, 2),
    "eight sums in fp64": (lambda: models.reduction(64, "fp64", rows=8), {"fp64": 8 * 63}, 8 * 512, 64),
    "gather in bf16": (lambda: models.embedding(10, 64, "bf16"), {}, 10 * 128 + 80, 10 * 128),
    "gather of 4 rows, int32": (
        lambda: models.embedding(10, 64, "fp32", distinct=4, index="int32"), {}, 4 * 256 + 40, 10 * 256,
    ),
    "softmax in fp16": (lambda: models.softmax(2, 8, "fp16"), {"fp32": 3 * 16 - 2}, 32, 32),
    "layer norm in fp32": (lambda: models.layer_norm(2, 8, "fp32"), {"fp32": 2 * (7 * 8 + 1)}, 64 + 64, 64),
    "layer norm without weights": (
        lambda: models.layer_norm(2, 8, "fp64", affine=False), {"fp64": 2 * (5 * 8 + 1)}, 128, 128,
    ),
    "rms norm in bf16": (lambda: models.layer_norm(2, 8, "bf16", rms=True), {"fp32": 2 * 33}, 32 + 16, 32),
    "gemv in fp64": (lambda: models.gemv(3, 5, "fp64"), {"fp64": 30}, 8 * (15 + 5), 24),
    "gemv, 2n - 1": (lambda: models.gemv(3, 5, "fp64", exact_sums=True), {"fp64": 27}, 8 * (15 + 5), 24),
    "gemm in fp16": (
        lambda: models.gemm(64, 32, 128, "fp16"), {"tensor_fp16": 524_288}, 2 * (8192 + 4096), 4096,
    ),
    "gemm, 2k - 1": (
        lambda: models.gemm(64, 32, 128, "fp16", exact_sums=True),
        {"tensor_fp16": 524_288 - 2048}, 2 * (8192 + 4096), 4096,
    ),
    "gemm with alpha, beta, bias, activation": (
        lambda: models.gemm(64, 32, 128, "fp16", alpha=True, beta=True, bias=True, activation=4),
        {"tensor_fp16": 524_288, "fp32": (1 + 2 + 1 + 4) * 2048}, 2 * (8192 + 4096 + 2048 + 32), 4096,
    ),
    "gemm of fp4 with scales of 16": (
        lambda: models.gemm(64, 32, 128, "fp4", out="bf16", scale_block=16),
        {"tensor_fp4": 524_288}, (8192 + 4096) / 2 + (64 + 32) * 8, 4096,
    ),
    "eight gemms in fp64": (
        lambda: models.gemm(4, 4, 4, "fp64", batch=8), {"fp64": 8 * 128}, 8 * 2 * 16 * 8, 8 * 16 * 8,
    ),
    "convolution 3x3, padded": (
        lambda: models.convolution(2, 3, 8, 8, 5, 3, 3, "fp16", padding=1),
        {"tensor_fp16": 2 * 2 * 5 * 64 * 27}, 2 * (2 * 3 * 64 + 5 * 27), 2 * 2 * 5 * 64,
    ),
    "convolution 1x1, every other pixel": (
        lambda: models.convolution(1, 4, 8, 8, 6, 1, 1, "fp32", stride=2, bias=True),
        {"fp32": 2 * 6 * 16 * 4 + 6 * 16}, 4 * (4 * 16 + 6 * 4 + 6), 4 * 6 * 16,
    ),
    "depthwise convolution, 2k - 1": (
        lambda: models.convolution(1, 4, 5, 5, 4, 3, 3, "fp64", groups=4, exact_sums=True),
        {"fp64": 4 * 9 * 17}, 8 * (4 * 25 + 4 * 9), 8 * 4 * 9,
    ),
    "dilated convolution": (
        lambda: models.convolution(1, 1, 7, 7, 1, 3, 3, "bf16", dilation=3),
        {"tensor_bf16": 18}, 2 * (9 + 9), 2,
    ),
    "scores of one head": (
        lambda: models.attention_scores(1, 1, 16, 32, 8, "fp16"),
        {"tensor_fp16": 2 * 512 * 8, "fp32": 512}, 2 * (16 + 32) * 8, 2 * 512,
    ),
    "unscaled scores, 4 heads on 1": (
        lambda: models.attention_scores(2, 4, 16, 32, 8, "fp32", kv_heads=1, scaled=False),
        {"fp32": 2 * 2 * 4 * 512 * 8}, 4 * 2 * (4 * 16 + 32) * 8, 4 * 2 * 4 * 512,
    ),
    "attention, fused": (
        lambda: models.attention(1, 2, 16, 32, 8, "bf16"),
        {"tensor_bf16": 4 * 2 * 512 * 8, "fp32": 2 * (4 * 512 - 16)}, 2 * 2 * (16 + 64) * 8, 2 * 2 * 16 * 8,
    ),
    "attention of 8 heads on 2": (
        lambda: models.attention(1, 8, 16, 32, 8, "bf16", kv_heads=2),
        {"tensor_bf16": 4 * 8 * 512 * 8, "fp32": 8 * (4 * 512 - 16)},
        2 * (8 * 16 + 2 * 2 * 32) * 8, 2 * 8 * 16 * 8,
    ),
    "decoding, multi-head": (
        lambda: models.kv_cache_decode(2, 4, 4, 100, 16, "fp16"),
        {"fp32": 2 * 4 * (4 * 100 * 16 + 4 * 100 - 1)},
        2 * (2 * 2 * 4 * 100 * 16 + 2 * 4 * 16), 2 * 2 * 4 * 16,
    ),
    "decoding, one key head, fp8 cache in pages of 16": (
        lambda: models.kv_cache_decode(2, 4, 1, 100, 16, "fp16", cache="fp8", page_size=16),
        {"tensor_fp16": 2 * 4 * 4 * 100 * 16, "fp32": 2 * 4 * (4 * 100 - 1)},
        2 * 2 * 100 * 16 + 2 * 2 * 4 * 16 + 2 * 7 * 4, 2 * 2 * 4 * 16,
    ),
    "all-reduce of fp32 among 4": (lambda: models.all_reduce(1000, 4, "fp32"), {"fp32": 750}, 0, 6000),
    "all-reduce of an odd size": (lambda: models.all_reduce(10, 3, "bf16"), {"fp32": 20 / 3}, 0, 80 / 3),
    "a point": (lambda: models.point(2e12, 1e12), {"fp32": 2e12}, 1e12, 0),
    "a point without work": (lambda: models.point(0, 10, "tensor_fp8"), {}, 10, 0),
}  # fmt: skip


@pytest.mark.parametrize("case", WORKED)
def test_worked_by_hand(case: str) -> None:
    model, flop, read, written = WORKED[case]
    found = model()
    assert dict(found.flop) == pytest.approx(flop)
    assert (found.read, found.written) == (pytest.approx(read), pytest.approx(written))


def test_every_model_is_worked() -> None:
    assert {model().name.split("(")[0] for model, *_ in WORKED.values()} == set(MODELS)


@pytest.mark.parametrize("dtype", [name for name in BITS if not name.startswith("int")])
@pytest.mark.parametrize("name", [name for name in MODELS if name not in ("point", "embedding")])
def test_bytes_follow_the_width_of_the_type_and_flops_do_not(name: str, dtype: str) -> None:
    arguments = {key: value for key, value in EXAMPLES[name].items() if key not in ("dtype", "page_size")}
    narrow, wide = (make(name, {**arguments, "dtype": d}) for d in (dtype, "fp64"))
    assert narrow.bytes / wide.bytes == pytest.approx(BITS[dtype] / 64)
    assert narrow.total_flop == wide.total_flop


# --- options


def test_the_convention_of_a_sum_is_said_either_way() -> None:
    zero, exact = models.gemm(8, 8, 8), models.gemm(8, 8, 8, exact_sums=True)
    assert "starts from zero" in zero.notes[0]
    assert "2k - 1" in zero.notes[0]
    assert exact.notes[0] == "(2k - 1) m n: a sum starts with its first product"


def test_what_was_not_asked_for_is_said_to_be_left_out() -> None:
    left_out = " ".join(models.gemm(8, 8, 8).assumptions)
    assert "no alpha, bias, activation" in left_out
    assert "beta = 0" in left_out
    full = models.gemm(8, 8, 8, alpha=True, beta=True, bias=True, activation=1)
    assert "no alpha" not in " ".join(full.assumptions)
    assert "beta = 0" not in " ".join(full.assumptions)
    assert full.name == "gemm(m=8, n=8, k=8, alpha, beta, bias, activation=1)"


def test_integer_sums_are_scaled_in_single_precision() -> None:
    assert models.gemm(8, 8, 8, "int8", alpha=True).flop == {"tensor_int8": 1024, "fp32": 64}
    assert models.gemm(8, 8, 8, "fp64", beta=True).flop == {"fp64": 1024 + 128}


def test_fusing_a_chain_saves_two_passes_for_each_intermediate() -> None:
    fused, single = (models.elementwise(1000, 5, "fp32", fused=f) for f in (True, False))
    assert single.bytes - fused.bytes == 2 * 4 * 4 * 1000
    assert single.flop == fused.flop


@settings(deadline=None)
@given(st.integers(1, 6), st.integers(1, 6))
def test_fewer_key_heads_save_their_share_of_the_cache(kv_heads: int, group: int) -> None:
    def cache(kv: int) -> float:
        model = models.kv_cache_decode(4, kv_heads * group, kv, 1000, 64)
        return model.bytes - 2 * 2 * 4 * kv_heads * group * 64

    assert cache(kv_heads) * group == cache(kv_heads * group)


def test_attention_with_one_query_is_a_step_of_decoding_for_any_number_of_key_heads() -> None:
    for kv in (1, 2, 4):
        step = models.kv_cache_decode(3, 4, kv, 100, 16, "fp32")
        block = models.attention(3, 4, 1, 100, 16, "fp32", kv_heads=kv)
        assert (step.flop, step.bytes) == (block.flop, block.bytes)


def test_the_three_parts_of_naive_attention_need_no_less_than_the_whole() -> None:
    shape = (2, 4, 64, 128, 32, "fp16")
    scores, whole = models.attention_scores(*shape), models.attention(*shape, materialised=True)
    rows = models.softmax(2 * 4 * 64, 128, "fp16")
    values = models.gemm(64, 32, 128, "fp16", batch=8)
    assert scores.total_flop + rows.total_flop + values.total_flop == whole.total_flop
    assert scores.bytes + rows.bytes + values.bytes == whole.bytes


# --- against counting every operation and every element


@settings(deadline=None)
@given(st.integers(1, 3), st.integers(1, 6), st.booleans(), st.booleans())
def test_a_normalisation_counts_every_operation(rows: int, columns: int, affine: bool, rms: bool) -> None:
    def normalise(row: list[Any]) -> None:
        size, total = Number(float(len(row))), row[0]
        if not rms:
            for x in row[1:]:
                total = total + x
            mean = total / size
            row = [x - mean for x in row]
        squares = [x * x for x in row]
        total = squares[0]
        for x in squares[1:]:
            total = total + x
        root = Number((total / size + Number(1e-5)).value ** -0.5)  # no floating-point operation
        row = [x * root for x in row]
        if affine:
            row = [x * Number(2) for x in row]
            row = row if rms else [x + Number(1) for x in row]

    model = models.layer_norm(rows, columns, "fp32", affine=affine, rms=rms)
    assert model.total_flop == counted(lambda: [normalise(row) for row in matrix(rows, columns)])


@settings(deadline=None)
@given(*[st.integers(1, 3)] * 4, st.integers(1, 2), st.integers(0, 2), st.integers(1, 2))
def test_a_convolution_counts_every_operation_and_every_pixel(
    channels: int, filters: int, high: int, wide: int, stride: int, padding: int, dilation: int
) -> None:
    height, width = 6, 5
    touched: set[tuple[int, int]] = set()
    outputs: set[tuple[int, int]] = set()

    def run() -> None:
        for y, x in product(
            range(0, height + 2 * padding - dilation * (high - 1), stride),
            range(0, width + 2 * padding - dilation * (wide - 1), stride),
        ):
            outputs.add((y, x))
            taps = [(y + i * dilation - padding, x + j * dilation - padding)
                    for i, j in product(range(high), range(wide))]  # fmt: skip
            touched.update((r, c) for r, c in taps if 0 <= r < height and 0 <= c < width)
            for _ in range(filters):
                (row,) = matrix(1, channels * len(taps))
                dot(row, row)

    if height + 2 * padding <= dilation * (high - 1) or width + 2 * padding <= dilation * (wide - 1):
        return
    flops = counted(run)
    model = models.convolution(
        1, channels, height, width, filters, high, wide, "fp32",
        stride=stride, padding=padding, dilation=dilation,
    )  # fmt: skip
    assert model.total_flop == flops
    assert model.read == 4 * (channels * len(touched) + filters * channels * high * wide)
    assert model.written == 4 * filters * len(outputs)


@settings(deadline=None)
@given(st.integers(2, 8), st.integers(1, 5))
def test_a_ring_sends_what_the_model_says(ranks: int, chunk: int) -> None:
    """Reduce-scatter, then all-gather: each rank sends one chunk a step."""
    held = [[{(rank, part)} for part in range(ranks)] for rank in range(ranks)]
    sent, added = [0] * ranks, [0] * ranks
    for step in range(2 * (ranks - 1)):
        message = []
        for rank in range(ranks):
            part = (rank - step if step < ranks - 1 else rank + 1 - (step - ranks + 1)) % ranks
            message.append((part, set(held[rank][part])))
            sent[rank] += chunk
        for rank in range(ranks):
            part, sums = message[rank]
            to = (rank + 1) % ranks
            if step < ranks - 1:
                added[to] += chunk
                held[to][part] |= sums
            else:
                held[to][part] = sums
    assert all(held[r][p] == {(s, p) for s in range(ranks)} for r, p in product(range(ranks), repeat=2))
    model = models.all_reduce(ranks * chunk, ranks, "fp32")
    assert {4 * n for n in sent} == {model.bytes}
    assert set(added) == {model.total_flop}


# --- how it grows

GROWING = [
    (name, p.name)
    for name in MODELS
    for p in parameters(name)
    if p.type in (int, float) and p.required and p.name != "kv_heads" and not p.name.startswith("filter_")
]
"""Sizes that grow alone: key heads divide the query heads, and a larger filter leaves fewer outputs."""


@settings(deadline=None)
@given(st.sampled_from(GROWING), st.integers(1, 40))
def test_more_of_anything_never_needs_less(dimension: tuple[str, str], factor: int) -> None:
    name, parameter = dimension
    arguments = {k: v for k, v in EXAMPLES[name].items() if k != "causal"}
    small = make(name, arguments)
    large = make(name, {**arguments, parameter: arguments[parameter] * factor})
    assert large.bytes >= small.bytes
    assert large.total_flop >= small.total_flop


@settings(deadline=None)
@given(st.integers(1, 200), st.integers(1, 200), st.integers(1, 200), st.integers(1, 3))
def test_a_product_is_no_larger_than_a_larger_one(m: int, n: int, k: int, more: int) -> None:
    small, large = models.gemm(m, n, k), models.gemm(m + more, n, k + more)
    assert small.bytes < large.bytes
    assert small.total_flop < large.total_flop


@settings(deadline=None)
@given(st.integers(1, 64), st.integers(1, 64), st.sampled_from(["fp64", "fp32", "fp16", "fp8"]))
def test_a_1x1_convolution_is_a_product(channels: int, filters: int, dtype: str) -> None:
    layer, flat = (
        models.convolution(2, channels, 4, 3, filters, 1, 1, dtype),
        models.gemm(24, filters, channels, dtype),
    )
    assert (layer.flop, layer.bytes) == (flat.flop, flat.bytes)


@settings(deadline=None)
@given(st.integers(1, 500), st.integers(1, 500), st.booleans())
def test_a_gemv_is_a_gemm_of_one_column_under_either_convention(m: int, k: int, exact: bool) -> None:
    wide, thin = models.gemm(m, 1, k, "fp32", exact_sums=exact), models.gemv(m, k, "fp32", exact_sums=exact)
    assert (wide.flop, wide.read, wide.written) == (thin.flop, thin.read, thin.written)


# --- names, parameters, refusals


@pytest.mark.parametrize("name", MODELS)
def test_every_parameter_is_explained(name: str) -> None:
    for parameter in parameters(name):
        assert parameter.meaning, f"{name}: {parameter.name}"
        assert parameter.type in (int, float, str, bool)
    assert [p.name for p in parameters(name)] == list(inspect.signature(MODELS[name]).parameters)


@pytest.mark.parametrize("name", MODELS)
def test_every_model_says_its_formula_and_what_it_leaves_out(name: str) -> None:
    assert "FLOP" in (inspect.getdoc(MODELS[name]) or "")
    model = make(name, EXAMPLES[name])
    assert model.notes
    assert model.assumptions


@pytest.mark.parametrize(
    ("written", "meant"),
    [("KV-Cache-Decode", "kv_cache_decode"), ("layernorm", "layer_norm"), ("all-reduce", "all_reduce")],
)
def test_names_are_understood_however_they_are_written(written: str, meant: str) -> None:
    assert named(written) == meant


def test_an_unknown_model_names_the_nearest_and_all() -> None:
    with pytest.raises(UsageError) as caught:
        named("gem")
    assert caught.value.hint.startswith("did you mean gemv or gemm? models: vector, ")


@pytest.mark.parametrize("model", SYNONYMS)
def test_a_name_from_elsewhere_leads_to_the_model(model: str) -> None:
    for word in SYNONYMS[model].split():
        with pytest.raises(UsageError) as caught:
            named(word)
        assert caught.value.hint.startswith(f"did you mean {model.replace('_', '-')}? ")


def test_an_unknown_parameter_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="softmax has no parameter 'cols'") as caught:
        make("softmax", {"rows": 2, "cols": 2})
    assert caught.value.hint.startswith("did you mean columns?")


def test_all_missing_parameters_are_named_at_once() -> None:
    with pytest.raises(UsageError, match="gemm needs n, k") as caught:
        make("gemm", {"m": 2})
    assert "columns of A, rows of B" in caught.value.hint


@pytest.mark.parametrize(
    "make_it",
    [
        lambda: models.convolution(1, 1, 2, 2, 1, 3, 3),
        lambda: models.convolution(1, 3, 8, 8, 4, 3, 3, groups=2),
        lambda: models.convolution(1, 1, 8, 8, 1, 3, 3, padding=-1),
        lambda: models.convolution(1, 1, 8, 8, 1, 3, 3, stride=0),
        lambda: models.embedding(2, 8, distinct=3),
        lambda: models.embedding(2, 8, index="int63"),
        lambda: models.all_reduce(10, 1),
        lambda: models.attention(1, 4, 1, 1, 1, kv_heads=3),
        lambda: models.attention(1, 4, 1, 1, 1, kv_heads=0),
        lambda: models.attention_scores(1, 1, 1, 1, 1, "int8"),
        lambda: models.layer_norm(1, 1, "int8"),
        lambda: models.elementwise(1, 0),
        lambda: models.elementwise(1, 1, flop_per_operation=-1),
        lambda: models.gemm(1, 1, 1, activation=-1),
        lambda: models.gemm(1, 1, 1, batch=0),
        lambda: models.point(1, 0),
        lambda: models.point(-1, 1),
        lambda: models.point(1, 1, "tensor_fp17"),
        lambda: models.point(float("nan"), 1),
        lambda: models.point(1, float("inf")),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_hint(make_it: Callable[[], WorkModel]) -> None:
    with pytest.raises(UsageError) as caught:
        make_it()
    assert caught.value.hint


# --- documents


def test_the_reference_names_a_source_for_what_is_not_arithmetic() -> None:
    """A formula that a paper gives names it: author and year."""
    page = documents.page()
    for name in (
        "softmax",
        "layer_norm",
        "convolution",
        "attention",
        "kv_cache_decode",
        "all_reduce",
        "gemm",
    ):
        section = page.split(f"\n### `{name}`")[1].split("\n### ")[0]
        assert re.search(r"\((?:[A-Z]\w+[,: ].*?\d{4}|Golub, Van Loan)", section), name
