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
    "Comparison",
    "Diagnosis",
    "ExperimentRecord",
    "Kernel",
    "NcukitError",
    "Report",
    "Reports",
    "Value",
    "advise",
    "annotate",
    "build_dataset",
    "compare",
    "demo_reports",
    "demo_traces",
    "diagnose",
    "experiment",
    "frame",
    "mfu",
    "models",
    "ops",
    "probe",
    "profile",
    "query_dataset",
    "ranks",
    "read",
    "set_baseline",
    "time",
    "timeline",
    "workload",
    "write_comparison",
    "write_index",
    "write_report",
]

if TYPE_CHECKING:
    from ncukit.api import (
        Report,
        Reports,
        advise,
        build_dataset,
        compare,
        demo_reports,
        demo_traces,
        diagnose,
        experiment,
        frame,
        mfu,
        ops,
        probe,
        profile,
        query_dataset,
        ranks,
        read,
        set_baseline,
        time,
        timeline,
        write_comparison,
        write_index,
        write_report,
    )
    from ncukit.errors import NcukitError
    from ncukit.model import Diagnosis, Kernel, Value
    from ncukit.model.comparison import Comparison
    from ncukit.model.experiment import ExperimentRecord
    from ncukit.roofline import models
    from ncukit.run.workload.annotation import annotate
    from ncukit.run.workload.script import Case, workload

_HOME = {
    "Case": "ncukit.run.workload.script",
    "Comparison": "ncukit.model.comparison",
    "Diagnosis": "ncukit.model",
    "ExperimentRecord": "ncukit.model.experiment",
    "Kernel": "ncukit.model",
    "NcukitError": "ncukit.errors",
    "Value": "ncukit.model",
    "annotate": "ncukit.run.workload.annotation",
    "models": "ncukit.roofline",
    "workload": "ncukit.run.workload.script",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: ``import ncukit`` itself costs nothing."""
    if name not in __all__:
        raise AttributeError(f"module 'ncukit' has no attribute {name!r}")
    from importlib import import_module

    home = import_module(_HOME.get(name, "ncukit.api"))
    return import_module(f"{home.__name__}.{name}") if name == "models" else getattr(home, name)


def __dir__() -> list[str]:
    """List the verbs and records; the parts are imported by their full names."""
    return sorted([*__all__, "__version__"])
