"""The time floor of a model under given peaks."""

from __future__ import annotations

from collections.abc import Mapping

from ncukit.errors import UsageError
from ncukit.model.work import Bound, WorkModel


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
