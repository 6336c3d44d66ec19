"""Models of dense array operations: elementwise, products, transpose, softmax, sum."""

from __future__ import annotations

from ncukit.errors import UsageError
from ncukit.model.work import WorkModel
from ncukit.roofline.models.dtypes import BITS, dtype_of, matrix_precision, scalar_precision, size
from ncukit.roofline.models.terms import COLD, EXP, accumulator, checked, floating, scales, widened, work


def vector(n: int, dtype: str, reads: int = 2, writes: int = 1, flop_per_element: float = 1) -> WorkModel:
    """Return the model of an elementwise operation on vectors of ``n`` elements.

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
        f"vector(n={n}, reads={reads}, writes={writes})",
        work((scalar_precision(kind), n * flop_per_element)),
        kind,
        size(kind, n * reads),
        size(kind, n * writes),
        (f"{flop_per_element:g} per element", f"{reads} vectors read, {writes} written"),
        widened(kind),
    )


def gemm(
    m: int, n: int, k: int, dtype: str = "fp16", accumulate: str | None = None, *, out: str | None = None
) -> WorkModel:
    """Return the model of C = A B with A of ``m`` x ``k`` and B of ``k`` x ``n`` elements.

    2 m n k FLOP (Golub, Van Loan: Matrix Computations, section 1.1); A and B are read, C is written in
    ``out`` (default: ``dtype``).  ``accumulate`` (default: FP32, FP64 or INT32) changes neither.

    Raises:
        UsageError: a size is not positive, a data type is unknown, or sums are narrower than the factors.

    >>> product = gemm(64, 32, 128, dtype="fp16")
    >>> product.flop, product.bytes, round(product.intensity, 2)
    ({'tensor_fp16': 524288}, 28672, 18.29)
    """
    kind = checked(dtype, m=m, n=n, k=k)
    sums = dtype_of(accumulate) if accumulate else accumulator(kind)
    if BITS[sums] < BITS[kind] or sums.startswith("int") != kind.startswith("int"):
        raise UsageError(f"{kind} products cannot be summed in {sums}", f"use {accumulator(kind)}")
    result = dtype_of(out) if out else kind
    return WorkModel(
        f"gemm(m={m}, n={n}, k={k})",
        work((matrix_precision(kind), 2 * m * n * k)),
        kind,
        size(kind, m * k + k * n),
        size(result, m * n),
        ("2 m n k: each sum starts from zero (2k - 1 operations would be exact)", f"sums in {sums}"),
        ("C is written and not read (beta = 0); no bias, scaling or activation", COLD, *scales(kind)),
    )


def gemv(m: int, n: int, dtype: str) -> WorkModel:
    """Return the model of y = A x with A of ``m`` x ``n`` elements.

    2 m n FLOP (BLAS level 2); A and x are read, y is written: at most 2 FLOP an element of A.

    Raises:
        UsageError: a size is not positive, or the data type is unknown.

    >>> gemv(4096, 4096, "fp16").bytes, round(gemv(4096, 4096, "fp16").intensity, 3)
    (33570816, 1.0)
    """
    kind = checked(dtype, m=m, n=n)
    return WorkModel(
        f"gemv(m={m}, n={n})",
        work((scalar_precision(kind), 2 * m * n)),
        kind,
        size(kind, m * n + n),
        size(kind, m),
        ("2 m n: each sum starts from zero",),
        (*widened(kind), "y is written and not read (beta = 0)", COLD, *scales(kind)),
    )


def transpose(m: int, n: int, dtype: str) -> WorkModel:
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
    return WorkModel(
        f"transpose(m={m}, n={n})", {}, kind, moved, moved, ("each element read once, written once",), (COLD,)
    )


def softmax(rows: int, columns: int, dtype: str) -> WorkModel:
    """Return the model of a softmax over each of ``rows`` rows.

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
        f"softmax(rows={rows}, columns={columns})",
        work((scalar_precision(kind), 3 * rows * columns - rows)),
        kind,
        moved,
        moved,
        ("subtract, sum and divide: 3 an element, one less a row",),
        (EXP, *widened(kind), "a row stays on the chip between its passes", COLD),
        exact=False,
    )


def reduction(n: int, dtype: str) -> WorkModel:
    """Return the model of a sum over ``n`` elements.

    n - 1 FLOP in any order; ``n`` elements are read, one is written.

    Raises:
        UsageError: the size is not positive, or the data type is unknown.

    >>> reduction(1 << 20, "fp32").flop, reduction(1 << 20, "fp32").bytes
    ({'fp32': 1048575}, 4194308)
    """
    kind = checked(dtype, n=n)
    return WorkModel(
        f"reduction(n={n})",
        work((scalar_precision(kind), n - 1)),
        kind,
        size(kind, n),
        size(kind),
        ("n - 1 additions",),
        (*widened(kind), "partial sums stay on the chip", COLD),
    )
