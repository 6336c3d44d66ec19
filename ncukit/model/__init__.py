"""Frozen dataclasses that travel between the stages. No reading, no arithmetic on counters, no drawing."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ncukit.model.diagnosis import Diagnosis, ReportFile
    from ncukit.model.finding import Evidence, Experiment, Finding, Place, Skipped, Verdict
    from ncukit.model.kernel import Kernel
    from ncukit.model.raw import Instance, RawKernel, RawValue, RuleResult
    from ncukit.model.roofline import Check, Point, Roof, Roofline
    from ncukit.model.value import Quality, Value
    from ncukit.model.wanted import Wanted

_MODULES = {
    "diagnosis": ("Diagnosis", "ReportFile"),
    "finding": ("Evidence", "Experiment", "Finding", "Place", "Skipped", "Verdict"),
    "kernel": ("Kernel",),
    "raw": ("Instance", "RawKernel", "RawValue", "RuleResult"),
    "roofline": ("Check", "Point", "Roof", "Roofline"),
    "value": ("Quality", "Value"),
    "wanted": ("Wanted",),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "Check",
    "Diagnosis",
    "Evidence",
    "Experiment",
    "Finding",
    "Instance",
    "Kernel",
    "Place",
    "Point",
    "Quality",
    "RawKernel",
    "RawValue",
    "ReportFile",
    "Roof",
    "Roofline",
    "RuleResult",
    "Skipped",
    "Value",
    "Verdict",
    "Wanted",
]


def __getattr__(name: str) -> Any:
    """Load the module of a class when the class is first used: a reading process needs hardly any."""
    if name not in _HOME:
        raise AttributeError(f"module 'ncukit.model' has no attribute {name!r}")
    return getattr(import_module(f"ncukit.model.{_HOME[name]}"), name)
