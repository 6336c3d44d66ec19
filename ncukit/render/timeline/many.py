"""The timeline in the page of many launches: the kernels of the trace, those of the report marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ncukit import quantity
from ncukit.media import cleaned
from ncukit.model.trace import KernelTime, Match
from ncukit.quantity import factor
from ncukit.render.cells import Tips
from ncukit.render.line import Line, bold, code, line, link
from ncukit.render.timeline import tables
from ncukit.render.timeline.beside import Beside
from ncukit.render.timeline.figures import Figures
from ncukit.render.timeline.section import APART, EFFICIENCY, marked, other_gpu
from ncukit.render.timeline.verdict import verdict
from ncukit.render.view.groups import Launch
from ncukit.render.words import shorten

SHOWN = 20
"""Kernels of the trace in the table, by total time; those of the report are there in any case."""
LINKS = 6
"""Links to launches of one kernel."""


@dataclass
class Found:
    """The launches of a report by traced kernel, and those that the trace does not hold."""

    of: dict[str, list[Launch]] = field(default_factory=dict)
    """Name of the traced kernel -> launches."""
    kernels: dict[str, KernelTime] = field(default_factory=dict)
    matches: list[Match] = field(default_factory=list)
    absent: list[Launch] = field(default_factory=list)


def found(beside: Beside, launches: Sequence[Launch]) -> Found:
    """Return which traced kernel each launch belongs to, the longest launch first."""
    result = Found()
    ordered = sorted(launches, key=lambda launch: -launch.weight)
    for launch, match in zip(ordered, beside.find([x.cells.kernel for x in ordered]), strict=True):
        if match is None:
            result.absent.append(launch)
        else:
            result.of.setdefault(match.kernel.name, []).append(launch)
            result.kernels[match.kernel.name] = match.kernel
            result.matches.append(match)
    return result


def many_section(
    beside: Beside, launches: Sequence[Launch], tips: Tips, *, figure: bool = True
) -> dict[str, Any]:
    """Return the timeline's part of the page of ``launches``, as data for ``parts/timeline.html``.

    Without ``figure`` it has no strip.
    """
    timeline, figures = beside.timeline, Figures(tips)
    own = found(beside, launches)
    shown = [k for i, k in enumerate(timeline.kernels) if i < SHOWN or k.name in own.of]
    section = {
        "region": region_line(beside, own),
        "verdict": verdict(timeline, figures),
        "strip": marked(beside.lanes(*own.matches[:1]) if figure else None, *own.matches),
        "devices": [tables.device(d, figures) for d in timeline.devices],
        "rows": [_row(i, k, own.of.get(k.name, []), figures) for i, k in enumerate(shown)],
        "more": len(timeline.kernels) - len(shown),
        "absent": _absent(own.absent),
        "note": line(
            "ncu locks the SM clock, flushes the caches before each pass and runs each launch alone, unless "
            f"told otherwise; nsys does none of it. {APART}"
        ),
        "cautions": other_gpu(timeline, launches[0].cells.kernel),
        "launches": tables.launches(timeline, figures),
        "notes": tables.notes(timeline),
    }
    result: dict[str, Any] = cleaned(section)
    return result


def region_line(beside: Beside, own: Found) -> Line:
    """Return the region's verdict, and how much of the kernel time the kernels of the report take."""
    timeline = beside.timeline
    region, every = timeline.region, timeline.kernel_total
    said: list[Any] = [bold(f"Region: {region.cls}."), f" {region.claim}"]
    if not own.of:
        said.append(" No kernel of this report is in the trace: is it the same program?")
    elif every:
        part = 100 * sum(k.launches.total for k in own.kernels.values()) / every
        which = "The kernel" if len(own.of) == 1 else f"The {len(own.of):,} kernels"
        said.append(
            f" {which} of this report that {'is' if len(own.of) == 1 else 'are'} in the trace "
            f"take{'s' if len(own.of) == 1 else ''} {quantity.short(part, '%')} of its kernel time."
        )
    return line(*said)


def _row(i: int, k: KernelTime, launches: Sequence[Launch], figures: Figures) -> dict[str, Any]:
    profiled = [x.duration for x in launches if x.duration is not None and not x.cells.kernel.failed]
    return {
        "name": shorten(k.short, 60),
        "whole": k.name if k.name != k.short else "",
        "own": bool(launches),
        "links": sorted(x.n for x in launches)[:LINKS],
        "more": max(0, len(launches) - LINKS),
        "share": figures.of(f"m{i}s", k.share, "%", "Union of its launches, of the region"),
        "n": f"{k.launches.n:,}",
        "total": figures.time(f"m{i}t", k.launches.total, "Sum of all its launches in the trace"),
        "order": k.launches.total,
        "traced": figures.time(f"m{i}m", k.steady.median, f"Median of {k.steady.n:,} steady launches"),
        "profiled": quantity.span(min(profiled), max(profiled), "s") if profiled else "",
        "efficiency": _efficiency(launches[0]) if launches else "",
        "bound": quantity.MISSING if k.bound is None else f"{factor(k.bound)} ×",
    }


def _efficiency(launch: Launch) -> str:
    """Return the busiest unit of a launch and its share of peak."""
    units = [(n, name) for id, name in EFFICIENCY if (n := launch.cells.number(id)) is not None]
    return f"{max(units)[1]} {quantity.short(max(units)[0], '%')}" if units else ""


def _absent(launches: Sequence[Launch]) -> Line:
    """Return the launches that the trace does not hold, nothing where it holds all."""
    if not launches:
        return []
    parts: list[Any] = []
    for launch in sorted(launches, key=lambda launch: launch.n)[:LINKS]:
        name = code(shorten(launch.cells.kernel.name, 40))
        parts += ["launch ", link(str(launch.n), f"kernel-{launch.n}"), " ", name, ", "]
    more = f" and {len(launches) - LINKS:,} more" if len(launches) > LINKS else ""
    return line("Not in the trace: ", *parts[:-1], f"{more}.")
