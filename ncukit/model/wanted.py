"""What to read of a report: all that the reading process needs to know."""

from __future__ import annotations

from typing import Literal

from ncukit.record import dataclass


@dataclass(frozen=True)
class Wanted:
    """What to read of each launch; ``metrics`` None means every one.

    ``breakdowns`` are string metrics that list other metrics: those are read as well.
    ``sass`` "half" reads SASS only for launches whose opcode counts show packed-half instructions.
    ``code`` reads what is known by instruction: SASS, lines, and the instances of ``by_pc`` (raw names; one
    that ends in "*" stands for all that begin so).  ``series`` are counters of PM sampling, without the name
    of their pass.
    """

    metrics: frozenset[str] | None = frozenset()
    instances: frozenset[str] = frozenset()
    breakdowns: frozenset[str] = frozenset()
    units: bool = False
    sections: bool = False
    rules: bool = False
    nvtx: bool = False
    sources: bool = False
    sass: Literal["none", "half", "all"] = "none"
    code: bool = False
    by_pc: frozenset[str] = frozenset()
    series: frozenset[str] = frozenset()
