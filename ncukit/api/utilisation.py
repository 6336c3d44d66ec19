"""How much of what its GPUs could do a model uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from ncukit.roofline.mfu import Attention, Mfu


def mfu(
    params: float,
    tokens_per_second: float,
    gpu: str,
    *,
    gpus: int = 1,
    dtype: str = "bf16",
    mode: Literal["training", "inference"] = "training",
    attention: Attention | None = None,
    peak: float | None = None,
) -> Mfu:
    """Return the model FLOPs utilisation [%] of ``gpus`` GPUs called ``gpu`` (`ncukit mfu --list`).

    ``peak`` [FLOP/s] of one GPU replaces that of its data sheet.

    Raises:
        UsageError: a number is not positive, or the data type is none.

    >>> round(mfu(8e9, 64_000, "h100-sxm", gpus=8).percent, 1)
    38.8
    """
    from ncukit.errors import UsageError
    from ncukit.roofline import mfu as work
    from ncukit.roofline.models.dtypes import dtype_of, matrix_precision

    if peak is None:
        found = work.peak_of(gpu, dtype)
    elif peak > 0:
        found = work.Peak(peak, matrix_precision(dtype_of(dtype)), "given by the user", gpu)
    else:
        raise UsageError(f"the peak is {peak:g}", "give FLOP/s above 0, dense, of one GPU")
    return work.mfu(params, tokens_per_second, found, gpus=gpus, dtype=dtype, mode=mode, attention=attention)
