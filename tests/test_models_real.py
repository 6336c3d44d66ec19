"""Models against the counters of real launches whose shapes are known."""

from __future__ import annotations

import functools
from itertools import islice
from pathlib import Path

import pytest

import ncukit
from ncukit import models
from ncukit.model import Kernel
from tests.conftest import reports

Known = tuple[str, int, str, models.WorkModel, float]

NAIVE = models.gemm(1024, 1024, 1024, "fp32", alpha=True, beta=True)
TILED = models.gemm(1024, 1024, 1024, "fp32")
LARGE = models.gemm(8192, 8192, 8192, "bf16")
# part of a report's name, launch (from 1), part of the kernel's name, model, DRAM bytes over the model's
KNOWN = [
    ("t4-ncu2024.2-01", 1, "matrix_addition2D", models.vector(1_000_000, "fp32"), 1.15),
    ("3070-ncu2022.3-02", 2, "daxpy", models.vector(1 << 22, "fp64", flop_per_element=2), 0.992),
    ("1660-super-ncu2024.1-01", 1, "naive_gemm", NAIVE, 9.0),
    ("1660-super-ncu2024.1-02", 1, "sgemm_global_mem_coalesce", NAIVE, 9.3),
    ("a10g-ncu2023.1-02", 1, "one_blocktiling", TILED, 1.64),
    ("a10g-ncu2023.1-02", 4, "warptiling", TILED, 1.01),
    ("h100-80gb-hbm3-ncu2024.1-m02", 1, "matmulKernel4", LARGE, 12.3),
    (
        *("h100-80gb-hbm3-ncu2024.1-m01", 1, "sgemm_tiled_shared"),
        *(models.gemm(8192, 8192, 8192, "fp32", alpha=True, beta=True), 65.2),
    ),
    (
        *("a100-80gb-pcie-ncu2024.1-01", 1, "Kernel"),
        *(models.gemm(384, 384, 384, "int8", out="int8", alpha=True), 0.70),
    ),
    ("4060-ti-ncu2025.4-m01", 1, "fa3db_full_fwd", models.attention(1, 8, 4096, 4096, 64, "fp16"), 0.75),
]  # fmt: skip
by_launch = pytest.mark.parametrize("known", KNOWN, ids=[f"{k[2]}-{k[1]}" for k in KNOWN])


@functools.cache
def read(part: str, number: int) -> Kernel:
    (path,) = (p for p in reports() if part in p.name)
    return next(islice(ncukit.read(path).kernels(), number - 1, None))


@pytest.fixture
def launch(known: Known, shared: Path) -> Kernel:
    """The real launch; needs the shared reports."""
    part, number, name, *_ = known
    assert name in read(part, number).name
    return read(part, number)


@by_launch
def test_counters_hold_the_flops_of_the_model(known: Known, launch: Kernel) -> None:
    model, bytes_ratio = known[3], known[4]
    found = {r.measured.id: r.ratio for r in models.ratios(model, launch)}
    exact = pytest.approx(1, rel=1e-9) if model.exact else pytest.approx(1.02, abs=0.02)
    assert found["flops"] == exact
    assert found["dram_bytes"] == pytest.approx(bytes_ratio, rel=0.01)
    checks = {c.id: c.ok for c in models.compare(model, launch)}
    assert checks["model-flops"] is True
    assert checks["model-precision"] is True


@by_launch
def test_no_launch_is_faster_than_the_arithmetic_of_its_model(known: Known, launch: Kernel) -> None:
    found = models.estimate(known[3], kernel=launch)
    assert found.seconds == launch.number("kernel_duration")
    if found.compute_seconds is not None:
        assert found.seconds > found.compute_seconds
