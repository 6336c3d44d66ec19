"""Analytic models: formulas by hand, against counting every operation, and counters against them."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import asdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncukit import models
from ncukit.errors import UsageError
from ncukit.model import Value
from ncukit.roofline import PRECISIONS, attainable
from ncukit.roofline.models.estimate import EXAMPLES, MODELS, make
from ncukit.roofline.models.terms import ALIASES, BITS, dtype_of, size
from tests.builders import kernel

SMALL = st.integers(1, 5)
SIZES = st.integers(1, 10_000)
FLOATS = st.sampled_from([name for name in BITS if not name.startswith("int")])
RATES = st.floats(1e9, 1e16)
EACH = {name: make(name, arguments) for name, arguments in EXAMPLES.items()}
each_model = pytest.mark.parametrize("model", EACH.values(), ids=EACH)


# --- formulas by hand


def test_the_worked_example_of_a_small_gemm():
    product = models.gemm(m=64, n=32, k=128, dtype="fp16")
    floor = models.bound(product, 200e12, 3e12)
    assert product.total_flop == 524_288
    assert product.bytes == 28_672
    assert product.intensity == pytest.approx(18.29, abs=0.005)
    assert product.total_flop / floor.seconds == pytest.approx(54.86e12, rel=1e-4)
    assert floor.side == "memory-bound"


def test_a_large_gemm_is_bound_by_the_tensor_cores():
    floor = models.bound(models.gemm(8192, 8192, 8192), 989e12, 3.35e12)
    assert floor.side == "compute-bound"
    assert floor.seconds == pytest.approx(1.1117e-3, rel=1e-4)


def test_at_the_ridge_both_sides_take_the_same_time():
    work = models.vector(1, "fp32", reads=1, writes=1, flop_per_element=80)
    assert models.bound(work, 1e12, 1e11).side == "balanced"


@pytest.mark.parametrize(
    ("dtype", "factor", "precision"),
    [
        ("fp64", 8, "fp64"),
        ("fp32", 4, "fp32"),
        ("tf32", 4, "tensor_tf32"),
        ("bf16", 2, "tensor_bf16"),
        ("fp8", 1, "tensor_fp8"),
        ("fp4", 0.5, "tensor_fp4"),
        ("int8", 1, "tensor_int8"),
    ],
)
def test_a_gemm_in_each_type(dtype, factor, precision):
    product = models.gemm(10, 20, 30, dtype)
    assert product.flop == {precision: 12_000}
    assert product.bytes == factor * (300 + 600 + 200)
    assert precision in PRECISIONS


def test_a_gemm_may_write_a_wider_type_than_it_reads():
    product = models.gemm(10, 20, 30, "int8", out="int32")
    assert (product.read, product.written) == (900, 800)


def test_how_sums_are_kept_changes_neither_work_nor_bytes():
    half, single = (models.gemm(8, 8, 8, "fp16", sums) for sums in ("fp16", "fp32"))
    assert (half.flop, half.bytes) == (single.flop, single.bytes)
    assert half.notes != single.notes


def test_the_vector_of_stream_triad():
    triad = models.vector(10**6, "fp64", reads=2, writes=1, flop_per_element=2)
    assert (triad.flop, triad.bytes) == ({"fp64": 2 * 10**6}, 24 * 10**6)


def test_a_copy_does_no_work():
    copy = models.vector(100, "fp32", reads=1, flop_per_element=0)
    assert (copy.flop, copy.intensity) == ({}, 0)


def test_arithmetic_on_half_vectors_is_widened():
    add = models.vector(100, "bf16")
    assert add.flop == {"fp32": 100}
    assert any("widened" in text for text in add.assumptions)


def test_integers_do_no_flops():
    assert models.vector(100, "int32").flop == {}
    assert models.reduction(100, "int8").flop == {}
    assert models.gemv(4, 4, "int8").flop == {}


def test_a_materialised_attention_moves_its_scores_four_times():
    shape = (2, 16, 1024, 1024, 64, "fp16")
    scores = 2 * 16 * 1024 * 1024 * 2
    fused, naive = models.attention(*shape), models.attention(*shape, materialised=True)
    assert naive.bytes - fused.bytes == 4 * scores
    assert naive.flop == fused.flop


def test_a_causal_fused_attention_does_about_half_the_work():
    full, causal = (models.attention(1, 1, 4096, 4096, 64, "fp16", causal=c) for c in (False, True))
    assert causal.flop["tensor_fp16"] / full.flop["tensor_fp16"] == pytest.approx(0.5, abs=2e-4)
    assert causal.bytes == full.bytes


def test_masking_afterwards_saves_no_work():
    shape = (1, 1, 64, 64, 8, "fp16")
    assert (
        models.attention(*shape, causal=True, materialised=True).flop
        == models.attention(*shape, materialised=True).flop
    )


def test_decoding_with_one_key_head_each_does_one_multiply_add_a_cached_element():
    step = models.kv_cache_decode(8, 32, 32, 8192, 128, "fp16")
    assert step.intensity == pytest.approx(1.0, rel=0.02)
    assert step.bytes == pytest.approx(2 * 8 * 32 * 8192 * 128 * 2, rel=0.001)
    assert list(step.flop) == ["fp32"]


def test_grouped_heads_raise_the_intensity_of_decoding():
    alone, grouped = (models.kv_cache_decode(8, 32, kv, 8192, 128, "fp16") for kv in (32, 4))
    assert grouped.intensity / alone.intensity == pytest.approx(8, rel=0.01)
    assert max(grouped.flop, key=grouped.flop.get) == "tensor_fp16"


def test_decoding_is_attention_with_one_query():
    step = models.kv_cache_decode(3, 4, 4, 100, 16, "fp32")
    block = models.attention(3, 4, 1, 100, 16, "fp32")
    assert (step.flop, step.bytes) == (block.flop, block.bytes)


# --- against counting every operation


class Number:
    """A number that counts the floating-point operations done with it."""

    flops = 0

    def __init__(self, value: float = 0.0) -> None:
        self.value = value

    def _do(self, value: float) -> Number:
        Number.flops += 1
        return Number(value)

    def __add__(self, other):
        return self._do(self.value + other.value)

    def __sub__(self, other):
        return self._do(self.value - other.value)

    def __mul__(self, other):
        return self._do(self.value * other.value)

    def __truediv__(self, other):
        return self._do(self.value / other.value)


def matrix(rows, columns):
    return [[Number(0.1 * (i + 2 * j)) for j in range(columns)] for i in range(rows)]


def product(a, b):
    columns = list(zip(*b, strict=True))
    return [[dot(row, column) for column in columns] for row in a]


def dot(x, y):
    total = Number()
    for a, b in zip(x, y, strict=True):
        total = total + a * b
    return total


def softmax(row):
    """The plain algorithm; maximum and exponentials are no floating-point operations."""
    top = Number(max(x.value for x in row))
    powers = [Number(math.exp((x - top).value)) for x in row]
    total = powers[0]
    for power in powers[1:]:
        total = total + power
    return [power / total for power in powers]


def counted(function):
    Number.flops = 0
    function()
    return Number.flops


@settings(deadline=None)
@given(SMALL, SMALL, SMALL)
def test_gemm_and_gemv_count_every_operation(m, n, k):
    assert models.gemm(m, n, k, "fp32").total_flop == counted(lambda: product(matrix(m, k), matrix(k, n)))
    assert models.gemv(m, k, "fp32").total_flop == counted(lambda: product(matrix(m, k), matrix(k, 1)))


@settings(deadline=None)
@given(SMALL, SMALL)
def test_softmax_counts_every_operation(rows, columns):
    run = counted(lambda: [softmax(row) for row in matrix(rows, columns)])
    assert models.softmax(rows, columns, "fp32").total_flop == run


@settings(deadline=None)
@given(st.integers(1, 50))
def test_a_sum_counts_every_operation_in_any_order(n):
    def tree(values):
        if len(values) == 1:
            return values[0]
        return tree(
            [a + b for a, b in zip(values[::2], values[1::2], strict=False)] + values[len(values) & ~1 :]
        )

    assert models.reduction(n, "fp32").total_flop == counted(lambda: tree(matrix(1, n)[0]))


def attend(queries, keys, values, *, causal):
    scale = Number(len(queries[0]) ** -0.5)
    for i, query in enumerate(queries):
        seen = len(keys) - len(queries) + i + 1 if causal else len(keys)
        weights = softmax([dot(query, key) * scale for key in keys[:seen]])
        product([weights], values[:seen])


@settings(deadline=None)
@given(SMALL, SMALL, SMALL, SMALL, st.integers(0, 4), st.booleans())
def test_attention_counts_every_operation(batch, heads, queries, head_dim, more, causal):
    keys = queries + more

    def run():
        for _ in range(batch * heads):
            attend(*(matrix(rows, head_dim) for rows in (queries, keys, keys)), causal=causal)

    model = models.attention(batch, heads, queries, keys, head_dim, "fp32", causal=causal)
    assert model.total_flop == counted(run)


@settings(deadline=None)
@given(SMALL, SMALL, SMALL, SMALL, SMALL)
def test_decoding_counts_every_operation_and_every_element(batch, kv_heads, group, context, head_dim):
    touched = set()

    def run():
        for b in range(batch):
            for head in range(kv_heads * group):
                cache = head // group
                touched.update(
                    (b, "kv"[v], cache, key, d)
                    for v in (0, 1)
                    for key in range(context)
                    for d in range(head_dim)
                )
                touched.update((b, io, head, d) for io in ("query", "output") for d in range(head_dim))
                attend(*(matrix(rows, head_dim) for rows in (1, context, context)), causal=False)

    model = models.kv_cache_decode(batch, kv_heads * group, kv_heads, context, head_dim, "fp32")
    assert model.total_flop == counted(run)
    assert model.bytes == 4 * len(touched)


# --- properties


@settings(deadline=None)
@given(SIZES, SIZES, SIZES, FLOATS)
def test_a_gemm_is_its_transpose(m, n, k, dtype):
    a, b = models.gemm(m, n, k, dtype), models.gemm(n, m, k, dtype)
    assert (a.flop, a.bytes) == (b.flop, b.bytes)


@settings(deadline=None)
@given(SIZES, SIZES, FLOATS)
def test_a_gemm_with_one_column_is_a_gemv(m, k, dtype):
    a, b = models.gemm(m, 1, k, dtype), models.gemv(m, k, dtype)
    assert (a.total_flop, a.bytes) == (b.total_flop, b.bytes)


@settings(deadline=None)
@given(st.integers(1, 2000), FLOATS)
def test_the_intensity_of_a_square_gemm_grows_with_its_size(n, dtype):
    assert models.gemm(2 * n, 2 * n, 2 * n, dtype).intensity == pytest.approx(
        2 * models.gemm(n, n, n, dtype).intensity
    )


@settings(deadline=None)
@given(st.integers(1, 1000), st.integers(1, 1000), FLOATS)
def test_fusing_attention_never_moves_more(queries, keys, dtype):
    shape = (1, 1, queries, keys, 64, dtype)
    assert models.attention(*shape).bytes < models.attention(*shape, materialised=True).bytes


@settings(deadline=None)
@given(st.sampled_from(list(EACH.values())), RATES, RATES)
def test_the_bound_is_the_roofline(model, peak, bandwidth):
    floor = models.bound(model, peak, bandwidth)
    assert floor.seconds == pytest.approx(max(model.total_flop / peak, model.bytes / bandwidth))
    if model.flop:
        roof = attainable(model.intensity, peak, bandwidth)
        assert model.total_flop / floor.seconds == pytest.approx(roof)


@settings(deadline=None)
@given(st.sampled_from(list(EACH.values())), RATES, RATES, st.floats(1.0, 100.0))
def test_a_faster_machine_never_needs_longer(model, peak, bandwidth, factor):
    slow = models.bound(model, peak, bandwidth).seconds
    assert models.bound(model, peak * factor, bandwidth).seconds <= slow
    assert models.bound(model, peak, bandwidth * factor).seconds <= slow


def test_each_precision_has_its_own_peak_and_the_longest_counts():
    block = models.attention(1, 1, 1024, 1024, 64, "fp16")
    peaks = {"tensor_fp16": 1e15, "fp32": 1e12}
    floor = models.bound(block, peaks, 1e15)
    assert floor.compute_seconds == block.flop["fp32"] / 1e12


@each_model
def test_every_model_survives_json(model):
    assert models.WorkModel.from_dict(json.loads(json.dumps(asdict(model)))) == model


@each_model
def test_every_model_says_what_it_counted_and_what_it_leaves_out(model):
    assert model.notes
    assert model.bytes == model.read + model.written
    assert set(model.flop) <= set(PRECISIONS)
    assert asdict(model)["bytes"] == model.bytes


def test_the_models_are_these():
    verbs = {"bound", "compare", "estimate", "ratios"}
    assert set(EACH) == set(MODELS) == {name for name in models.__all__ if name.islower()} - verbs
    assert all(MODELS[name] is getattr(models, name) for name in MODELS)


# --- what is refused


@pytest.mark.parametrize("name", [*BITS, *ALIASES, "torch.float16", "FP32"])
def test_types_go_by_every_usual_name(name):
    assert dtype_of(name) in BITS


def test_an_unknown_type_is_refused_with_the_nearest():
    with pytest.raises(UsageError, match="'pf16' is no data type") as caught:
        models.gemm(1, 1, 1, "pf16")
    assert caught.value.hint == "did you mean fp16?"


@pytest.mark.parametrize(
    "make",
    [
        lambda: models.gemm(0, 1, 1),
        lambda: models.gemm(1, 1, 1, "int32"),
        lambda: models.gemm(1, 1, 1, "fp64", "fp32"),
        lambda: models.gemm(1, 1, 1, "int8", "fp32"),
        lambda: models.vector(1, "fp32", reads=0, writes=0),
        lambda: models.vector(1, "fp32", reads=3, writes=-1),
        lambda: models.vector(1, "fp32", flop_per_element=-1),
        lambda: models.softmax(1, 1, "int8"),
        lambda: models.attention(1, 1, 2, 1, 1, "fp16", causal=True),
        lambda: models.attention(1, 1, 1, 1, 1, "int8"),
        lambda: models.kv_cache_decode(1, 3, 2, 1, 1, "fp16"),
        lambda: models.bound(EACH["gemm"], 0, 1e12),
        lambda: models.bound(EACH["gemm"], 1e12, -1),
        lambda: models.bound(EACH["gemm"], {"fp32": 1e12}, 1e12),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_hint(make):
    with pytest.raises(UsageError) as caught:
        make()
    assert caught.value.hint


@settings(deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(list(BITS)))
def test_bytes_are_whole_where_elements_are(elements, dtype):
    assert size(dtype, elements) * 8 == BITS[dtype] * elements


def test_the_models_need_the_standard_library_only():
    heavy = {"numpy", "pandas", "torch", "plotly", "ncu_report", "jinja2"}
    code = f"import sys, ncukit; ncukit.models.gemm; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# --- counters against a model

COPY = models.vector(10**8, "fp32", reads=1, flop_per_element=0)  # 400 MB in, 400 MB out
GEMM = models.gemm(4096, 4096, 4096, "fp16")


def checks(model, launches=1, **neutral):
    return {c.id: c for c in models.compare(model, kernel(**neutral), launches=launches)}


def tensor(flop):
    """Counters of a kernel that did ``flop`` on the tensor cores and nothing elsewhere."""
    return {f"flops_{p}": flop if p == "tensor_fp16" else 0 for p in PRECISIONS}


def test_counters_that_agree_pass():
    found = checks(GEMM, **tensor(2 * 4096**3), dram_bytes=1.2 * GEMM.bytes)
    assert {c.id: c.ok for c in found.values()} == {
        "model-flops": True,
        "model-precision": True,
        "model-bytes": True,
    }


def test_padding_of_the_last_tile_is_no_fault_but_twice_the_work_is():
    assert checks(GEMM, **tensor(1.05 * GEMM.total_flop))["model-flops"].ok is True
    twice = checks(GEMM, **tensor(2 * GEMM.total_flop))["model-flops"]
    assert twice.ok is False
    assert "2 times the FLOPs" in twice.message
    assert "padded" in twice.message


def test_half_the_flops_make_the_shape_suspect():
    half = checks(GEMM, **tensor(GEMM.total_flop / 2))["model-flops"]
    assert half.ok is False
    assert "the model's shape" in half.message


def test_one_launch_of_several_may_do_less_than_the_model():
    found = checks(GEMM, 3, **tensor(GEMM.total_flop / 2), dram_bytes=GEMM.bytes / 2)
    assert found["model-flops"].ok is None
    assert "all 3 launches" in found["model-flops"].message
    assert found["model-bytes"].ok is None
    assert "model-precision" not in found


def test_a_product_that_missed_the_tensor_cores_is_named():
    found = checks(GEMM, **{**tensor(0), "flops_fp32": GEMM.total_flop})
    assert found["model-flops"].ok is True
    assert found["model-precision"].ok is False
    assert "100 % of the FLOPs are fp32, not tensor_fp16" in found["model-precision"].message
    assert "tensor cores were not used" in found["model-precision"].message


def test_single_precision_that_ran_as_tf32_is_named():
    found = checks(models.gemm(512, 512, 512, "fp32"), **{**tensor(0), "flops_tensor_tf32": 2 * 512**3})
    assert "TF32 keeps 10 bits" in found["model-precision"].message


def test_constant_loads_that_look_like_half_arithmetic_do_not_count():
    loads = Value("flops_fp16", 1e12, "FLOP", "estimate")
    assert checks(GEMM, **{**tensor(GEMM.total_flop), "flops_fp16": loads})["model-flops"].ok is True


def test_exponentials_may_add_to_the_flops_of_a_softmax():
    rows = models.softmax(1024, 1024, "fp32")
    more = checks(rows, flops_fp32=2.3 * rows.total_flop)["model-flops"]
    assert more.ok is True
    assert "2.3 times" in more.message
    assert "exp" in more.message


def test_unknown_counters_are_said_and_not_taken_for_zero():
    found = checks(GEMM)
    assert found["model-flops"].ok is None
    assert "flops_tensor_fp16 is unknown (not given by the test)" in found["model-flops"].message
    assert found["model-bytes"].ok is None
    assert "dram_bytes is unknown" in found["model-bytes"].message


def test_traffic_above_the_compulsory_bytes_is_a_factor():
    found = checks(COPY, dram_bytes=3.6e9, dram_read_bytes=3.2e9, dram_write_bytes=0.4e9)["model-bytes"]
    assert found.ok is False
    assert "4.5 times the compulsory bytes" in found.message
    assert "reads 8 times, writes 1 times" in found.message


def test_traffic_below_the_compulsory_bytes_makes_cache_compression_or_shape_suspect():
    found = checks(COPY, dram_bytes=0.3e9, l2_cache_size=50e6)["model-bytes"]
    assert found.ok is False
    assert "in the L2 (50 MB) already" in found.message
    assert "compression" in found.message


def test_what_was_written_last_may_still_be_in_the_l2():
    found = checks(COPY, dram_bytes=0.76e9, l2_cache_size=50e6)["model-bytes"]
    assert found.ok is True
    assert "still be in the L2 (50 MB)" in found.message


def test_a_launch_that_is_faster_than_its_bytes_is_suspect():
    found = checks(COPY, kernel_duration=100e-6, peak_dram_bandwidth=2e12)["model-time"]
    assert found.ok is False
    assert "need 400.00 µs at peak DRAM bandwidth, but the launch took 100.00 µs" in found.message


def test_a_launch_that_is_faster_than_its_flops_is_suspect():
    found = checks(GEMM, kernel_duration=100e-6, peak_flop_rate_tensor_fp16=3e14)["model-time"]
    assert found.ok is False
    assert "peak tensor_fp16 rate" in found.message


def test_a_launch_above_its_floor_says_by_how_much():
    found = checks(COPY, kernel_duration=800e-6, peak_dram_bandwidth=2e12)["model-time"]
    assert found.ok is True
    assert "2 times what the model needs" in found.message


def test_a_failed_launch_is_not_compared():
    assert models.compare(COPY, kernel(failed="the pass failed")) == ()
