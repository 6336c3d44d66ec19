"""The timeline in the page of a kernel's report: what both tools say, each about its own run, never mixed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ncukit.model import Kernel
from ncukit.model.timeline import KernelTime, Timeline
from ncukit.render import numbers
from ncukit.render.cells import Cell, Tips, plain
from ncukit.render.line import Line, bold, line
from ncukit.render.timeline import tables
from ncukit.render.timeline.figures import Figures
from ncukit.render.timeline.verdict import verdict
from ncukit.render.words import cleaned, shorten

EFFICIENCY = (
    ("dram_throughput_pct", "DRAM"),
    ("l2_throughput_pct", "L2"),
    ("l1_throughput_pct", "L1/TEX"),
    ("sm_throughput_pct", "SM"),
)
"""Units whose share of peak says how well the kernel itself runs; the busiest one is shown."""
WHY_TWO_TIMES = (
    "ncu flushes the caches before each pass, locks the SM clock (unless told otherwise) and runs the launch "
    "alone; nsys does neither. So the two times differ and are never combined: bandwidth and FLOP rates are "
    "ncu's bytes and FLOPs over ncu's time, shares of the region are nsys's time over nsys's time."
)


def timeline_section(
    timeline: Timeline, kernel: Kernel, strip: Mapping[str, Any] | None = None, tips: Tips | None = None
) -> dict[str, Any]:
    """Return the timeline's part of the page of ``kernel``, as plain data for ``parts/timeline.html``.

    ``strip`` is from `ncukit.render.timeline.strip.strip` (None: no figure); ``tips`` are those of the page,
    to which the numbers here are added.
    """
    figures = Figures(tips)
    traced = of_kernel(timeline, kernel)
    section = {
        "region": region_line(timeline, traced),
        "verdict": verdict(timeline, figures),
        "strip": strip,
        "devices": [tables.device(d, figures) for d in timeline.devices],
        "both": both(timeline, kernel, traced, figures),
        "both_note": line(WHY_TWO_TIMES if traced else _absent(timeline)),
        "launches": tables.launches(timeline, figures),
        "tips": figures.tips.as_dict(),
    }
    result: dict[str, Any] = cleaned(section)
    return result


def of_kernel(timeline: Timeline, kernel: Kernel) -> KernelTime | None:
    """Return the traced kernel that ``kernel`` is a launch of, by its whole name or a unique function name.

    None where the trace has no such kernel, or several of that function name.
    """
    for found in timeline.kernels:
        if squeezed(found.name) == squeezed(kernel.demangled):
            return found
    same = [found for found in timeline.kernels if found.short == kernel.name]
    return same[0] if len(same) == 1 else None


def squeezed(name: str) -> str:
    """Return a demangled name without spaces: ncu and nsys set them differently.

    >>> squeezed("void f<int>(int *)") == squeezed("void f<int>(int*)")
    True
    """
    return name.replace(" ", "")


def region_line(timeline: Timeline, traced: KernelTime | None) -> Line:
    """Return the region's verdict in one line, for under the kernel's own, which may differ."""
    region = timeline.region
    said: list[Any] = [bold(f"Region: {region.cls}."), f" {region.claim}"]
    if traced is not None:
        said.append(f" This kernel runs {numbers.short(traced.share, '%')} of it")
        most = (
            "" if traced.bound is None else f": without it the region is at most {traced.bound:.2f} × as fast"
        )
        said.append(f"{most}.")
    return line(*said)


def both(
    timeline: Timeline, kernel: Kernel, traced: KernelTime | None, figures: Figures
) -> list[dict[str, Any]]:
    """Return the rows that set kernel efficiency (ncu) and the GPU's busy share (nsys) side by side."""
    main = tables.main_of(timeline)
    unit = max(
        ((n, label) for id, label in EFFICIENCY if (n := kernel.number(id)) is not None),
        default=None,
    )
    rows: list[tuple[str, str, Cell, str]] = []
    if unit is not None:
        cell = figures.of("both_efficiency", unit[0], "%", "Of peak, of the unit that is busiest")
        rows.append(("Kernel efficiency", "ncu", cell, f"{unit[1]}, share of its peak while the kernel runs"))
    busy = figures.share("both_busy", main.busy, main.span, "Time in which some kernel runs")
    rows.append(("GPU busy", "nsys", busy, "some kernel runs, share of the region"))
    duration = kernel.number("kernel_duration")
    profiled = figures.of("both_profiled", duration, "s", "One launch under ncu") if duration else plain("–")
    rows.append(("Profiled time", "ncu", profiled, "one launch, replayed alone"))
    if traced is not None:
        steady = traced.steady
        cell = figures.time("both_traced", steady.median, "Median of the steady launches")
        span = numbers.span(steady.min / 1e9, steady.max / 1e9, "s")
        rows.append(("Traced time", "nsys", cell, f"median of {steady.n:,} steady launches, {span}"))
    return [{"name": name, "tool": tool, "cell": cell, "note": note} for name, tool, cell, note in rows]


def _absent(timeline: Timeline) -> str:
    names = ", ".join(shorten(k.short, 40) for k in timeline.kernels[:3]) or "none"
    return f"This kernel is not in the trace; the longest there are: {names}. Is it the same program?"
