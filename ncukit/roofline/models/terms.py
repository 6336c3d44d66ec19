"""What all models share: checked arguments, work by precision, the words of their assumptions."""

from __future__ import annotations

from collections.abc import Callable

from ncukit.errors import UsageError
from ncukit.roofline.models.dtypes import dtype_of, scalar_precision

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
