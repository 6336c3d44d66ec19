"""Analytic models: FLOPs and compulsory bytes of a computation, from its shapes and data type.

Conventions: a multiply-add is 2 FLOP, sums start from zero (a dot product of length k is 2k, not 2k - 1),
comparisons, conversions and special functions (exp, rsqrt) are no FLOPs, as GPU counters have it.  Bytes are
compulsory: each input is read once, each output written once; what does not fit on the chip moves more.
The bound is the roofline of Williams, Waterman, Patterson (CACM 52(4), 2009).

>>> import ncukit
>>> ncukit.models.bound(ncukit.models.gemv(4096, 4096, "fp16"), 60e12, 3e12).side
'memory-bound'
"""

from ncukit.model.work import Bound, Estimate, Ratio, WorkModel
from ncukit.roofline.models.against import compare, ratios
from ncukit.roofline.models.arrays import (
    all_reduce,
    elementwise,
    embedding,
    layer_norm,
    reduction,
    softmax,
    transpose,
    vector,
)
from ncukit.roofline.models.estimate import estimate
from ncukit.roofline.models.products import (
    attention,
    attention_scores,
    convolution,
    gemm,
    gemv,
    kv_cache_decode,
)
from ncukit.roofline.models.terms import bound, point

__all__ = [
    "Bound",
    "Estimate",
    "Ratio",
    "WorkModel",
    "all_reduce",
    "attention",
    "attention_scores",
    "bound",
    "compare",
    "convolution",
    "elementwise",
    "embedding",
    "estimate",
    "gemm",
    "gemv",
    "kv_cache_decode",
    "layer_norm",
    "point",
    "ratios",
    "reduction",
    "softmax",
    "transpose",
    "vector",
]
