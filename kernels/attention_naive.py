"""Attention as its formula reads: all scores are written to memory, read, normalised and read again.

Shows: the scores, not the inputs, are the traffic; its longest kernels only carry them. A fused kernel
    moves a fraction (see the model without ``materialised``).
Parameters: batch, heads, queries, keys, head_dim [elements].
Model: attention(batch, heads, queries, keys, head_dim, fp16, materialised), 4 d + 4 FLOP a query and key.
"""

import torch

import ncukit

EXPECT = {
    "gpu_kernel": "softmax",
    "verdict": ["memory-bound:dram"],
    "findings": ["busiest-unit"],
}
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@ncukit.workload(batch=4, heads=16, queries=2048, keys=2048, head_dim=64)
def attention_naive(batch, heads, queries, keys, head_dim):
    torch.manual_seed(0)
    shape = {"device": DEVICE, "dtype": torch.float16}
    q = torch.randn(batch, heads, queries, head_dim, **shape)
    k = torch.randn(batch, heads, keys, head_dim, **shape)
    v = torch.randn(batch, heads, keys, head_dim, **shape)

    def run():
        scores = q @ k.transpose(-2, -1) * head_dim**-0.5
        return torch.softmax(scores, dim=-1) @ v

    return ncukit.Case(
        run=run,
        reference=lambda: torch.nn.functional.scaled_dot_product_attention(q.float(), k.float(), v.float()),
        model=ncukit.models.attention(batch, heads, queries, keys, head_dim, "fp16", materialised=True),
    )
