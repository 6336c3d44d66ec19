"""Occupancy: theoretical and achieved, what limits it, what another configuration would give."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ncukit import quantity
from ncukit.model import Diagnosis, Verdict
from ncukit.model.shares import Limit, Occupancy, OccupancyCurve, OccupancyPoint, Resource
from ncukit.render.cells import Cells
from ncukit.render.line import Line, line
from ncukit.render.panels import Panel, panels
from ncukit.render.plot import Figure
from ncukit.render.words import listed, plural

HEIGHT = 150
NAMES: dict[Resource, str] = {
    "registers": "Registers", "shared_mem": "Shared memory", "warps": "Warps", "blocks": "Blocks",
    "barriers": "Barriers",
}  # fmt: skip
SPOKEN: dict[Resource, str] = {
    "registers": "registers", "shared_mem": "shared memory", "warps": "the warps an SM holds",
    "blocks": "the blocks an SM holds", "barriers": "barriers",
}  # fmt: skip
AXES = {
    "registers": ("registers per thread", "registers"),
    "block_size": ("threads per block", "threads"),
    "shared_mem": ("shared memory per block, KiB", "B of shared memory"),
}
"""Title of a curve's axis, and its unit in a sentence."""
SHORT = {"registers": "Registers", "block_size": "Threads", "shared_mem": "Shared memory"}
KIB = 1024
GAP = 10.0
"""[points] From here on achieved occupancy is clearly below what the launch allows."""


def section(
    cells: Cells, diagnosis: Diagnosis, *, curves: bool = True
) -> tuple[dict[str, Any], Figure | None]:
    """Return tables and words on the occupancy of one launch, and the figure of its what-if curves."""
    facts, result = diagnosis.facts, diagnosis.facts.occupancy
    if result is None:
        lacking = facts.occupancy_lacks
        why = f"{listed(lacking)} not in the report" if lacking else "no block of this launch fits an SM"
        return {
            "sentence": line(f"Unknown: {why}."),
            "limits": [],
            "curves": [],
            "lift": [],
            "figure": "",
        }, None
    if curves:
        result = replace(result, curves=facts.occupancy_curves)
    figure = panels([_panel(curve, result) for curve in result.curves], columns=3, height=HEIGHT)
    id = f"occupancy-{cells.launch}"
    return {
        "sentence": _sentence(cells, result),
        "limits": [_limit(limit) for limit in sorted(result.limits, key=lambda x: x.blocks)],
        "curves": [_curve(curve) for curve in result.curves],
        "lift": [line(words) for words in lift(cells, result, diagnosis.verdict)],
        "figure": id if figure else "",
        "label": _label(result),
        "max_warps": result.max_warps,
        "height": figure["layout"]["height"] if figure else 0,
    }, figure


def _sentence(cells: Cells, result: Occupancy) -> Line:
    achieved: list[Any] = ["; achieved: ", cells["achieved_occupancy_pct"], "."]
    return line(
        "Theoretical ",
        cells.computed(
            "occupancy_from_limits", result.percent, "%",
            meaning="Resident warps that block size, registers and shared memory allow, of what an SM holds",
            formula="blocks * warps_per_block / max_warps_per_sm * 100",
            sources=["block_size", "registers_per_thread", "shared_mem_allocated", "max_warps_per_sm"],
        ),
        f" ({result.warps} of {result.max_warps} warps an SM, in {plural(result.blocks, 'block')})",
        *achieved,
        f" {_by(result)}",
    )  # fmt: skip


def _by(result: Occupancy) -> str:
    binding = [SPOKEN[limit.resource] for limit in result.limits if limit.binds]
    words = f"It is set by {listed(binding)}"
    return f"{words}, {'both' if len(binding) == 2 else 'all'} at once." if len(binding) > 1 else f"{words}."


def lift(cells: Cells, result: Occupancy, found: Verdict) -> list[str]:
    """Return what would raise the occupancy of a launch, in sentences, and whether that would help."""
    words: list[str] = []
    if result.cap is not None and result.cap < result.warps:
        words.append(
            f"The grid is too small for it: it brings {quantity.short(result.cap)} warps to an SM, "
            f"fewer than the {result.warps} that fit. More or smaller blocks, not a lower limit, would "
            "fill the SMs."
        )
    if result.warps >= result.max_warps:
        words.append("Every warp an SM can hold fits: no configuration allows more.")
    else:
        words += _steps(result)
    achieved = cells.number("achieved_occupancy_pct")
    if achieved is not None and result.percent - achieved >= GAP and not (
        result.cap is not None and result.cap < result.warps
    ):  # fmt: skip
        words.append(
            f"{quantity.short(result.percent - achieved)} points of it are lost while it runs: blocks of "
            "unequal length, launch overhead, or the last wave."
        )
    if result.warps < result.max_warps:
        words.append(
            "The verdict names occupancy as the limit: more resident warps are worth a try."
            if found.limiter == "occupancy"
            else "Whether it limits is open: the report does not show what limits this launch."
            if found.cls in ("undetermined", "failed")
            else "Occupancy is not the limit by the verdict: a higher one need not be faster."
        )
    return words


