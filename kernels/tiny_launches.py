"""A thousand additions to a short vector, each its own kernel.

Shows: the GPU waits for the next launch most of the time, and no kernel is long enough to be worth tuning;
    a CUDA graph or one fused kernel is.
Parameters: n, the length of the vector [elements]; launches.
Model: vector(n, fp32, reads 1, writes 1) with one FLOP an element and launch.
"""

import torch

import ncukit

EXPECT = {
    "gpu_kernel": "elementwise_kernel",
    "region": ["launch-bound"],
    "verdict": ["latency-bound:small-grid"],
    "findings": ["small-grid", "over-at-once"],
}
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@ncukit.workload(n=1024, launches=1000)
def tiny_launches(n, launches):
    torch.manual_seed(0)
    start = torch.randn(n, device=DEVICE)

    def run():
        x = start
        for _ in range(launches):
            x = x + 1.0
        return x

    return ncukit.Case(
        run=run,
        reference=lambda: start.double() + launches,
        model=ncukit.models.vector(n, "fp32", reads=1, writes=1, flop_per_element=launches),
    )
