"""What all models share: data types, parameters, checked arguments, the time floor."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from typing import Annotated

from ncukit.errors import UsageError
from ncukit.model.work import Bound, WorkModel
from ncukit.roofline.place import PRECISIONS

# ---- Data types of analytic models: how wide they are, and which unit of the GPU does their arithmetic

BITS = {
    "fp64": 64,
    "fp32": 32,
    "tf32": 32,
    "fp16": 16,
    "bf16": 16,
    "fp8": 8,
    "fp4": 4,
    "int64": 64,
    "int32": 32,
    "int16": 16,
    "int8": 8,
    "int4": 4,
}
"""Width in memory [bit]; TF32 is stored as FP32."""

ALIASES = {
    "double": "fp64",
    "float64": "fp64",
    "float": "fp32",
    "float32": "fp32",
    "half": "fp16",
    "float16": "fp16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8",
    "float4_e2m1fn_x2": "fp4",
    "uint8": "int8",
    "long": "int64",
    "int": "int32",
}
"""Names that torch and NumPy use."""

_TENSOR = ("tf32", "fp16", "bf16", "fp8", "fp4", "int8", "int4")


def dtype_of(name: object) -> str:
    """Return the data type of that name, as the models write it; torch's and NumPy's names are understood.

    Raises:
        UsageError: there is none of that name.

    >>> dtype_of("torch.bfloat16"), dtype_of("FP8")
    ('bf16', 'fp8')
    """
    text = str(name).lower().removeprefix("torch.")
    found = ALIASES.get(text, text)
    if found not in BITS:
        near = difflib.get_close_matches(text, [*BITS, *ALIASES], 1)
        raise UsageError(
            f"{name!r} is no data type of the analytic models",
            f"did you mean {near[0]}?" if near else f"one of: {', '.join(BITS)}",
        )
    return found


def size(dtype: str, elements: float = 1) -> float:
    """Return the bytes of ``elements`` values; scales of block-scaled formats are not included.

    >>> size("fp16", 1000), size("fp4", 3)
    (2000, 1.5)
    """
    bits = BITS[dtype] * elements
    return bits // 8 if bits % 8 == 0 else bits / 8


def matrix_precision(dtype: str) -> str:
    """Return the precision under which a matrix product of ``dtype`` is counted.

    FP64 and FP32 run on the ordinary pipes, narrower types on the tensor cores.

    Raises:
        UsageError: no unit multiplies matrices of this type.

    >>> matrix_precision("bf16"), matrix_precision("fp32")
    ('tensor_bf16', 'fp32')
    """
    if dtype in _TENSOR:
        return f"tensor_{dtype}"
    if dtype not in ("fp64", "fp32"):
        raise UsageError(
            f"no unit of a GPU multiplies matrices of {dtype}",
            f"one of: fp64, fp32, {', '.join(_TENSOR)}",
        )
    return dtype


def scalar_precision(dtype: str) -> str | None:
    """Return the precision of elementwise arithmetic on ``dtype``; None for integers, which do no FLOPs.

    Floating-point types narrower than FP32 are widened first, as PyTorch and most kernels do.

    >>> scalar_precision("fp16"), scalar_precision("fp64"), scalar_precision("int8")
    ('fp32', 'fp64', None)
    """
    if dtype.startswith("int"):
        return None
    return "fp64" if dtype == "fp64" else "fp32"


# ---- Parameters that several models take, with the words that the command line and the documents show

DType = Annotated[str, "data type: fp64, fp32, tf32, fp16, bf16, fp8, fp4, int8 and so on, or torch's name"]
Batch = Annotated[int, "independent problems"]
Heads = Annotated[int, "query heads"]
Queries = Annotated[int, "query positions"]
Keys = Annotated[int, "key positions"]
HeadDim = Annotated[int, "elements of one head's vector"]
Rows = Annotated[int, "rows, each on its own"]
Columns = Annotated[int, "elements of a row"]
ExactSums = Annotated[
    bool, "count 2k - 1 operations a sum of k products, not 2k (a sum that starts from zero)"
]


# ---- What all models share: checked arguments, work by precision, the words of their assumptions

COLD = "every operand comes from DRAM and every result reaches it: caches are cold and too small to keep them"
WIDENED = "arithmetic is FP32: narrower values are widened first (conversions are no FLOPs)"
EXP = "exponentials and maxima are no FLOPs; an exponential compiles to a few, which counters see"


def work(*parts: tuple[str | None, float]) -> dict[str, float]:
    """Return FLOPs by precision; parts without a precision (integers) and empty ones are no FLOPs."""
    work: dict[str, float] = {}
    for precision, flop in parts:
        if precision is not None and flop:
            work[precision] = work.get(precision, 0) + flop
    return work


def called(model: Callable[..., object], **parameters: object) -> str:
    """Return how ``model`` is called: its sizes, and those options that are not as usual.

    >>> def gemm(m, *, batch=1, bias=False): ...
    >>> called(gemm, m=64, batch=1, bias=True)
    'gemm(m=64, bias)'
    """
    usual = getattr(model, "__kwdefaults__", None) or {}
    words = [
        name if value is True else f"{name}={value}"
        for name, value in parameters.items()
        if (usual[name] != value if name in usual else value is not False)
    ]
    return f"{getattr(model, '__name__', model)}({', '.join(words)})"


def count(number: float) -> str:
    """Return a count as notes write it: in full, with thousands apart.

    >>> count(1048576)
    '1,048,576'
    """
    return f"{number:,}"


def checked(dtype: str, **sizes: int) -> str:
    """Return the data type as the models write it, after a look at the sizes.

    Raises:
        UsageError: a size is below 1, or the data type is unknown.
    """
    for name, value in sizes.items():
        if value < 1:
            raise UsageError(f"{name} is {value}", "sizes are at least 1")
    return dtype_of(dtype)


def floating(dtype: str, what: str) -> str:
    """Return ``dtype``; ``what`` says what needs a floating-point type.

    Raises:
        UsageError: it is an integer.
    """
    if scalar_precision(dtype) is None:
        raise UsageError(f"{what} of integers ({dtype})", "give a floating-point type")
    return dtype


def accumulator(dtype: str) -> str:
    """Return the type in which matrix units sum products of ``dtype``."""
    return "fp64" if dtype == "fp64" else "int32" if dtype.startswith("int") else "fp32"


def widened(dtype: str) -> tuple[str, ...]:
    """Return what elementwise arithmetic on ``dtype`` assumes."""
    if dtype.startswith("int"):
        return ("integer operations are no FLOPs",)
    return () if dtype in ("fp64", "fp32") else (WIDENED,)


def scales(dtype: str) -> tuple[str, ...]:
    """Return what the bytes of block-scaled formats leave out."""
    return ("the scales of a block-scaled format are not counted",) if dtype in ("fp4", "fp8") else ()


# ---- The time floor of a model under given peaks


def bound(model: WorkModel, peak_flop_rate: float | Mapping[str, float], bandwidth: float) -> Bound:
    """Return the time floor of ``model`` at ``peak_flop_rate`` [FLOP/s] and DRAM ``bandwidth`` [byte/s].

    A mapping gives each precision its own peak; their pipes can overlap, so the longest counts.

    Raises:
        UsageError: a rate is not positive, or the mapping lacks a precision of the model.

    >>> from ncukit.roofline.models import gemm
    >>> floor = bound(gemm(64, 32, 128, "fp16"), 200e12, 3e12)
    >>> floor.side, f"{floor.seconds * 1e9:.2f} ns"
    ('memory-bound', '9.56 ns')
    """
    if isinstance(peak_flop_rate, Mapping):
        if lacking := [precision for precision in model.flop if precision not in peak_flop_rate]:
            needs = ", ".join(model.flop)
            raise UsageError(f"no peak is given for {lacking[0]}", f"{model.name} needs: {needs}")
        work = [(flop, peak_flop_rate[precision]) for precision, flop in model.flop.items()]
    else:
        work = [(model.total_flop, peak_flop_rate)]
    if not all(rate > 0 for rate in (bandwidth, *(peak for _, peak in work))):
        raise UsageError("peak rate and bandwidth must be above 0", "give them in FLOP/s and byte/s")
    return Bound(max((flop / peak for flop, peak in work), default=0.0), model.bytes / bandwidth)


# ---- The model of work that is known already


def point(
    flops: Annotated[float, "work [FLOP]"],
    bytes: Annotated[float, "traffic of one memory level [byte]"],
    precision: Annotated[str, "what does the work: fp32, fp64, tensor_fp16 and so on"] = "fp32",
) -> WorkModel:
    """Return the model of work and traffic that are known: one point of the roofline, to be checked.

    FLOPs and bytes are taken as they are (Williams, Waterman, Patterson: Roofline, 2009).

    Raises:
        UsageError: work is negative, traffic is not positive, or the precision is unknown.

    >>> point(2e12, 1e12).intensity
    2.0
    """
    if precision not in PRECISIONS:
        raise UsageError(f"{precision!r} is no precision", f"one of: {', '.join(PRECISIONS)}")
    if not 0 <= flops < math.inf or not 0 < bytes < math.inf:
        raise UsageError("flops and bytes must be numbers above 0", "give them in FLOP and byte")
    return WorkModel(
        f"point(flops={flops:g}, bytes={bytes:g})",
        {precision: flops} if flops else {},
        precision.removeprefix("tensor_"),
        bytes,
        0,
        ("FLOPs and bytes as stated",),
        ("both are taken on trust", "reads and writes are not told apart"),
    )
