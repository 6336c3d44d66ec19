"""Values of ``ncu_report``, as ``IMetric.value`` gives them but without the table that it makes for each."""

from __future__ import annotations

from typing import Any

STRING, FLOAT, DOUBLE, UINT32, UINT64 = 2, 3, 4, 5, 6
"""``IMetric.ValueKind_*``; the others have no value, or are not known here."""


def value(metric: Any, *at: int) -> Any:
    """Return the value of ``metric``, or that of its instance ``at``; None where it has none."""
    kind = metric.kind(*at)
    if kind in (DOUBLE, FLOAT):
        return metric.as_double(*at)
    if kind in (UINT64, UINT32):
        return metric.as_uint64(*at)
    return metric.as_string(*at) if kind == STRING else metric.value(*at)


def column(metric: Any, count: int) -> list[Any]:
    """Return the values of the first ``count`` instances of ``metric``."""
    return [value(metric, i) for i in range(count)]
