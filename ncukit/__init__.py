"""Nsight Compute automation: read a report, translate its counters, say what limits the kernel."""

__version__ = "0.1.0"
