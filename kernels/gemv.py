"""Matrix-vector product through torch: two FLOP for each element of the matrix, whatever the kernel does.

Shows: an honest limit; DRAM delivers the matrix once, and only fewer bytes would help.
Parameters: m rows, n columns [elements].
Model: gemv(m, n, fp16), 2 m n FLOP; the matrix is read once.
"""

import torch

import ncukit

EXPECT = {
    "verdict": ["memory-bound:dram"],
    "findings": ["dram-direction"],
}
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@ncukit.workload(m=16384, n=16384)
def gemv(m, n):
    torch.manual_seed(0)
    a = torch.randn(m, n, device=DEVICE, dtype=torch.float16)
    x = torch.randn(n, device=DEVICE, dtype=torch.float16)
    return ncukit.Case(
        run=lambda: a @ x,
        reference=lambda: a.double() @ x.double(),
        model=ncukit.models.gemv(m, n, "fp16"),
    )
