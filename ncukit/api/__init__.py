"""The public verbs: all that the command line calls, and what ``import ncukit`` hands out.

One module a group of verbs, loaded when one of its names is first used; no module has the name of a verb.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ncukit.api.comparisons import advise, compare, set_baseline, write_comparison
    from ncukit.api.datasets import build_dataset, demo_reports, demo_traces, query_dataset, write_index
    from ncukit.api.experiments import experiment, read_experiment, write_experiment
    from ncukit.api.reports import Report, Reports, diagnose, frame, read, select, write_report
    from ncukit.api.runs import probe, profile, time
    from ncukit.api.traces import mfu, new_trace, ops, ranks, timeline

_MODULES = {
    "comparisons": (
        "advise",
        "compare",
        "set_baseline",
        "write_comparison",
    ),
    "datasets": (
        "build_dataset",
        "demo_reports",
        "demo_traces",
        "query_dataset",
        "write_index",
    ),
    "experiments": (
        "experiment",
        "read_experiment",
        "write_experiment",
    ),
    "reports": (
        "Report",
        "Reports",
        "diagnose",
        "frame",
        "read",
        "select",
        "write_report",
    ),
    "runs": (
        "probe",
        "profile",
        "time",
    ),
    "traces": (
        "mfu",
        "new_trace",
        "ops",
        "ranks",
        "timeline",
    ),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "Report",
    "Reports",
    "advise",
    "build_dataset",
    "compare",
    "demo_reports",
    "demo_traces",
    "diagnose",
    "experiment",
    "frame",
    "mfu",
    "new_trace",
    "ops",
    "probe",
    "profile",
    "query_dataset",
    "ranks",
    "read",
    "read_experiment",
    "select",
    "set_baseline",
    "time",
    "timeline",
    "write_comparison",
    "write_experiment",
    "write_index",
    "write_report",
]


def __getattr__(name: str) -> Any:
    """Load the module of a verb when the verb is first used."""
    if name not in _HOME:
        raise AttributeError(f"module 'ncukit.api' has no attribute {name!r}")
    return getattr(import_module(f"ncukit.api.{_HOME[name]}"), name)
