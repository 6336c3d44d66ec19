"""Models of products: matrix by matrix, matrix by vector, convolution."""

from __future__ import annotations

from typing import Annotated

from ncukit.errors import UsageError
from ncukit.model.work import WorkModel
from ncukit.roofline.models.dtypes import BITS, dtype_of, matrix_precision, scalar_precision, size
from ncukit.roofline.models.parameters import Batch, DType, ExactSums
from ncukit.roofline.models.terms import COLD, accumulator, called, checked, count, scales, widened, work


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
