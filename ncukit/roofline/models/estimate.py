"""A model under peaks that were given, that a report holds, or that a data sheet states."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ncukit.errors import UsageError
from ncukit.model import Kernel, Value
from ncukit.model.work import Estimate, WorkModel
from ncukit.roofline.models.against import compare, ratios

if TYPE_CHECKING:
    from ncukit.catalog.skus import Lookup

GIVEN = "given"
"""Source of a peak that the user states."""


def estimate(
    model: WorkModel,
    *,
    peak: float | Mapping[str, float] | None = None,
    bandwidth: float | None = None,
    gpu: str | None = None,
    kernel: Kernel | None = None,
    seconds: float | None = None,
    launches: int = 1,
) -> Estimate:
    """Return bound and time floor of ``model``, and whether ``seconds`` [s], else those of ``kernel``, fit.

    ``peak`` [FLOP/s], one for all work or by precision, and ``bandwidth`` [byte/s] come first, then the peaks
    that the report of ``kernel`` holds, then the data sheet of ``gpu``, a marked estimate.  A peak that none
    of them knows stays unknown, with the reason: no bound rather than a wrong one.  ``launches`` is how many
    launches share the modelled work.

    Raises:
        UsageError: a rate or the time is not positive.

    >>> from ncukit.roofline.models import gemm
    >>> found = estimate(gemm(64, 32, 128, "fp16"), peak=200e12, bandwidth=3e12)
    >>> f"{found.bound:.4g}", found.floor.side, round(found.ridge, 1)
    ('5.486e+13', 'memory-bound', 66.7)
    >>> estimate(gemm(64, 32, 128, "fp16"), gpu="H100").bound is None  # SXM, PCIe or NVL
    True
    """
    one = peak if peak is not None and not isinstance(peak, Mapping) else None
    given = peak if isinstance(peak, Mapping) else {} if one is None else {"all work": one}
    for name, value in {
        **{f"peak of {p}": v for p, v in given.items()},
        "bandwidth": bandwidth,
        "time": seconds,
    }.items():
        if value is not None and not 0 < value < math.inf:
            raise UsageError(f"the {name} is {value:g}", "give FLOP/s, byte/s and seconds above 0")
    found = None if gpu is None else _data_sheet(gpu)
    peaks = {p: _peak(p, given.get(p), kernel, found) for p in model.flop}
    if one is not None:
        peaks = dict.fromkeys(model.flop, Value("peak_flop_rate", one, "FLOP/s", "exact", (GIVEN,)))
    measured = kernel.number("kernel_duration") if kernel is not None else None
    return Estimate(
        model,
        peaks,
        _bandwidth(model.memory, bandwidth, kernel, found),
        seconds if seconds is not None else measured,
        ratios(model, kernel) if kernel is not None else (),
        compare(model, kernel, launches=launches) if kernel is not None else (),
    )


def _data_sheet(gpu: str) -> Lookup:
    from ncukit.catalog.skus import find_sku

    return find_sku(gpu)


def _peak(precision: str, given: float | None, kernel: Kernel | None, found: Lookup | None) -> Value:
    id, unit = f"peak_flop_rate_{precision}", "OP/s" if "int" in precision else "FLOP/s"
    stated = found.sku.peak.get(precision) if found is not None and found.sku is not None else None
    return _first(id, unit, given, kernel, found, stated, f"peak rate of {precision}")


def _bandwidth(memory: str, given: float | None, kernel: Kernel | None, found: Lookup | None) -> Value:
    if memory == "link":
        return _first("link_bandwidth", "byte/s", given, None, None, None, "bandwidth of one link direction")
    stated = found.sku.dram_bandwidth if found is not None and found.sku is not None else None
    return _first("peak_dram_bandwidth", "byte/s", given, kernel, found, stated, "DRAM bandwidth")


def _first(
    id: str,
    unit: str,
    given: float | None,
    kernel: Kernel | None,
    found: Lookup | None,
    stated: float | None,
    what: str,
) -> Value:
    """Return the rate ``id`` from the first of those that know it, else why none does."""
    if given is not None:
        return Value(id, given, unit, "exact", (GIVEN,))
    reported = kernel.metrics.get(id) if kernel is not None else None
    if reported is not None and reported.number:
        return reported
    if stated is not None and found is not None and found.sku is not None:
        note = f"{found.sku.name}, dense, at boost clock" + (f"; {found.sku.note}" if found.sku.note else "")
        return Value(id, stated, unit, "estimate", (found.sku.source,), note)
    if found is not None:
        others = f": {', '.join(sku.id for sku in found.candidates)}" if found.candidates else ""
        reason = (
            f"{found.reason}{others}" if found.sku is None else f"the {found.sku.source} states no {what}"
        )
    elif reported is not None:
        reason = f"the report holds no {what} ({reported.reason or 'it is 0'})"
    else:
        reason = f"the {what} is not given"
    return Value(id, None, unit, reason=reason)
