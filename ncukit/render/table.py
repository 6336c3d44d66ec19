"""Metrics as rows: CSV of neutral and raw values, JSON of raw ones."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TextIO

from ncukit.media import dumps
from ncukit.model import Kernel, RawKernel
from ncukit.render.spreadsheet import Rows

COLUMNS = (
    "file",
    "index",
    "name",
    "gpu",
    "compute_capability",
    "metric",
    "value",
    "unit",
    "quality",
    "reason",
)
RAW_SCHEMA = "ncukit.raw/1"


def csv_rows(
    out: TextIO, kernels: Iterable[Kernel], ids: Sequence[str] | None = None, *, header: bool = True
) -> None:
    """Write one CSV row a launch and metric; an unknown value is an empty cell with its reason."""
    rows = Rows(out)
    if header:
        rows.write(COLUMNS)
    for k in kernels:
        head = (k.file, k.index, k.name, k.gpu, k.compute_capability)
        for id in ids or k.metrics:
            v = k.metrics[id]
            rows.write((*head, id, v.value, v.unit, v.quality, v.reason))


def raw_rows(out: TextIO, launches: Iterable[RawKernel], *, csv: bool = False, header: bool = True) -> None:
    """Write native metrics in base units: name, value, unit; tab-separated, or as CSV."""
    rows = Rows(out, "," if csv else "\t")
    if header:
        rows.write(("index", "name", "metric", "value", "unit"))
    for raw in launches:
        for name in sorted(raw.metrics):
            rows.write((raw.index, raw.function, name, raw.metrics[name], raw.units.get(name, "")))


def raw_json(file: str, launches: Iterable[RawKernel]) -> Iterator[str]:
    """Yield the JSON of native metrics (schema ``ncukit.raw/1``), one line in pieces; NaN is null."""
    yield f'{{"schema": "{RAW_SCHEMA}", "file": {dumps(file)}, "kernels": ['
    for number, raw in enumerate(launches):
        metrics = {
            name: {"value": _finite(value), "unit": raw.units.get(name, "")}
            for name, value in sorted(raw.metrics.items())
        }
        head = {
            "index": raw.index,
            "name": raw.function,
            "demangled": raw.demangled,
            "workload": raw.workload,
        }
        yield (", " if number else "") + dumps({**head, "metrics": metrics})
    yield "]}\n"


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
