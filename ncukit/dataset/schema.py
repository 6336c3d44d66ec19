"""The one schema of a dataset: context, verdict, every neutral metric of the catalog, and what to doubt."""

from __future__ import annotations

import functools
import hashlib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa

from ncukit import __version__
from ncukit.catalog import load
from ncukit.dataset.partitions import PARTITION

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
_MAKES_ROWS = ("catalog", "dataset", "diagnose", "model", "normalise", "read", "roofline")
"""Code and data from the bytes of a report to a row."""

_ERROR = ("file", "path", "sha256", "size", "code", "message", "hint")
ERRORS = pa.schema([(name, COUNT if name == "size" else TEXT) for name in _ERROR])
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
