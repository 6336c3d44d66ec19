"""Models of attention: scores alone, a whole block, fused or not, and one step of decoding."""

from __future__ import annotations

from typing import Annotated

from ncukit.errors import UsageError
from ncukit.model.work import WorkModel
from ncukit.roofline.models.dtypes import dtype_of, matrix_precision, scalar_precision, size
from ncukit.roofline.models.parameters import Batch, DType, HeadDim, Heads, Keys, Queries
from ncukit.roofline.models.terms import COLD, EXP, called, checked, floating, work

KVHeads = Annotated[int | None, "key and value heads: fewer for GQA, 1 for MQA (as many as query heads)"]


def attention_scores(
    batch: Batch,
    heads: Heads,
    queries: Queries,
    keys: Keys,
    head_dim: HeadDim,
    dtype: DType = "fp16",
    *,
    kv_heads: KVHeads = None,
    scaled: Annotated[bool, "multiply by 1 / sqrt(d): 1 FLOP a score"] = True,
) -> WorkModel:
    """Return the model of the scores Q K^T / sqrt(d) alone, all of them written: the naive first step.

    2 d FLOP a pair of query and key, and 1 to scale it (Vaswani et al.: Attention Is All You Need, 2017);
    Q and K are read, ``queries`` x ``keys`` scores a head are written in ``dtype``.

    Raises:
        UsageError: a size is not positive, kv_heads does not divide heads, or the data type is unfit.

    >>> scores = attention_scores(1, 1, 1024, 1024, 64, "fp16")
    >>> scores.flop["tensor_fp16"], scores.read, scores.written
    (134217728, 262144, 2097152)
    """
    kind = checked(dtype, batch=batch, heads=heads, queries=queries, keys=keys, head_dim=head_dim)
    shared = _groups(heads, kv_heads)
    pairs = batch * heads * queries * keys
    return WorkModel(
        called(
            attention_scores,
            batch=batch,
            heads=heads,
            queries=queries,
            keys=keys,
            head_dim=head_dim,
            kv_heads=kv_heads,
        ),
        work(
            (matrix_precision(kind), 2 * pairs * head_dim),
            (scalar_precision(floating(kind, "scores")), pairs * scaled),
        ),
        kind,
        size(kind, batch * (heads * queries + shared * keys) * head_dim),
        size(kind, pairs),
        ("2 d a pair of query and key" + (", and 1 to scale it" if scaled else ""),),
        ("no mask, no softmax, no product with V", COLD),
    )


