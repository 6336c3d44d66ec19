"""Nsight Compute automation: read a report, translate its counters, say what limits the kernel.

>>> import ncukit
>>> kernels = list(ncukit.read(ncukit.demo_reports()[0]).kernels())
>>> kernels[0].metrics["kernel_duration"].unit
's'
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = [
    "Case",
    "Diagnosis",
    "Kernel",
    "NcukitError",
    "Report",
    "Value",
    "demo_reports",
    "diagnose",
    "read",
    "workload",
    "write_report",
]

if TYPE_CHECKING:
    from ncukit.api import Report, demo_reports, diagnose, read, write_report
    from ncukit.errors import NcukitError
    from ncukit.model import Diagnosis, Kernel, Value
    from ncukit.workload.declare import Case, workload

_HOME = {
    "Case": "ncukit.workload",
    "Diagnosis": "ncukit.model",
    "Kernel": "ncukit.model",
    "NcukitError": "ncukit.errors",
    "Value": "ncukit.model",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: ``import ncukit`` itself costs nothing."""
    if name not in __all__:
        raise AttributeError(f"module 'ncukit' has no attribute {name!r}")
    from importlib import import_module

    if name == "workload":  # the package itself, which can be called as the decorator
        return import_module("ncukit.workload")
    return getattr(import_module(_HOME.get(name, "ncukit.api")), name)
