"""Models of attention: a whole block, fused or not, and one step of decoding."""

from __future__ import annotations

from ncukit.errors import UsageError
from ncukit.model.work import WorkModel
from ncukit.roofline.models.dtypes import matrix_precision, scalar_precision, size
from ncukit.roofline.models.terms import EXP, checked, floating, work


def attention(
    batch: int,
    heads: int,
    queries: int,
    keys: int,
    head_dim: int,
    dtype: str,
    causal: bool = False,
    materialised: bool = False,
) -> WorkModel:
    """Return the model of softmax(Q K^T / sqrt(d)) V for ``batch`` x ``heads`` heads.

    Of each pair of query and key: 2 d FLOP for its score, 2 d for its share of the output, 4 (one less a
    row) to scale, subtract, sum and divide.  Fused, Q, K, V and the output move once; ``materialised``
    writes and reads scores and probabilities as well (Dao et al.: FlashAttention, 2022).  ``causal``: the
    last query sees all keys; a fused kernel skips the other pairs, a materialised one masks them afterwards.

    Raises:
        UsageError: a size is not positive, the data type unfit, or causal with more queries than keys.

    >>> fused = attention(1, 1, 1024, 1024, 64, "fp16")
    >>> naive = attention(1, 1, 1024, 1024, 64, "fp16", materialised=True)
    >>> fused.flop["tensor_fp16"], fused.bytes, naive.bytes
    (268435456, 524288, 8912896)
    """
    kind = checked(dtype, batch=batch, heads=heads, queries=queries, keys=keys, head_dim=head_dim)
    floating(kind, "attention")
    if causal and queries > keys:
        raise UsageError("causal attention with more queries than keys", "the last query sees all keys")
    every, instances = queries * keys, batch * heads
    pairs = every - queries * (queries - 1) // 2 if causal and not materialised else every
    scores = size(kind, instances * every)
    return WorkModel(
        f"attention(batch={batch}, heads={heads}, queries={queries}, keys={keys}, head_dim={head_dim}"
        f"{', causal' if causal else ''}{', materialised' if materialised else ''})",
        work(*_attend(kind, instances, pairs, queries, head_dim)),
        kind,
        size(kind, instances * (queries + 2 * keys) * head_dim) + (2 * scores if materialised else 0),
        size(kind, instances * queries * head_dim) + (2 * scores if materialised else 0),
        ("4 d a pair of query and key, and 4 for the softmax (one less a row)",),
        (
            EXP,
            f"scores and probabilities go through DRAM in {kind}: they exceed the L2"
            if materialised
            else "scores never leave the chip, and K and V are read once for all queries of a head",
            "no mask is read, no dropout, no grouped heads",
        ),
        exact=False,
    )


def kv_cache_decode(
    batch: int, heads: int, kv_heads: int, context: int, head_dim: int, dtype: str
) -> WorkModel:
    """Return the model of one decoding step: a new query of every head attends to ``context`` cached keys.

    4 d FLOP a head and cached key, 4 for the softmax; the cache of ``kv_heads`` heads is read once (Shazeer:
    One Write-Head is All You Need, 2019): about heads / kv_heads multiply-adds an element of it.

    Raises:
        UsageError: a size is not positive, the data type unfit, or kv_heads does not divide heads.

    >>> step = kv_cache_decode(8, 32, 8, 4096, 128, "fp16")
    >>> step.bytes, round(step.intensity, 2)
    (134348800, 4.03)
    """
    sizes = {"batch": batch, "heads": heads, "kv_heads": kv_heads, "context": context, "head_dim": head_dim}
    kind = floating(checked(dtype, **sizes), "attention")
    if heads % kv_heads:
        raise UsageError(f"{kv_heads} key heads cannot serve {heads} query heads", "kv_heads divides heads")
    vectors = size(kind, batch * heads * head_dim)
    grouped = heads > kv_heads
    return WorkModel(
        f"kv_cache_decode({', '.join(f'{name}={value}' for name, value in sizes.items())})",
        work(*_attend(kind, batch * heads, context, 1, head_dim, matrix=grouped)),
        kind,
        size(kind, 2 * batch * kv_heads * context * head_dim) + vectors,
        vectors,
        ("4 d a head and key, and 4 for the softmax (one less a head)",),
        (
            EXP,
            "grouped heads make a small matrix product, for the tensor cores"
            if grouped
            else "one query a head is a matrix-vector product, in FP32 on the ordinary pipes",
            "the new key and value are in the cache already; page tables are not counted",
            "every sequence has its own cache: no shared prefix",
        ),
        exact=False,
    )


def _attend(
    kind: str, instances: int, pairs: int, rows: int, head_dim: int, *, matrix: bool = True
) -> tuple[tuple[str | None, float], ...]:
    """Return products and softmax of ``instances`` heads with ``pairs`` of query and key each."""
    products = matrix_precision(kind) if matrix else scalar_precision(kind)
    return (
        (products, 4 * instances * pairs * head_dim),
        (scalar_precision(kind), instances * (4 * pairs - rows)),
    )
