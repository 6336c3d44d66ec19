"""One step of decoding: a new query for each head attends to a long cache of keys and values.

Shows: the cache is read once for one or a few multiply-adds an element: bytes a token are the time a token.
Parameters: batch, heads, kv_heads (heads divided by it share a cache), context, head_dim [elements].
Model: kv_cache_decode(batch, heads, kv_heads, context, head_dim, fp16), 4 d + 4 FLOP a head and key.
"""

import torch

import ncukit

EXPECT = {
    "verdict": ["memory-bound:dram"],
    "findings": ["dram-direction"],
    "counted": {"flop": None},  # tensor cores pad one query to a tile of 16 or more
}
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@ncukit.workload(batch=8, heads=32, kv_heads=32, context=8192, head_dim=128)
def kv_decode(batch, heads, kv_heads, context, head_dim):
    torch.manual_seed(0)
    shape = {"device": DEVICE, "dtype": torch.float16}
    q = torch.randn(batch, heads, 1, head_dim, **shape)
    k = torch.randn(batch, kv_heads, context, head_dim, **shape)
    v = torch.randn(batch, kv_heads, context, head_dim, **shape)

    def reference():
        keys, values = (x.float().repeat_interleave(heads // kv_heads, dim=1) for x in (k, v))
        weights = torch.softmax(q.float() @ keys.transpose(-2, -1) * head_dim**-0.5, dim=-1)
        return weights @ values

    return ncukit.Case(
        run=lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=heads != kv_heads),
        reference=reference,
        model=ncukit.models.kv_cache_decode(batch, heads, kv_heads, context, head_dim, "fp16"),
    )
