"""The model of work that is known already."""

from __future__ import annotations

import math
from typing import Annotated

from ncukit.errors import UsageError
from ncukit.model.work import WorkModel
from ncukit.roofline.place import PRECISIONS


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
