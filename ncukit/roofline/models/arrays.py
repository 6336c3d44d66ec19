"""Models of what is done to each element or row, and of collectives."""

from __future__ import annotations

from typing import Annotated

from ncukit.errors import UsageError
from ncukit.model.work import WorkModel
from ncukit.roofline.models.terms import (
    COLD,
    EXP,
    Columns,
    DType,
    Rows,
    called,
    checked,
    dtype_of,
    floating,
    scalar_precision,
    size,
    widened,
    work,
)

# ---- Models of what is done to each element: vectors, chains of operations, transpose, sums, gather


def vector(
    n: Annotated[int, "elements of each vector"],
    dtype: DType = "fp32",
    reads: Annotated[int, "vectors that are read"] = 2,
    writes: Annotated[int, "vectors that are written"] = 1,
    flop_per_element: Annotated[float, "FLOP an element; 0 for a copy"] = 1,
) -> WorkModel:
    """Return the model of one operation on vectors of ``n`` elements: copy, scale, add, triad.

    n x ``flop_per_element`` FLOP; n x (``reads`` + ``writes``) elements move, without write-allocate, as
    STREAM counts (McCalpin 1995).

    Raises:
        UsageError: a size is not positive, nothing moves, or the data type is unknown.

    >>> add = vector(1_000_000, "fp32")
    >>> add.flop, add.bytes, round(add.intensity, 4)
    ({'fp32': 1000000}, 12000000, 0.0833)
    """
    kind = checked(dtype, n=n, vectors=reads + writes)
    if min(reads, writes, flop_per_element) < 0:
        raise UsageError("reads, writes and flop_per_element cannot be negative", "0 means none")
    return WorkModel(
        called(vector, n=n, reads=reads, writes=writes),
        work((scalar_precision(kind), n * flop_per_element)),
        kind,
        size(kind, n * reads),
        size(kind, n * writes),
        (f"{flop_per_element:g} per element", f"{reads} vectors read, {writes} written"),
        (*widened(kind), COLD),
    )


def elementwise(
    n: Annotated[int, "elements"],
    operations: Annotated[int, "operations, one after the other"],
    dtype: DType = "fp32",
    inputs: Annotated[int, "arrays that the chain reads, each once"] = 1,
    flop_per_operation: Annotated[float, "FLOP of an operation, an element"] = 1,
    *,
    fused: Annotated[bool, "one kernel; otherwise each operation reads and writes its intermediate"] = True,
) -> WorkModel:
    """Return the model of a chain of elementwise ``operations`` on ``n`` elements with one result.

    n x ``operations`` x ``flop_per_operation`` FLOP.  Fused, the ``inputs`` and the result move once;
    unfused, each of the ``operations`` - 1 intermediates is written and read as well.

    Raises:
        UsageError: a size is not positive, a count of FLOP negative, or the data type unknown.

    >>> fused, single = elementwise(1000, 4, "fp32"), elementwise(1000, 4, "fp32", fused=False)
    >>> fused.bytes, single.bytes, fused.total_flop
    (8000, 32000, 4000)
    """
    kind = checked(dtype, n=n, operations=operations, inputs=inputs)
    if flop_per_operation < 0:
        raise UsageError("flop_per_operation cannot be negative", "0 means none")
    between = 0 if fused else operations - 1
    return WorkModel(
        called(elementwise, n=n, operations=operations, inputs=inputs, fused=fused),
        work((scalar_precision(kind), n * operations * flop_per_operation)),
        kind,
        size(kind, n * (inputs + between)),
        size(kind, n * (1 + between)),
        (f"{flop_per_operation:g} an operation and element", f"{inputs} arrays read, {1 + between} written"),
        (
            *widened(kind),
            "intermediates stay in registers" if fused else "intermediates go through DRAM",
            "broadcast inputs are counted as whole arrays",
            COLD,
        ),
    )


