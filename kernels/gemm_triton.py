"""Half-precision matrix product in Triton: tiles, a loop over k, tensor cores.

Shows: a short kernel on the tensor cores, to compare with gemm.py; without a GPU Triton interprets it.
Parameters: m, n, k, the sizes of C (m x n) and of the sums (k) [elements].
Model: gemm(m, n, k, fp16), 2 m n k FLOP.
"""

import os

import torch

import ncukit

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu":
    os.environ.setdefault("TRITON_INTERPRET", "1")  # read when Triton is imported

import triton  # noqa: E402
import triton.language as tl  # noqa: E402

EXPECT = {
    "gpu_kernel": "multiply_tiles",
    "verdict": ["compute-bound:tensor", "memory-bound:shared", "balanced"],
    "findings": ["tensor-use"],
}
TILE_M, TILE_N, TILE_K, GROUP = 128, 128, 64, 8


@triton.jit
def multiply_tiles(
    a, b, c, m, n, k, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, GROUP: tl.constexpr
):
    """Compute one tile of C; GROUP rows of tiles go together, so that they share columns of B in the L2."""
    tile = tl.program_id(0)
    tile_rows, tile_columns = tl.cdiv(m, TILE_M), tl.cdiv(n, TILE_N)
    first = tile // (GROUP * tile_columns) * GROUP
    height = min(tile_rows - first, GROUP)
    inside = tile % (GROUP * tile_columns)
    rows = (first + inside % height) * TILE_M + tl.arange(0, TILE_M)
    columns = inside // height * TILE_N + tl.arange(0, TILE_N)
    inner = tl.arange(0, TILE_K)
    a += rows[:, None] * k + inner[None, :]
    b += inner[:, None] * n + columns[None, :]
    total = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
    for start in range(0, k, TILE_K):
        left = tl.load(a, mask=(rows[:, None] < m) & (start + inner[None, :] < k), other=0.0)
        right = tl.load(b, mask=(start + inner[:, None] < k) & (columns[None, :] < n), other=0.0)
        total = tl.dot(left, right, total)
        a += TILE_K
        b += TILE_K * n
    where = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c + rows[:, None] * n + columns[None, :], total.to(tl.float16), mask=where)


@ncukit.workload(m=4096, n=4096, k=4096)
def gemm_triton(m, n, k):
    torch.manual_seed(0)
    a = torch.randn(m, k, device=DEVICE, dtype=torch.float16)
    b = torch.randn(k, n, device=DEVICE, dtype=torch.float16)
    c = torch.empty(m, n, device=DEVICE, dtype=torch.float16)
    grid = (triton.cdiv(m, TILE_M) * triton.cdiv(n, TILE_N),)

    def run():
        multiply_tiles[grid](a, b, c, m, n, k, TILE_M, TILE_N, TILE_K, GROUP, num_warps=8, num_stages=3)
        return c

    return ncukit.Case(
        run=run,
        reference=lambda: a.double() @ b.double(),
        model=ncukit.models.gemm(m, n, k, "fp16"),
    )
