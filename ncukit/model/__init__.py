"""Frozen dataclasses that travel between the stages. No reading, no arithmetic on counters, no drawing."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ncukit.model.diagnosis import (
        Diagnosis,
        Evidence,
        Experiment,
        Finding,
        Place,
        ReportFile,
        Skipped,
        Verdict,
    )
    from ncukit.model.kernel import Instance, Kernel, Quality, RawKernel, RawValue, RuleResult, Value, Wanted
    from ncukit.model.shares import Check, Point, Roof, Roofline

_MODULES = {
    "diagnosis": (
        "Diagnosis",
        "Evidence",
        "Experiment",
        "Finding",
        "Place",
        "ReportFile",
        "Skipped",
        "Verdict",
    ),
    "kernel": (
        "Instance",
        "Kernel",
        "Quality",
        "RawKernel",
        "RawValue",
        "RuleResult",
        "Value",
        "Wanted",
    ),
    "shares": (
        "Check",
        "Point",
        "Roof",
        "Roofline",
    ),
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