def attention(
    batch: Batch,
    heads: Heads,
    queries: Queries,
    keys: Keys,
    head_dim: HeadDim,
    dtype: DType = "fp16",
    causal: Annotated[bool, "the last query sees all keys, each one before it one less"] = False,
    materialised: Annotated[bool, "scores and probabilities go through DRAM: not fused"] = False,
    *,
    kv_heads: KVHeads = None,
) -> WorkModel:
    """Return the model of softmax(Q K^T / sqrt(d)) V for ``batch`` x ``heads`` heads.

    Of each pair of query and key: 2 d FLOP for its score, 2 d for its share of the output, 4 (one less a
    row) to scale, subtract, sum and divide.  Fused, Q, K, V and the output move once; ``materialised``
    writes and reads scores and probabilities as well (Dao et al.: FlashAttention, 2022).  ``causal``: the
    last query sees all keys; a fused kernel skips the other pairs, a materialised one masks them afterwards.

    Raises:
        UsageError: a size is not positive, kv_heads does not divide heads, the data type is unfit, or causal
            with more queries than keys.

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
    cached = batch * _groups(heads, kv_heads) * keys * head_dim
    return WorkModel(
        called(
            attention,
            batch=batch,
            heads=heads,
            queries=queries,
            keys=keys,
            head_dim=head_dim,
            causal=causal,
            materialised=materialised,
            kv_heads=kv_heads,
        ),
        work(*_attend(kind, instances, pairs, queries, head_dim)),
        kind,
        size(kind, instances * queries * head_dim + 2 * cached) + (2 * scores if materialised else 0),
        size(kind, instances * queries * head_dim) + (2 * scores if materialised else 0),
        ("4 d a pair of query and key, and 4 for the softmax (one less a row)",),
        (
            EXP,
            f"scores and probabilities go through DRAM in {kind}: they exceed the L2"
            if materialised
            else "scores never leave the chip, and K and V are read once for all queries of a head",
            "no mask is read, no dropout, no sums of rows are written",
        ),
        exact=False,
    )


def kv_cache_decode(
    batch: Annotated[int, "sequences"],
    heads: Heads,
    kv_heads: Annotated[int, "key and value heads: as many as query heads, fewer for GQA, 1 for MQA"],
    context: Annotated[int, "cached positions of a sequence"],
    head_dim: HeadDim,
    dtype: DType = "fp16",
    *,
    cache: Annotated[str | None, "data type of the cache (that of the queries)"] = None,
    page_size: Annotated[int | None, "positions of a page; each needs an entry of 4 bytes in a table"] = None,
) -> WorkModel:
    """Return the model of one decoding step: a new query of every head attends to ``context`` cached keys.

    4 d FLOP a head and cached key, 4 for the softmax; the cache of ``kv_heads`` heads is read once (Shazeer:
    One Write-Head is All You Need, 2019): about heads / kv_heads multiply-adds an element of it.  Paged, the
    tables of all sequences are read as well (Kwon et al.: PagedAttention, 2023).

    Raises:
        UsageError: a size is not positive, the data type unfit, or kv_heads does not divide heads.

    >>> step = kv_cache_decode(8, 32, 8, 4096, 128, "fp16")
    >>> step.bytes, round(step.intensity, 2)
    (134348800, 4.03)
    """
    sizes = {"batch": batch, "heads": heads, "kv_heads": kv_heads, "context": context, "head_dim": head_dim}
    kind = floating(checked(dtype, **sizes, page_size=page_size or 1), "attention")
    kept = kind if cache is None else dtype_of(cache)
    _groups(heads, kv_heads)
    vectors = size(kind, batch * heads * head_dim)
    grouped = heads > kv_heads
    table = 4 * batch * -(-context // page_size) if page_size else 0
    return WorkModel(
        called(kv_cache_decode, **sizes, cache=cache, page_size=page_size),
        work(*_attend(kind, batch * heads, context, 1, head_dim, matrix=grouped)),
        kind,
        size(kept, 2 * batch * kv_heads * context * head_dim) + vectors + table,
        vectors,
        ("4 d a head and key, and 4 for the softmax (one less a head)",),
        (
            EXP,
            "grouped heads make a small matrix product, for the tensor cores"
            if grouped
            else "one query a head is a matrix-vector product, in FP32 on the ordinary pipes",
            "the new key and value are in the cache already",
            *(("the free end of a last page is not read",) if page_size else ("no page tables",)),
            *(
                ()
                if kept == kind
                else (f"values are widened from {kept} (no FLOPs); its scales are not counted",)
            ),
            "every sequence has its own cache: no shared prefix; no partial results of a split context",
        ),
        exact=False,
    )


def _groups(heads: int, kv_heads: int | None) -> int:
    """Return the number of key heads."""
    if kv_heads is None:
        return heads
    if kv_heads < 1:
        raise UsageError(f"kv_heads is {kv_heads}", "sizes are at least 1")
    if heads % kv_heads:
        raise UsageError(f"{kv_heads} key heads cannot serve {heads} query heads", "kv_heads divides heads")
    return kv_heads


def _attend(
    kind: str, instances: int, pairs: int, rows: int, head_dim: int, *, matrix: bool = True
) -> tuple[tuple[str | None, float], ...]:
    """Return products and softmax of ``instances`` heads with ``pairs`` of query and key each."""
    products = matrix_precision(kind) if matrix else scalar_precision(kind)
    return (
        (products, 4 * instances * pairs * head_dim),
        (scalar_precision(kind), instances * (4 * pairs - rows)),
    )
