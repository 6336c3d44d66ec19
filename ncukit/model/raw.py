"""One launch as the report holds it: native names, base units, nothing interpreted."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from ncukit.record import dataclass

RawValue = float | int | str
Instance = tuple[int | str | float, float | int | str]
"""(correlation id, value): a PC, an opcode or a time stamp, and what was counted there."""


@dataclass(frozen=True)
class RuleResult:
    """What one of ncu's own rules wrote into the report.

    ``speedup`` [%] is ncu's estimate; ``speedup_kind`` says of what: ``global`` (the whole kernel) or
    ``local`` (the section's own metric).  The two must never share a column.
    """

    id: str
    name: str
    section: str
    messages: tuple[tuple[str, str, str], ...]
    """(kind, title, text); kind is one of ok, optimization, warning, error, none."""
    speedup: float | None = None
    speedup_kind: Literal["global", "local"] | None = None
    focus: tuple[tuple[str, float, str], ...] = ()
    """(raw metric, value, information) that the rule looked at."""


@dataclass(frozen=True)
class Code:
    """The counted instructions of a kernel in address order; launches of the same code share one.

    ``sass`` is empty where the report holds no text.  ``lines`` are (position in ``files``, line number) by
    instruction, None without line information.  ``texts`` holds, by position in ``files``, the lines that
    the report carries, as far as they lie near a counted instruction.
    """

    pcs: tuple[int, ...]
    sass: tuple[str, ...]
    files: tuple[str, ...] = ()
    lines: tuple[tuple[int, int] | None, ...] = ()
    texts: Mapping[int, Mapping[int, str]] = field(default_factory=dict)

    @functools.cached_property
    def text(self) -> Mapping[int, str] | None:
        """PC -> SASS text; None when the report holds none."""
        return dict(zip(self.pcs, self.sass, strict=True)) if any(self.sass) else None


@dataclass(frozen=True)
class RawKernel:
    """One result of a report.

    ``metrics`` holds what was asked for *and* is in the report, as int, float (NaN kept) or str.
    """

    index: int
    function: str
    demangled: str
    mangled: str
    workload: str = "kernel"
    origin: Literal["report", "csv"] = "report"
    metrics: Mapping[str, RawValue] = field(default_factory=dict)
    instances: Mapping[str, tuple[Instance, ...]] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    sections: tuple[str, ...] = ()
    rules: tuple[RuleResult, ...] = ()
    nvtx: tuple[str, ...] = ()
    source_files: Mapping[str, str] = field(default_factory=dict)
    sass: Mapping[int, str] | None = None
    """PC -> SASS text; None when it was not read or is not in the report."""
    lines: Mapping[int, tuple[str, int]] = field(default_factory=dict)
    """PC -> (file, line), where the program was built with line information."""
    code: Code | None = None
    by_pc: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    """Raw counter -> {PC: what was counted there}; zeros are left out."""
    functions: tuple[int, ...] = ()
    """PCs at which functions of the kernel begin."""
    series: Mapping[str, tuple[tuple[int, ...], tuple[float, ...]]] = field(default_factory=dict)
    """Raw name -> (time stamps [ns], values) of PM sampling."""

    def __repr__(self) -> str:
        return f"<RawKernel {self.function}, launch {self.index + 1}: {len(self.metrics)} counters>"
