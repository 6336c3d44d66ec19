"""The samples that ship with ncukit."""

from __future__ import annotations

from pathlib import Path

from ncukit.errors import NcukitError


def demo_reports() -> list[Path]:
    """Return the sample reports that ship with ncukit.

    Raises:
        NcukitError: ncukit was installed without them.
    """
    return _samples("*.ncu-rep")


def demo_traces() -> list[Path]:
    """Return the sample traces that ship with ncukit, each with the name of the report it goes with.

    Raises:
        NcukitError: ncukit was installed without them.
    """
    return _samples("*.sqlite")


def _samples(pattern: str) -> list[Path]:
    from ncukit.resources import folder

    try:
        found = sorted(folder("reports/samples").glob(pattern))
    except FileNotFoundError:
        found = []
    if not found:
        raise NcukitError("ncukit was installed without its samples", "reinstall ncukit")
    return found
