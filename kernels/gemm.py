"""Half-precision matrix product through torch: the tensor cores at work.

Shows: what the vendor's library gets out of the tensor cores, the mark for every product of your own.
Parameters: m, n, k, the sizes of C (m x n) and of the sums (k) [elements].
Model: gemm(m, n, k, fp16), 2 m n k FLOP.
"""

import torch

import ncukit

EXPECT = {
    "verdict": ["compute-bound:tensor", "balanced"],
    "findings": ["tensor-use"],
}
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@ncukit.workload(m=4096, n=4096, k=4096)
def gemm(m, n, k):
    torch.manual_seed(0)
    a = torch.randn(m, k, device=DEVICE, dtype=torch.float16)
    b = torch.randn(k, n, device=DEVICE, dtype=torch.float16)
    return ncukit.Case(
        run=lambda: a @ b,
        reference=lambda: a.double() @ b.double(),
        model=ncukit.models.gemm(m, n, k, "fp16"),
    )