def transpose(m: Annotated[int, "rows"], n: Annotated[int, "columns"], dtype: DType = "fp32") -> WorkModel:
    """Return the model of an out-of-place transpose of ``m`` x ``n`` elements.

    No FLOP; every element is read and written once (Ruetsch, Micikevicius: Optimizing Matrix Transpose in
    CUDA, 2009).

    Raises:
        UsageError: a size is not positive, or the data type is unknown.

    >>> transpose(1024, 2048, "fp32").bytes, transpose(1024, 2048, "fp32").intensity
    (16777216, 0.0)
    """
    kind = checked(dtype, m=m, n=n)
    moved = size(kind, m * n)
    notes = ("each element read once, written once",)
    return WorkModel(called(transpose, m=m, n=n), {}, kind, moved, moved, notes, (COLD,))


def reduction(
    n: Annotated[int, "elements of a sum"],
    dtype: DType = "fp32",
    *,
    rows: Annotated[int, "sums, each of its own elements"] = 1,
) -> WorkModel:
    """Return the model of one sum, or several, over ``n`` elements each.

    n - 1 FLOP a sum in any order; all elements are read, one a sum is written.

    Raises:
        UsageError: a size is not positive, or the data type is unknown.

    >>> reduction(1 << 20, "fp32").flop, reduction(1 << 20, "fp32").bytes
    ({'fp32': 1048575}, 4194308)
    """
    kind = checked(dtype, n=n, rows=rows)
    return WorkModel(
        called(reduction, n=n, rows=rows),
        work((scalar_precision(kind), (n - 1) * rows)),
        kind,
        size(kind, n * rows),
        size(kind, rows),
        ("n - 1 additions a sum",),
        (*widened(kind), "partial sums stay on the chip", COLD),
    )


def embedding(
    lookups: Annotated[int, "rows that are fetched"],
    dim: Annotated[int, "elements of a row"],
    dtype: DType = "fp16",
    *,
    distinct: Annotated[int | None, "different rows among them (all)"] = None,
    index: Annotated[str, "type of an index"] = "int64",
) -> WorkModel:
    """Return the model of a gather: rows of a table, one after the other in the result.

    No FLOP; each of the ``distinct`` rows and each index is read once, ``lookups`` rows are written (Naumov
    et al.: Deep Learning Recommendation Model, 2019, without pooling).

    Raises:
        UsageError: a size is not positive, there are more distinct rows than lookups, or a data type is
            unknown.

    >>> gather = embedding(8192, 4096, "bf16")
    >>> gather.read, gather.written
    (67174400, 67108864)
    """
    different = lookups if distinct is None else distinct
    kind = checked(dtype, lookups=lookups, dim=dim, distinct=different)
    if different > lookups:
        raise UsageError(
            f"{different} distinct rows of {lookups} lookups", "there cannot be more rows than lookups"
        )
    return WorkModel(
        called(embedding, lookups=lookups, dim=dim, distinct=distinct),
        {},
        kind,
        size(kind, different * dim) + size(dtype_of(index), lookups),
        size(kind, lookups * dim),
        (f"{different} rows and {lookups} indices read, {lookups} rows written",),
        (
            "repeated rows come from a cache",
            "a row is fetched in whole sectors of 32 bytes: narrow or unaligned rows move more",
            "no pooling, no gradient",
            COLD,
        ),
    )


# ---- Models of what is done to each row: softmax, normalisation

TWO_PASSES = "the mean first, then the variance of the differences (Welford's recurrence does more)"
PASSES = "a row stays on the chip between its passes"


def softmax(rows: Rows, columns: Columns, dtype: DType = "fp32") -> WorkModel:
    """Return the model of a softmax of each row.

    3 FLOP an element, less one a row: subtract the maximum, sum, divide.  One read and one write an
    element, which needs the row on the chip; otherwise 3 or 4 accesses (Milakov, Gimelshein: Online
    normalizer calculation for softmax, 2018).

    Raises:
        UsageError: a size is not positive, the data type is unknown or an integer.

    >>> rows = softmax(1024, 1000, "fp32")
    >>> rows.flop, rows.bytes
    ({'fp32': 3070976}, 8192000)
    """
    kind = floating(checked(dtype, rows=rows, columns=columns), "a softmax")
    moved = size(kind, rows * columns)
    return WorkModel(
        called(softmax, rows=rows, columns=columns),
        work((scalar_precision(kind), 3 * rows * columns - rows)),
        kind,
        moved,
        moved,
        ("subtract, sum and divide: 3 an element, one less a row",),
        (EXP, *widened(kind), PASSES, COLD),
        exact=False,
    )


