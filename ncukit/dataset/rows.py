"""A launch as a row of the dataset, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from ncukit.catalog import Metric, load
from ncukit.dataset.partitions import PARTITION
from ncukit.dataset.schema import CONTEXT, DOUBTS, file_schema
from ncukit.model import Kernel, Quality, RawKernel, Value, Verdict
from ncukit.model.value import stored, stored_noisy
from ncukit.normalise import MARK

_CONTEXT: Mapping[str, Callable[[Kernel, Verdict], object]] = {
    "file": lambda kernel, _: kernel.file,
    "index": lambda kernel, _: kernel.index,
    "name": lambda kernel, _: kernel.name,
    "demangled": lambda kernel, _: kernel.demangled,
    "cc": lambda kernel, _: kernel.compute_capability,
    "grid": lambda kernel, _: _dimensions(kernel, "grid_dim"),
    "block": lambda kernel, _: _dimensions(kernel, "block_dim"),
    "nvtx": lambda kernel, _: kernel.raw.nvtx,
    "workload": lambda kernel, _: kernel.raw.workload,
    "synthetic": lambda kernel, _: MARK in kernel.raw.metrics,
    "failed": lambda kernel, _: kernel.failed,
    "class": lambda _, verdict: verdict.cls,
    "limiter": lambda _, verdict: verdict.limiter,
    "confidence": lambda _, verdict: verdict.confidence,
    "claim": lambda _, verdict: verdict.claim,
}


_EXPECTED = ("missing", "absent")
"""Of what is unknown so the table of metrics says why."""


class Rows:
    """Rows of one report, gathered column by column."""

    def __init__(self, sha256: str) -> None:
        self.sha256 = sha256
        self._context: dict[str, list[object]] = {name: [] for name in _CONTEXT}
        self._metrics: dict[str, list[object]] = {id: [] for id in load().metrics}
        self._doubts: dict[str, list[list[Any]]] = {name: [] for name in DOUBTS}

    def __len__(self) -> int:
        return len(self._doubts["reasons"])

    def add(self, kernel: Kernel, verdict: Verdict) -> None:
        """Add the row of one launch."""
        for name, column in self._context.items():
            column.append(_CONTEXT[name](kernel, verdict))
        estimates: list[str] = []
        reasons: list[tuple[str, str]] = []
        metrics = kernel.metrics
        failed = f"failed pass: {kernel.failed}" if kernel.failed else None
        for id, column in self._metrics.items():
            value = metrics[id]
            number = value.value
            column.append(float(number) if isinstance(number, int) else number)
            if value.quality == "estimate":
                estimates.append(id)
            reason = value.reason
            if reason is not None and reason != failed and value.status not in _EXPECTED:
                reasons.append((id, reason))
        self._doubts["estimates"].append(estimates)
        self._doubts["reasons"].append(reasons)

    def take(self) -> Any:
        """Return the rows gathered so far as a record batch, and begin anew."""
        count = len(self)
        columns = {**self._context, **self._metrics, **self._doubts, "sha256": [self.sha256] * count}
        arrays = [pa.array(columns[field.name], field.type) for field in file_schema()]
        for group in (self._context, self._metrics, self._doubts):
            for gathered in group.values():
                gathered.clear()
        return pa.record_batch(arrays, schema=file_schema())


def kernel_of(row: Mapping[str, Any]) -> Kernel:
    """Return the launch of a row, without raw counters; a value is an estimate or exact, no more is known."""
    estimates, reasons = set(row["estimates"] or ()), dict(row["reasons"] or ())
    metrics = {}
    for metric in load().metrics.values():
        id, value = metric.id, row[metric.id]
        reason = reasons.get(id)
        if value is None:
            why = f"failed pass: {row['failed']}" if row["failed"] else _absence(metric, row)
            why = reason or why
            metrics[id] = stored(id, metric.unit, why)
            continue
        quality: Quality = "estimate" if id in estimates else "exact"
        metrics[id] = Value(
            id,
            value,
            metric.unit,
            quality,
            reason=reason,
            reliable=reason is None,
            noisy=stored_noisy(reason),
        )
    raw = RawKernel(row["index"], row["name"], row["demangled"], "", workload=row["workload"])
    return Kernel(row["file"], raw, metrics, failed=row["failed"])


def _absence(metric: Metric, row: Mapping[str, Any]) -> str:
    """Return why a value is not there, as far as the catalog tells."""
    cc = row["compute_capability"]
    if cc is not None and metric.not_on(int(cc)):
        return f"not on this GPU (CC {cc / 10:.1f})"
    return f"not collected: section {metric.collected_by}"


def _dimensions(kernel: Kernel, what: str) -> str | None:
    """Return "128 x 2 x 1", or None where a part is unknown."""
    sizes = [kernel.number(f"{what}_{axis}") for axis in "xyz"]
    if None in sizes:
        return None
    return " x ".join(str(int(size or 0)) for size in sizes)


assert _CONTEXT.keys() | {"sha256"} == CONTEXT.keys()
assert PARTITION not in CONTEXT
