"""Launches as data frames: the only user of pandas."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import pandas

from ncukit.catalog import load
from ncukit.model import Kernel

CONTEXT = ("file", "index", "name", "demangled", "gpu", "failed")


def frame(kernels: Iterable[Kernel], *, form: Literal["long", "wide"] = "wide") -> pandas.DataFrame:
    """Return launches as a frame: "wide" has one row a launch, "long" one row a launch and metric.

    Wide columns are metric ids in catalog units (``frame.attrs["units"]``); an unknown value is missing.  The
    long form keeps unit, quality and reason beside the value.
    """
    return _wide(kernels) if form == "wide" else _long(kernels)


def _head(kernel: Kernel) -> dict[str, object]:
    return {
        "file": kernel.file,
        "index": kernel.index,
        "name": kernel.name,
        "demangled": kernel.demangled,
        "gpu": kernel.gpu,
        "failed": kernel.failed is not None,
    }


def _wide(kernels: Iterable[Kernel]) -> pandas.DataFrame:
    catalog = load()
    rows = [{**_head(k), **{id: k.metrics[id].value for id in catalog.metrics}} for k in kernels]
    table = pandas.DataFrame(rows, columns=[*CONTEXT, *catalog.metrics])
    for id, metric in catalog.metrics.items():
        table[id] = table[id].astype("string" if metric.kind == "string" else "Float64")
    table.attrs["units"] = {id: metric.unit for id, metric in catalog.metrics.items()}
    return table


def _long(kernels: Iterable[Kernel]) -> pandas.DataFrame:
    rows = [
        {
            **_head(kernel),
            "metric": value.id,
            "value": value.value if not isinstance(value.value, str) else None,
            "text": value.value if isinstance(value.value, str) else None,
            "unit": value.unit,
            "quality": value.quality,
            "reason": value.reason,
        }
        for kernel in kernels
        for value in kernel.metrics.values()
    ]
    table = pandas.DataFrame(rows)
    if not table.empty:
        table["value"] = table["value"].astype("Float64")
    return table