def _steps(result: Occupancy) -> list[str]:
    binding = [limit for limit in result.limits if limit.binds]
    found = []
    if len(binding) > 1:
        found.append(
            f"{listed([NAMES[x.resource] for x in binding])} allow {plural(result.blocks, 'block')} each: "
            "relieving one of them alone changes nothing."
        )
    if all(limit.next_at is not None for limit in binding):
        needs = listed([f"at most {_amount(x.next_at, x)} a {_per(x)}" for x in binding])
        found.append(f"{needs[:1].upper()}{needs[1:]} would let one more block fit.")
    if (result.blocks_at_largest or 0) > result.blocks:
        now, most = (
            quantity.short(size, "byte", capacity=True)
            for size in (result.carve_out, result.largest_carve_out)
        )
        found.append(
            f"With {most} of shared memory an SM instead of the {now} of this run, "
            f"{result.blocks_at_largest} blocks would fit: the carve-out is a hint that the program gives."
        )
    for curve in result.curves:
        if curve.better is not None and curve.axis == "block_size":
            found.append(
                f"{curve.better.x} threads a block instead of {curve.here.x} would give "
                f"{curve.better.warps} warps."
            )
    return found


def _per(limit: Limit) -> str:
    return "thread" if limit.resource == "registers" else "block"


def _amount(value: float | None, limit: Limit) -> str:
    if limit.resource == "shared_mem":
        return quantity.short(value, "byte/block")
    unit = {"registers": "registers", "warps": "threads"}.get(limit.resource, limit.unit)
    return f"{quantity.short(value)} {unit}"


def _limit(limit: Limit) -> dict[str, Any]:
    return {
        "name": NAMES[limit.resource],
        "blocks": f"{limit.blocks:,}",
        "takes": _takes(limit),
        "next": _at(limit),
        "binds": limit.binds,
    }


def _at(limit: Limit) -> str:
    if limit.next_at is None:
        return ""
    return quantity.short(limit.next_at, "byte/block" if limit.resource == "shared_mem" else "")


def _takes(limit: Limit) -> str:
    """Return how much of the SM's resource a block takes: "8,192 of 65,536 registers"."""
    if limit.per_block is None or limit.available is None:
        return ""
    if limit.resource == "shared_mem":
        sizes = (quantity.short(n, "byte", capacity=True) for n in (limit.per_block, limit.available))
        return " of ".join(sizes)
    return f"{limit.per_block:,.0f} of {limit.available:,.0f}"


def _curve(curve: OccupancyCurve) -> dict[str, Any]:
    return {
        "axis": SHORT[curve.axis],
        "here": _point(curve.here, curve),
        "better": _point(curve.better, curve),
        "worse": _point(curve.worse, curve),
        "note": curve.note,
    }


def _point(point: OccupancyPoint | None, curve: OccupancyCurve) -> str:
    if point is None:
        return "none"
    x = quantity.short(point.x, "byte/block") if curve.axis == "shared_mem" else f"{point.x:,}"
    return f"{point.warps} at {x}"


def _panel(curve: OccupancyCurve, result: Occupancy) -> Panel:
    scale = KIB if curve.axis == "shared_mem" else 1
    title, unit = AXES[curve.axis]
    quarter = max(1, result.max_warps // 4)
    ticks = list(range(0, result.max_warps + 1, quarter))
    x = [point.x / scale for point in curve.points]
    return Panel(
        "warps an SM",
        x,
        [float(point.warps) for point in curve.points],
        [_hover(point, unit) for point in curve.points],
        (min(x), max(x)),
        result.max_warps * 1.08,
        x_title=title,
        y_ticks=(ticks, [str(tick) for tick in ticks]),
        steps=True,
        here=(curve.here.x / scale, curve.here.warps),
        here_hover=f"this launch, {_hover(curve.here, unit)}",
    )


def _hover(point: OccupancyPoint, unit: str) -> str:
    by = listed([SPOKEN[resource] for resource in point.binds])
    return f"{point.x:,} {unit}: {plural(point.warps, 'warp')}, set by {by}"


def _label(result: Occupancy) -> str:
    said = [
        f"{AXES[curve.axis][0].removesuffix(', KiB')}: {_point(curve.here, curve)} here, "
        f"next more at {_point(curve.better, curve)}"
        for curve in result.curves
    ]
    return f"Resident warps against {'; '.join(said)}. All numbers are in the table."