def layer_norm(
    rows: Rows,
    columns: Columns,
    dtype: DType = "fp16",
    *,
    affine: Annotated[bool, "multiply by a weight and add a bias (rms: a weight alone), read once"] = True,
    rms: Annotated[bool, "divide by the root mean square, without a mean"] = False,
) -> WorkModel:
    """Return the model of a layer normalisation of each row of d elements.

    5 d + 1 FLOP a row: mean d, differences d, their mean square 2 d, epsilon 1, scaling d; 2 d more with
    weight and bias (Ba, Kiros, Hinton: Layer Normalization, 2016).  ``rms``: 3 d + 1, d more with a weight
    (Zhang, Sennrich: Root Mean Square Layer Normalization, 2019).  One read and one write an element.

    Raises:
        UsageError: a size is not positive, the data type is unknown or an integer.

    >>> norm = layer_norm(4096, 1024, "fp32")
    >>> norm.flop, norm.bytes
    ({'fp32': 29364224}, 33562624)
    """
    kind = floating(checked(dtype, rows=rows, columns=columns), "a normalisation")
    vectors = (1 if rms else 2) * affine
    each = (3 if rms else 5) * columns + 1 + vectors * columns
    moved = size(kind, rows * columns)
    return WorkModel(
        called(layer_norm, rows=rows, columns=columns, affine=affine, rms=rms),
        work((scalar_precision(kind), each * rows)),
        kind,
        moved + size(kind, vectors * columns),
        moved,
        (f"{(3 if rms else 5) + vectors} an element and one a row", *(() if rms else (TWO_PASSES,))),
        (
            "the reciprocal square root is no FLOP",
            *widened(kind),
            PASSES,
            "means and deviations are not written, no residual is added",
            COLD,
        ),
        exact=False,
    )


# ---- Models of collectives: bytes over the links between GPUs


def all_reduce(
    n: Annotated[int, "elements of the vector that every rank holds"],
    ranks: Annotated[int, "GPUs"],
    dtype: DType = "fp16",
) -> WorkModel:
    """Return the model of a sum of one vector a rank, which every rank gets; counted for one rank.

    Each rank sends, and at the same time receives, 2 (p - 1) / p x n elements: the least that any exchange
    between p ranks can do (Patarasu, Yuan: Bandwidth Optimal All-reduce Algorithms, 2009), which a ring does,
    with (p - 1) / p x n FLOP a rank.  Bytes are those sent, so the bandwidth is that of one direction (NCCL's
    bus bandwidth).

    Raises:
        UsageError: a size is not positive, there is but one rank, or the data type is unknown.

    >>> step = all_reduce(1_000_000, 8, "fp32")
    >>> step.bytes, step.flop, step.memory
    (7000000, {'fp32': 875000}, 'link')
    """
    kind = checked(dtype, n=n, ranks=ranks)
    if ranks < 2:
        raise UsageError("one rank has nothing to exchange", "ranks is at least 2")
    exchanged = n * (ranks - 1)
    return WorkModel(
        called(all_reduce, n=n, ranks=ranks),
        work((scalar_precision(kind), _over(exchanged, ranks))),
        kind,
        0,
        size(kind, _over(2 * exchanged, ranks)),
        ("2 (p - 1) / p elements sent a rank, as many received meanwhile", "(p - 1) / p additions a rank"),
        (
            *widened(kind),
            "a switch that sums (NVLS, SHARP) needs only n elements each way",
            "no latency of steps, no protocol, no traffic of DRAM",
        ),
        memory="link",
    )


def _over(number: int, by: int) -> float:
    return number // by if number % by == 0 else number / by
