"""The timeline in the page of a kernel's report: what both tools say, each about its own run, never mixed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ncukit import quantity
from ncukit.media import cleaned
from ncukit.model import Kernel
from ncukit.model.trace import UNKNOWN, DeviceTime, Match, Timeline
from ncukit.quantity import factor, faster
from ncukit.render.cells import Cell, Cells, Tips
from ncukit.render.line import Line, bold, code, line
from ncukit.render.timeline import tables
from ncukit.render.timeline.figures import Figures
from ncukit.render.timeline.strip import label
from ncukit.render.timeline.verdict import verdict
from ncukit.render.words import listed, plural, shorten
from ncukit.trace.launch_choice import Matcher, shape_of

EFFICIENCY = (
    ("dram_throughput_pct", "DRAM"),
    ("l2_throughput_pct", "L2"),
    ("l1_throughput_pct", "L1/TEX"),
    ("sm_throughput_pct", "SM"),
)
"""Units whose share of peak says how well the kernel itself runs; the busiest one is shown."""
APART = (
    "The two times come from two runs and are never combined: bandwidth and FLOP rates are ncu's bytes and "
    "FLOPs over ncu's time, shares of the region are nsys's time over nsys's time. Neither is a benchmark."
)
OVERLAP = 1.05
"""Sum of the kernels over their union from which kernels are said to run beside each other."""
FULL_CLOCK = 0.97
"""Share of the highest clock from which a clock explains nothing."""
SHOWN_SHAPES = 3


def timeline_section(
    timeline: Timeline, kernel: Kernel, strip: Mapping[str, Any] | None = None, tips: Tips | None = None
) -> dict[str, Any]:
    """Return the timeline's part of the page of ``kernel``, as plain data for ``parts/timeline.html``.

    ``strip`` is from `ncukit.render.timeline.strip.strip` (None: no figure); ``tips`` are those of the page,
    to which the numbers here are added.
    """
    figures = Figures(tips)
    cells = Cells(kernel, figures.tips)
    match = Matcher(timeline).find(kernel)
    section = {
        "region": region_line(timeline, match),
        "verdict": verdict(timeline, figures),
        "strip": marked(strip, match),
        "devices": [tables.device(d, figures) for d in timeline.devices],
        "both": both(timeline, cells, match, figures),
        "both_note": line(APART) if match else _absent(timeline),
        "why": why_two_times(timeline, cells, match),
        "cautions": [*other_gpu(timeline, kernel), *(_doubts(kernel, match) if match else [])],
        "launches": tables.launches(timeline, figures),
        "notes": tables.notes(timeline),
        "tips": figures.tips.as_dict(),
    }
    result: dict[str, Any] = cleaned(section)
    return result


def add_section(
    parts: dict[str, Any], cells: Cells, timeline: Timeline, strip: Mapping[str, Any] | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the sections of a launch with the region under its verdict, and the timeline's own section.

    The tooltips of the section go to those of ``cells``.
    """
    section = timeline_section(timeline, cells.kernel, strip, cells.tips)
    section.pop("tips")
    if "verdict" in parts:
        parts = parts | {"verdict": {**parts["verdict"], "region": section["region"]}}
    return parts, section


def marked(strip: Mapping[str, Any] | None, *matches: Match | None) -> dict[str, Any] | None:
    """Return the strip with the names of the matched kernels marked, to be outlined."""
    if not strip:
        return None
    own = {label(match.kernel.short) for match in matches if match is not None}
    return {**strip, "own": [i for i, name in enumerate(strip["names"]) if name in own]}


def region_line(timeline: Timeline, match: Match | None) -> Line:
    """Return the region's verdict in one line, for under the kernel's own, which may differ."""
    region = timeline.region
    said: list[Any] = [bold(f"Region: {region.cls}."), f" {region.claim}"]
    if match is None:
        said.append(" This kernel is not in the trace.")
    else:
        said.append(f" This kernel runs {quantity.short(match.kernel.share, '%')} of it")
        said.append(f"{_most(match)}.")
    return line(*said)


def _most(match: Match) -> str:
    return f"; without it the region would be {faster(match.kernel.bound)}"


def both(timeline: Timeline, cells: Cells, match: Match | None, figures: Figures) -> list[dict[str, Any]]:
    """Return the rows that set kernel efficiency (ncu) and the GPU's busy share (nsys) side by side."""
    main = tables.main_of(timeline)
    unit = max(
        ((n, id, name) for id, name in EFFICIENCY if (n := cells.number(id)) is not None), default=None
    )
    rows: list[tuple[str, str, Cell, str]] = []
    if unit is not None:
        note = f"{unit[2]}, share of its peak while the kernel runs"
        rows.append(("Kernel efficiency", "ncu", cells[unit[1]], note))
    busy = figures.share("both_busy", main.busy, main.span, "Time in which some kernel runs")
    rows.append(("GPU busy", "nsys", busy, "some kernel runs, share of the region"))
    if cells.number("dram_bandwidth") is not None:
        rows.append(("DRAM bandwidth", "ncu", cells["dram_bandwidth"], "ncu's bytes over ncu's time"))
    rows.append(("Profiled time", "ncu", cells["kernel_duration"], "one launch, replayed alone"))
    if match is not None:
        near = match.launches
        cell = figures.time("both_traced", near.median, "Median of the traced launches that are nearest")
        rows.append(("Traced time", "nsys", cell, _traced_launches(match)))
        share = figures.of("both_share", match.kernel.share, "%", "Union of its launches, of the region")
        note = f"of the region, {plural(match.kernel.launches.n, 'launch')} in all{_most(match)} (Amdahl)"
        rows.append(("This kernel", "nsys", share, note))
    return [{"name": name, "tool": tool, "cell": cell, "note": note} for name, tool, cell, note in rows]


