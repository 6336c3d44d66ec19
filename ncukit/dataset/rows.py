"""A launch as a row of the dataset: the columns, the folders, there and back."""

from __future__ import annotations

import functools
import hashlib
import os
import re
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from ncukit import __version__
from ncukit.metrics import Metric, load
from ncukit.metrics.normalise import MARK
from ncukit.model import Kernel, Quality, RawKernel, Value, Verdict
from ncukit.model.kernel import stored, stored_noisy

# ---- How a dataset names its folders, one a GPU, and the part files in them

PARTITION = "gpu"
"""Key of the partitions, which no file holds: it is read from the names of the folders."""
NOWHERE = "__HIVE_DEFAULT_PARTITION__"
"""Value of the partition where the GPU is not known, as Hive writes it."""
_LONGEST = 200
"""Characters of the longest folder name that is the GPU's own; of a longer one its beginning and a hash."""
_FILE = r"[A-Za-z0-9-][A-Za-z0-9._-]{0,60}-[0-9a-f]{12}\.parquet"
_PART = re.compile(rf"gpu=[^/\0]+/{_FILE}")
_HIDDEN = re.compile(rf"gpu=[^/\0]+/\.{_FILE}\.[0-9]+\.tmp")


def part_name(path: str) -> str:
    """Return the name of the part files of the report at ``path``: the same for the same path.

    >>> part_name("/runs/a b.ncu-rep")
    'a_b-44ca9e4aac7b.parquet'
    """
    stem = "".join(c if c.isascii() and (c.isalnum() or c in "-.") else "_" for c in Path(path).stem)
    return (
        f"{stem[:60].lstrip('._') or 'report'}-{hashlib.sha256(os.fsencode(path)).hexdigest()[:12]}.parquet"
    )


def partition_name(gpu: str | None) -> str:
    """Return the folder of a GPU's launches.

    >>> partition_name("NVIDIA A100-PCIE-40GB"), partition_name(None)
    ('gpu=NVIDIA%20A100-PCIE-40GB', 'gpu=__HIVE_DEFAULT_PARTITION__')
    """
    if not gpu:
        return f"{PARTITION}={NOWHERE}"
    name = quote(gpu, safe="")
    if len(name) > _LONGEST:  # a file system takes 255 bytes
        name = f"{quote(gpu[:16], safe='')}-{hashlib.sha256(gpu.encode()).hexdigest()[:12]}"
    return f"{PARTITION}={name}"


def is_part(name: str) -> bool:
    """Return whether ``name`` is one that a build gives its part files, by the path inside the dataset.

    >>> is_part("gpu=NVIDIA%20A40/a_b-44ca9e4aac7b.parquet"), is_part("../thesis.parquet")
    (True, False)
    """
    return _PART.fullmatch(name) is not None


def is_left(name: str) -> bool:
    """Return whether ``name`` is a file that a build left when it was killed.

    >>> is_left("gpu=A40/.a-44ca9e4aac7b.parquet.12.tmp"), is_left("gpu=A40/notes.tmp")
    (True, False)
    """
    return _HIDDEN.fullmatch(name) is not None


# ---- The one schema of a dataset: context, verdict, every neutral metric of the catalog, and what to doubt

SCHEMA = "ncukit.dataset/1"

TEXT, COUNT, FLAG = pa.string(), pa.int64(), pa.bool_()
CONTEXT = {
    "file": TEXT,
    "sha256": TEXT,
    "index": COUNT,
    "name": TEXT,
    "demangled": TEXT,
    "cc": TEXT,
    "grid": TEXT,
    "block": TEXT,
    "nvtx": pa.list_(TEXT),
    "workload": TEXT,
    "synthetic": FLAG,
    "failed": TEXT,
    "class": TEXT,
    "limiter": TEXT,
    "confidence": TEXT,
    "claim": TEXT,
}
"""What a row says beside its metrics; ``failed`` is the reason, null for a good launch."""

DOUBTS = {"estimates": pa.list_(TEXT), "reasons": pa.map_(TEXT, TEXT)}
"""Metrics of the row that are estimates; and metric -> why its value must not be used, or is undefined."""

_PACKAGE = Path(__file__).parent.parent
_MAKES_ROWS = ("dataset", "judge", "metrics", "model", "report", "roofline")
"""Code and data from the bytes of a report to a row."""

_ERROR = ("file", "path", "sha256", "size", "code", "message", "hint")
ERROR_COLUMNS = pa.schema([(name, COUNT if name == "size" else TEXT) for name in _ERROR])
"""Columns of the table of errors."""


@functools.cache
def file_schema() -> Any:
    """Return the schema of a part file."""
    metrics = [
        pa.field(metric.id, TEXT if metric.kind == "string" else pa.float64())
        for metric in load().metrics.values()
    ]
    return pa.schema([*CONTEXT.items(), *metrics, *DOUBTS.items()])


@functools.cache
def schema() -> Any:
    """Return the schema of the dataset: that of its files, and the partition."""
    return file_schema().append(pa.field(PARTITION, TEXT))


@functools.cache
def fingerprint() -> str:
    """Return what identifies how rows are computed; rows with another one are out of date."""
    made_by = f"{SCHEMA} {__version__} {code_hash()} ncu-report {version('ncu-report')}"
    return hashlib.sha256(f"{made_by} {file_schema()}".encode()).hexdigest()


def code_hash(package: Path = _PACKAGE) -> str:
    """Return the SHA-256 of the code and data of ``package`` that a row depends on."""
    digest = hashlib.sha256()
    for part in _MAKES_ROWS:
        for path in sorted(p for p in package.glob(f"{part}/**/*") if p.suffix in (".py", ".json", ".toml")):
            digest.update(f"{path.relative_to(package).as_posix()} {path.stat().st_size}\n".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def metrics_table() -> Any:
    """Return what each metric column means, which section collects it and on which GPUs it is absent."""
    names = ("id", "family", "unit", "direction", "meaning", "collected_by", "absent")
    return pa.Table.from_pylist(
        [{name: getattr(metric, name) for name in names} for metric in load().metrics.values()]
    )


# ---- A launch as a row of the dataset, and back

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
