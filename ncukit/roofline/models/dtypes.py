"""Data types of analytic models: how wide they are, and which unit of the GPU does their arithmetic."""

from __future__ import annotations

import difflib

from ncukit.errors import UsageError

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