def _traced_launches(match: Match) -> str:
    """Return which launches the traced time is of."""
    near = match.launches
    steady = match.shape is None or match.shape.steady is not None
    what = plural(near.n, "steady launch" if steady else "launch")
    same = [name for name in match.by if "name" not in name]
    of = f" of the same {listed(same).replace(' and block and', ', block and')}" if same else ""
    span = f", {quantity.span(near.min / 1e9, near.max / 1e9, 's')}" if near.n > 1 else ""
    return f"{'median of ' if near.n > 1 else ''}{what}{of}{span}"


def why_two_times(timeline: Timeline, cells: Cells, match: Match | None) -> list[Line]:
    """Return how far profiled and traced time are apart, and what may explain it; nothing without both."""
    profiled = cells.number("kernel_duration")
    if match is None or not profiled or not match.launches.median:
        return []
    ratio = profiled / (match.launches.median / 1e9)
    clock, most = cells.number("sm_clock"), cells.number("sm_clock_max")
    if clock and most and clock / most < FULL_CLOCK:
        share = quantity.short(100 * clock / most, "%")
        here = (
            f"here {quantity.short(clock, 'hz')}, {share} of the highest; a trace does not record its clocks"
        )
    else:
        here = "nsys leaves it alone, and does not record it"
    said = [
        ("Clock.", f"ncu locks the SM clock to base unless told otherwise: {here}."),
        (
            "Caches.",
            "ncu flushes them before each pass unless told otherwise; in the trace the launch finds what "
            "earlier work left in L2.",
        ),
    ]
    main, near = tables.main_of(timeline), match.launches
    if main.busy and main.sum / main.busy >= OVERLAP:
        said.append(
            (
                "Company.",
                "ncu runs the launch alone; in the trace kernels overlap (added up, they take "
                f"{factor(main.sum / main.busy)} × the busy time) and slow each other.",
            )
        )
    if near.n > 1:
        span = quantity.span(near.min / 1e9, near.max / 1e9, "s")
        said.append(("Number.", f"ncu measured one launch; the trace has {near.n:,} like it, {span}."))
    differ = listed([_DIFFERENCES[head] for head, _ in said])
    first = line(f"Under ncu the launch took {factor(ratio)} × its traced time. Different there: {differ}.")
    return [first, *(line(bold(head), f" {text}") for head, text in said)]


_DIFFERENCES = {
    "Clock.": "the clock",
    "Caches.": "the caches",
    "Company.": "the company",
    "Number.": "the number of launches",
}


def other_gpu(timeline: Timeline, kernel: Kernel) -> list[Line]:
    """Return a caution where the trace was recorded on another GPU than the report."""
    main = tables.main_of(timeline)
    if not _differs(main, kernel):
        return []
    other = f"{kernel.gpu or 'a GPU without name'}, CC {kernel.compute_capability or 'unknown'}"
    return [line(bold("Another GPU."), f" The trace is of {tables.gpu_name(main)}, the report of {other}.")]


def _differs(main: DeviceTime, kernel: Kernel) -> bool:
    cc, name = (main.compute_capability, kernel.compute_capability), (main.name, kernel.gpu)
    if None not in cc and cc[0] != cc[1]:
        return True
    plain = [str(text).removeprefix("NVIDIA ").casefold() for text in name]
    return None not in name and plain[0] != plain[1]


def _doubts(kernel: Kernel, match: Match) -> list[Line]:
    """Return what makes it doubtful that the traced launches are those that ncu measured."""
    found = []
    if "name" not in match.by:
        traced = code(shorten(match.kernel.name, 120))
        found.append(line("Matched by function name only; the trace spells the whole name ", traced, "."))
    shape, registers = shape_of(kernel), kernel.number("registers_per_thread")
    if match.shape is None and shape is not None and match.kernel.shapes:
        shown = match.kernel.shapes[:SHOWN_SHAPES]
        there = "; ".join(f"{_shape(s.grid, s.block)} ({plural(s.launches.n, 'launch')})" for s in shown)
        more = match.kernel.configurations - len(shown)
        rest = f"; {plural(more, 'other')}" if more > 0 else ""
        found.append(
            line(
                bold("Other launches."),
                f" The trace does not hold this kernel with {_shape(*shape)}, as ncu measured it, but with "
                f"{there}{rest}: the traced time is theirs.",
            )
        )
    known = match.shape is not None and match.shape.registers != UNKNOWN
    if known and match.shape is not None and registers is not None and "registers" not in match.by:
        found.append(
            line(
                bold("Another build?"),
                f" The traced launches use {match.shape.registers} registers a thread, the profiled one "
                f"{registers:.0f}.",
            )
        )
    return found


def _shape(grid: tuple[int, int, int], block: tuple[int, int, int]) -> str:
    return f"grid {'×'.join(map(str, grid))} of block {'×'.join(map(str, block))}"


def _absent(timeline: Timeline) -> Line:
    names = [part for k in timeline.kernels[:3] for part in (code(shorten(k.short, 40)), {"text": ", "})]
    there = ["the longest there are ", *names[:-1]] if names else ["it holds no kernel"]
    graphs = " It may run inside CUDA graphs, traced as a whole." if timeline.graphs else ""
    return line(
        "This kernel is not in the trace, so its share of the region is not known; ",
        *there,
        f". Is it the same program?{graphs}",
    )
