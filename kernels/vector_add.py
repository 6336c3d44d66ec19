"""Sum of two vectors through torch: one FLOP for twelve bytes.

Shows: what DRAM can do; every elementwise operation that is not fused costs as much.
Parameters: n, the length of the vectors [elements].
Model: vector(n, fp32, reads 2, writes 1), n FLOP.
"""

import torch

import ncukit

EXPECT = {
    "gpu_kernel": "elementwise_kernel",
    "verdict": ["memory-bound:dram"],
    "findings": ["busiest-unit"],
    "counted": {"flop": [0.9, 2.1]},  # torch computes a + alpha * b: a multiply-add
}
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@ncukit.workload(n=1 << 26)
def vector_add(n):
    torch.manual_seed(0)
    a = torch.randn(n, device=DEVICE)
    b = torch.randn(n, device=DEVICE)
    return ncukit.Case(
        run=lambda: a + b,
        reference=lambda: a.double() + b.double(),
        model=ncukit.models.vector(n, "fp32", reads=2, writes=1),
    )
