"""Models of collectives: bytes over the links between GPUs."""

from __future__ import annotations

from typing import Annotated

from ncukit.errors import UsageError
from ncukit.model.work import WorkModel
from ncukit.roofline.models.dtypes import scalar_precision, size
from ncukit.roofline.models.parameters import DType
from ncukit.roofline.models.terms import called, checked, widened, work


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
