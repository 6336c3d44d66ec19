"""What ncu collects: sections by preset, and by name the counters that this chip has and sections lack."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ncukit.catalog import Metric, load
from ncukit.collect.options import Preset
from ncukit.record import dataclass

QUICK = ("SpeedOfLight", "SpeedOfLight_RooflineChart", "LaunchStats", "Occupancy")
STANDARD = (
    *QUICK,
    *("ComputeWorkloadAnalysis", "MemoryWorkloadAnalysis", "MemoryWorkloadAnalysis_Chart"),
    *("MemoryWorkloadAnalysis_Tables", "SchedulerStats", "WarpStateStats", "InstructionStats"),
    *("SourceCounters", "WorkloadDistribution"),
)
RANKS = ("LaunchStats",)
"""For one rank of many: a single pass, for the others wait while a pass is replayed."""
SINGLE_PASS = ("gpu__time_duration.sum",)

PASSES = {"quick": 15, "standard": 40, "full": 50, "ranks": 1}
"""Replay passes that these take on GPUs of 2018 to 2025: the upper end of what reports of them show."""
_ROOFLINE = "SpeedOfLight_Hierarchical"
"""The sections for these four charts cost many passes; the counters that are needed of them cost few."""
_ALWAYS = ("device__", "launch__", "gpu__", "profiler__", "sass__", "smsp__pcsamp")
"""Raw metrics that come without being asked for, or that only a section brings."""

PASS_COST = 0.02
"""[s] that a pass of a short kernel takes, with saving and restoring what it writes."""
COSTLY = 120.0
"""[s] from which the estimate is worth a line before the run."""


@dataclass(frozen=True)
class Collected:
    """What ncu is asked for; ``passes`` is an estimate for each launch."""

    set: str | None
    sections: tuple[str, ...]
    metrics: tuple[str, ...]
    passes: int
    note: str = ""


def collected(
    preset: Preset,
    *,
    known_sections: Collection[str] = (),
    known_metrics: Collection[str] = (),
    cc: tuple[int, int] | None = None,
    ranks: int = 1,
) -> Collected:
    """Return what to collect; what is known of the tool and the chip leaves out what they lack.

    Without ``known_metrics`` no counter is named: a name that the chip does not have ends the whole run.

    >>> collected("full").set, collected("quick").sections[0], collected("full", ranks=4).passes
    ('full', 'SpeedOfLight', 1)
    """
    if ranks > 1:
        text = f"one of {ranks} ranks: a single pass, for the others wait while a kernel is replayed"
        return Collected(None, _known(RANKS, known_sections), SINGLE_PASS, PASSES["ranks"], text)
    named = tuple(roofline_counters(known_metrics, cc)) if known_metrics else ()
    if preset == "full":
        return Collected("full", (), named, PASSES[preset])
    sections = QUICK if preset == "quick" else STANDARD
    return Collected(None, _known(sections, known_sections), named, PASSES[preset])


def roofline_counters(known: Collection[str], cc: tuple[int, int] | None) -> Iterable[str]:
    """Yield the raw counters of the roofline that ``known`` (base names) has and no cheap section brings.

    For each neutral metric its first source that is valid on ``cc`` and complete on the chip is taken.
    """
    number = None if cc is None else cc[0] * 10 + cc[1]
    found: dict[str, None] = {}
    for metric in load().metrics.values():
        if metric.family == "roofline" and metric.collected_by.startswith(_ROOFLINE):
            found |= dict.fromkeys(_first_complete(metric, known, number))
    return tuple(sorted(name for name in found if not name.startswith(_ALWAYS)))


def estimate(passes: int, launches: int, kernel: float | None, program: float | None) -> float:
    """Return about how long ncu will take [s]; ``kernel`` [s] is one launch, ``program`` [s] all the rest.

    >>> round(estimate(40, 1, 0.001, 3.0), 2)
    3.84
    """
    return (program or 0.0) + passes * launches * ((kernel or 0.0) + PASS_COST)


def _first_complete(metric: Metric, known: Collection[str], cc: int | None) -> tuple[str, ...]:
    for source in metric.sources:
        expression = source.expression
        if not source.valid_on(cc) or not expression.raws:
            continue
        raws = [name for name in sorted(expression.raws) if not name.startswith(_ALWAYS)]
        if raws and all(_base(name) in known for name in raws):
            extra = [name for name in sorted(expression.optional) if _base(name) in known]
            return (*raws, *extra)
    return ()


def _base(name: str) -> str:
    return name.partition(".")[0]


def _known(sections: tuple[str, ...], known: Collection[str]) -> tuple[str, ...]:
    return tuple(section for section in sections if not known or section in known)
