"""Models of what is done to each element: vectors, chains of operations, transpose, sums, gather."""

from __future__ import annotations

from typing import Annotated

from ncukit.errors import UsageError
from ncukit.model.work import WorkModel
from ncukit.roofline.models.dtypes import dtype_of, scalar_precision, size
from ncukit.roofline.models.parameters import DType
from ncukit.roofline.models.terms import COLD, called, checked, widened, work


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
