"""Analytic models: FLOPs and compulsory DRAM bytes of a computation, from its shapes and data type.

Conventions: a multiply-add is 2 FLOP, sums start from zero (a dot product of length k is 2k, not 2k - 1),
comparisons, conversions and special functions (exp) are no FLOPs, as GPU counters have it.  Bytes are
compulsory: each input is read once, each output written once; what does not fit on the chip moves more.
The bound is the roofline of Williams, Waterman, Patterson (CACM 52(4), 2009).

>>> import ncukit
>>> ncukit.models.bound(ncukit.models.gemv(4096, 4096, "fp16"), 60e12, 3e12).side
'memory-bound'
"""

from ncukit.model.work import Bound, WorkModel
from ncukit.roofline.models.against import compare
from ncukit.roofline.models.attention import attention, kv_cache_decode
from ncukit.roofline.models.bound import bound
from ncukit.roofline.models.dense import gemm, gemv, reduction, softmax, transpose, vector

__all__ = [
    "Bound",
    "WorkModel",
    "attention",
    "bound",
    "compare",
    "gemm",
    "gemv",
    "kv_cache_decode",
    "reduction",
    "softmax",
    "transpose",
    "vector",
]
