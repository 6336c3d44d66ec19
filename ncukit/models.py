"""Analytic models of workloads: FLOPs, compulsory bytes, the time floor, and what counters say to them.

>>> from ncukit import models
>>> models.bound(models.gemv(4096, 4096, "fp16"), 60e12, 3e12).side
'memory-bound'
"""

from ncukit.model.work import Bound, WorkModel
from ncukit.roofline.models import (
    attention,
    bound,
    compare,
    gemm,
    gemv,
    kv_cache_decode,
    reduction,
    softmax,
    transpose,
    vector,
)

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
