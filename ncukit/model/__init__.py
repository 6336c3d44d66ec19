"""Frozen dataclasses that travel between the stages. No reading, no arithmetic on counters, no drawing."""

from ncukit.model.diagnosis import Diagnosis, ReportFile
from ncukit.model.finding import Evidence, Experiment, Finding, Place, Skipped, Verdict
from ncukit.model.kernel import Kernel
from ncukit.model.raw import Instance, RawKernel, RawValue, RuleResult, Wanted
from ncukit.model.roofline import Check, Point, Roof, Roofline
from ncukit.model.value import Quality, Value

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
