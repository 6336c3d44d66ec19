"""Models of products: matrices, vectors, convolution, attention."""

from __future__ import annotations

from typing import Annotated

from ncukit.errors import UsageError
from ncukit.model.work import WorkModel
from ncukit.roofline.models.terms import (
    BITS,
    COLD,
    EXP,
    Batch,
    DType,
    ExactSums,
    HeadDim,
    Heads,
    Keys,
    Queries,
    accumulator,
    called,
    checked,
    count,
    dtype_of,
    floating,
    matrix_precision,
    scalar_precision,
    scales,
    size,
    widened,
    work,
)

# ---- Models of products: matrix by matrix, matrix by vector, convolution


def gemm(
    m: Annotated[int, "rows of A and C"],
    n: Annotated[int, "columns of B and C"],
    k: Annotated[int, "columns of A, rows of B: what is summed over"],
    dtype: DType = "fp16",
    accumulate: Annotated[str | None, "type of the sums (fp32; fp64 or int32 for such factors)"] = None,
    *,
    out: Annotated[str | None, "type of C (that of A and B)"] = None,
    batch: Batch = 1,
    alpha: Annotated[bool, "scale the product: 1 FLOP an element of C"] = False,
    beta: Annotated[bool, "add beta C: 2 FLOP an element of C, which is read as well"] = False,
    bias: Annotated[bool, "add a bias of n elements: 1 FLOP an element of C"] = False,
    activation: Annotated[float, "FLOP of an activation, an element of C"] = 0,
    scale_block: Annotated[int | None, "elements that share a one-byte scale, along k"] = None,
    exact_sums: ExactSums = False,
) -> WorkModel:
    """Return the model of C = A B with A of ``m`` x ``k`` and B of ``k`` x ``n`` elements.

    2 m n k FLOP (Golub, Van Loan: Matrix Computations, section 1.1); A and B are read, C is written in
    ``out``.  How sums are kept changes neither.  Scaling, bias and activation are work of the same kernel on
    the ordinary pipes, in FP64 for FP64 sums, else in FP32: they move nothing but what they read.

    Raises:
        UsageError: a size is not positive, a data type is unknown, or sums are narrower than the factors.

    >>> product = gemm(64, 32, 128, dtype="fp16")
    >>> product.flop, product.bytes, round(product.intensity, 2)
    ({'tensor_fp16': 524288}, 28672, 18.29)
    """
    kind = checked(dtype, m=m, n=n, k=k, batch=batch, scale_block=scale_block or 1)
    sums = dtype_of(accumulate) if accumulate else accumulator(kind)
    if BITS[sums] < BITS[kind] or sums.startswith("int") != kind.startswith("int"):
        raise UsageError(f"{kind} products cannot be summed in {sums}", f"use {accumulator(kind)}")
    if activation < 0:
        raise UsageError(
            f"activation is {activation:g}", "give the FLOP that it takes an element, 0 for none"
        )
    result, outputs = dtype_of(out) if out else kind, batch * m * n
    extras = {"alpha": 1 * alpha, "beta": 2 * beta, "bias": 1 * bias, "activation": activation}
    read = size(kind, batch * (m * k + k * n)) + size(result, outputs * beta + n * bias)
    if scale_block:
        read += batch * (m + n) * -(-k // scale_block)
    lacking = [name for name, flop in extras.items() if not flop and name != "beta"]
    return WorkModel(
        called(
            gemm,
            **{"m": m, "n": n, "k": k, "batch": batch, "alpha": alpha, "beta": beta, "bias": bias},
            activation=activation,
        ),
        work(
            (matrix_precision(kind), (2 * k - exact_sums) * outputs),
            ("fp64" if sums == "fp64" else "fp32", sum(extras.values()) * outputs),
        ),
        kind,
        read,
        size(result, outputs),
        (
            _sums("2 m n k", "(2k - 1) m n", exact_sums),
            *(f"{name}: {flop:g} an element of C" for name, flop in extras.items() if flop),
            f"sums in {sums}",
        ),
        (
            *(() if beta else ("C is written and not read (beta = 0)",)),
            *((f"no {', '.join(lacking)}",) if lacking else ()),
            COLD,
            *(() if scale_block else scales(kind)),
        ),
        exact=not activation,
    )


def gemv(
    m: Annotated[int, "rows of A, elements of y"],
    n: Annotated[int, "columns of A, elements of x"],
    dtype: DType = "fp16",
    *,
    exact_sums: ExactSums = False,
) -> WorkModel:
    """Return the model of y = A x with A of ``m`` x ``n`` elements.

    2 m n FLOP (BLAS level 2); A and x are read, y is written: at most 2 FLOP an element of A.

    Raises:
        UsageError: a size is not positive, or the data type is unknown.

    >>> gemv(4096, 4096, "fp16").bytes, round(gemv(4096, 4096, "fp16").intensity, 3)
    (33570816, 1.0)
    """
    kind = checked(dtype, m=m, n=n)
    return WorkModel(
        called(gemv, m=m, n=n),
        work((scalar_precision(kind), (2 * n - exact_sums) * m)),
        kind,
        size(kind, m * n + n),
        size(kind, m),
        (_sums("2 m n", "m (2n - 1)", exact_sums),),
        (*widened(kind), "y is written and not read (beta = 0)", COLD, *scales(kind)),
    )


def convolution(
    batch: Annotated[int, "images"],
    channels: Annotated[int, "input channels"],
    height: Annotated[int, "rows of an image"],
    width: Annotated[int, "columns of an image"],
    filters: Annotated[int, "output channels"],
    filter_height: Annotated[int, "rows of a filter"],
    filter_width: Annotated[int, "columns of a filter"],
    dtype: DType = "fp16",
    *,
    stride: Annotated[int, "steps between outputs"] = 1,
    padding: Annotated[int, "zeros around an image, each side"] = 0,
    dilation: Annotated[int, "steps between the taps of a filter"] = 1,
    groups: Annotated[int, "groups of channels that do not mix"] = 1,
    bias: Annotated[bool, "add one value a filter: 1 FLOP an output"] = False,
    exact_sums: ExactSums = False,
) -> WorkModel:
    """Return the model of a two-dimensional convolution, forward.

    2 FLOP a tap, output and channel of its group: the implicit GEMM of ``batch`` x outputs by ``filters`` by
    channels / ``groups`` x taps (Chetlur et al.: cuDNN, 2014); taps on padding count.  Each pixel that some
    tap touches is read once, each filter once, each output is written once.

    Raises:
        UsageError: a size is not positive, the filter does not fit, groups do not divide the channels, or the
            data type is unknown.

    >>> layer = convolution(32, 64, 56, 56, 64, 3, 3, "fp16", padding=1)
    >>> layer.flop, layer.bytes
    ({'tensor_fp16': 7398752256}, 25763840)
    """
    sizes = {"batch": batch, "channels": channels, "height": height, "width": width, "filters": filters}
    sizes |= {"filter_height": filter_height, "filter_width": filter_width}
    kind = checked(dtype, **sizes, stride=stride, dilation=dilation, groups=groups)
    if padding < 0:
        raise UsageError(f"padding is {padding}", "0 means none")
    if channels % groups or filters % groups:
        raise UsageError(
            f"{groups} groups do not divide {channels} channels and {filters} filters",
            "give a common divisor",
        )
    rows, high = _axis(height, filter_height, stride, padding, dilation)
    columns, wide = _axis(width, filter_width, stride, padding, dilation)
    outputs, taps = batch * filters * high * wide, channels // groups * filter_height * filter_width
    return WorkModel(
        called(convolution, **sizes, stride=stride, padding=padding, dilation=dilation, groups=groups),
        work((matrix_precision(kind), (2 * taps - exact_sums) * outputs), ("fp32", bias * outputs)),
        kind,
        size(kind, batch * channels * rows * columns + filters * taps + bias * filters),
        size(kind, outputs),
        (
            _sums("2 a tap, output and channel of a group", "2k - 1 a sum of k products", exact_sums),
            f"{count(high)} x {count(wide)} outputs an image and filter; direct, so taps on padding count",
        ),
        (
            "no Winograd or FFT, which do fewer operations",
            *(() if bias else ("no bias",)),
            COLD,
            *scales(kind),
        ),
    )


def _axis(length: int, taps: int, stride: int, padding: int, dilation: int) -> tuple[int, int]:
    """Return how many inputs along one axis some tap touches, and how many outputs there are.

    >>> _axis(5, 3, 1, 1, 1), _axis(8, 1, 2, 0, 1)
    ((5, 5), (4, 4))
    """
    outputs = (length + 2 * padding - dilation * (taps - 1) - 1) // stride + 1
    if outputs < 1:
        raise UsageError(
            f"a filter of {taps} taps does not fit into {length} elements",
            "give a smaller filter, or padding",
        )
    starts = range(-padding, outputs * stride - padding, stride)
    touched = {start + tap * dilation for start in starts for tap in range(taps)}
    return sum(0 <= place < length for place in touched), outputs


def _sums(zero: str, exact: str, exact_sums: bool) -> str:
    if exact_sums:
        return f"{exact}: a sum starts with its first product"
    return f"{zero}: each sum starts from zero (2k - 1 operations would be exact)"


# ---- Models of attention: scores alone, a whole block, fused or not, and one step of decoding

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
