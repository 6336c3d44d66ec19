"""An estimate as one page: the roofline with its point, the numbers, what was counted and what was not."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from ncukit import quantity
from ncukit.media import cleaned
from ncukit.model import Roof
from ncukit.model.work import SUSPECTS, Estimate
from ncukit.render.figures import Ceiling, Figure, Mark, roofline
from ncukit.render.html import write_page
from ncukit.render.line import line
from ncukit.render.model.shown import Shown, data_sheets, origin, peaks, precision, ratio_rows, side
from ncukit.render.view.ceilings import measured_ceiling, rate_unit, roof_name
from ncukit.render.view.provenance import this_page
from ncukit.render.words import PRECISIONS, shorten
from ncukit.roofline import attainable

FOOTER = (
    "A bound from shapes alone: a kernel that is faster breaks one of the assumptions listed here; most are "
    "slower. Profiled durations are not benchmarks."
)
FIGURE = "model-roof"


def write_estimate(path: Path, shown: Shown, *, force: bool = False, command: str = "") -> Path:
    """Write the page of an estimate to ``path`` and return it.

    Raises:
        UsageError: the file exists and ``force`` is not set, or it cannot be written.
    """
    generated = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    return write_page(path, page_view(shown, generated=generated, command=command), force=force)


def page_view(shown: Shown, *, generated: str, command: str = "") -> dict[str, Any]:
    """Return the view of an estimate's page."""
    estimate, model = shown.estimate, shown.estimate.model
    figure = _figure(estimate, shown.measured)
    view: dict[str, Any] = {
        "kind": "model",
        "title": f"{model.name}: analytic bound, ncukit",
        "brand": "analytic bound",
        "heading": {"name": model.name, "range": model.dtype},
        "facts": [{"name": name, "text": line(text)} for name, text in _facts(estimate)],
        "contents": [{"to": "bound", "text": "Bound"}, {"to": "counted", "text": "What was counted"}],
        "synthetic": [],
        "warnings": [],
        "figure": FIGURE if figure else "",
        "label": _label(estimate),
        "sentence": line(side(estimate) or "The bound is unknown."),
        "rows": _rows(shown),
        "suspects": [{"name": key, "text": line(SUSPECTS[key][1])} for key in estimate.suspects],
        "missing": [line(text) for text in estimate.missing],
        "launch": _launch(shown),
        "notes": [line(text) for text in model.notes],
        "assumptions": [line(text) for text in model.assumptions],
        "provenance": [this_page(command, generated)],
        "footer": FOOTER,
        "figures": {FIGURE: figure} if figure else {},
        "tips": {"names": [], "words": [""], "cat": {}, "k": {}},
    }
    if shown.kernel is not None:
        view["contents"].insert(1, {"to": "measured", "text": "Measured"})
    result: dict[str, Any] = cleaned(view)
    return result


def _facts(estimate: Estimate) -> list[tuple[str, str]]:
    model = estimate.model
    facts = [
        ("Work", quantity.short(model.total_flop, "FLOP")),
        ("Compulsory bytes", quantity.short(model.bytes, "byte")),
        ("Intensity", f"{quantity.significant(model.intensity)} FLOP/B"),
    ]
    if estimate.bound is not None:
        facts.append(("Bound", quantity.short(estimate.bound, "FLOP/s")))
    if estimate.floor is not None:
        facts.append(("Time floor", quantity.short(estimate.floor.seconds, "s")))
    return facts


def _rows(shown: Shown) -> list[dict[str, str]]:
    """Return the table that holds every number of the figure."""
    estimate, model = shown.estimate, shown.estimate.model
    rows = [("Work", quantity.short(f, "FLOP"), precision(p)) for p, f in model.flop.items()]
    ways = {"read": model.read, "written": model.written}
    if not all(ways.values()):
        ways = {"sent by each rank" if model.memory == "link" else "either way": model.bytes}
    rows += [("Bytes", quantity.short(moved, "byte"), what) for what, moved in ways.items()]
    for name, value in peaks(estimate):
        rows.append(("Peak", quantity.short(value.number, value.unit), f"{name}, {origin(value)}"))
    bandwidth = estimate.bandwidth
    rows.append(("Bandwidth", quantity.short(bandwidth.number, "byte/s"), origin(bandwidth)))
    rows += [("Data sheet", "", source) for source in data_sheets(estimate)]
    for roof in shown.measured:
        unit = rate_unit(roof.name) if roof.kind == "compute" else "byte/s"
        rows.append(("Measured", quantity.short(roof.value, unit), f"{roof_name(roof)[0]}, {roof.note}"))
    if estimate.ridge is not None:
        rows.append(("Ridge", f"{quantity.significant(estimate.ridge)} FLOP/B", "peak / bandwidth"))
    if estimate.bound is not None:
        several = len(peaks(estimate)) > 1
        how = "work / time floor: pipes overlap" if several else "min(peak, intensity × bandwidth)"
        rows.append(("Bound", quantity.short(estimate.bound, "FLOP/s"), how))
    if estimate.memory_seconds is not None:
        rows.append(
            ("Time of the traffic", quantity.short(estimate.memory_seconds, "s"), "bytes / bandwidth")
        )
    if estimate.compute_seconds is not None:
        rows.append(("Time of the arithmetic", quantity.short(estimate.compute_seconds, "s"), "work / peak"))
    if estimate.seconds is not None:
        rows.append(("Time", quantity.short(estimate.seconds, "s"), shown.timed))
        rows.append(("Achieved", quantity.short(estimate.achieved, "FLOP/s"), "work of the model / time"))
        word = {True: "yes", False: "no", None: "unknown"}[estimate.consistent]
        rows.append(("Consistent", word, "whether the time is at least the floor"))
    return [{"name": name, "value": value, "text": text} for name, value, text in rows]


def _launch(shown: Shown) -> dict[str, Any] | None:
    kernel = shown.kernel
    if kernel is None:
        return None
    signs = {True: ("✓", "ok"), False: ("!", "warn"), None: ("–", "no")}
    return {
        "name": shorten(kernel.name, 60),
        "where": f"launch {kernel.index + 1} of {Path(kernel.file).name}, {kernel.gpu or 'unknown GPU'}",
        "ratios": ratio_rows(shown.estimate),
        "checks": [
            {"sign": signs[check.ok][0], "status": signs[check.ok][1], "text": line(check.message)}
            for check in shown.estimate.checks
        ],
    }


def _label(estimate: Estimate) -> str:
    bound = estimate.bound
    what = f"bound {quantity.short(bound, 'FLOP/s')}" if bound else "bound unknown"
    return f"Roofline: intensity {quantity.significant(estimate.model.intensity)} FLOP per byte, {what}."


def _figure(estimate: Estimate, measured: tuple[Roof, ...] = ()) -> Figure | None:
    """Return the roofline with one point a precision: at its achieved rate, without a time at its bound."""
    bandwidth = estimate.bandwidth.number
    if not bandwidth or not estimate.model.flop:
        return None
    level = "link" if estimate.model.memory == "link" else "DRAM"
    rate = quantity.short(bandwidth, "byte/s")
    estimated = estimate.bandwidth.quality == "estimate"
    roofs = [Ceiling("bandwidth", "dram", level, bandwidth, f"{level} {rate}", level, dashed=estimated)]
    marks = []
    for name, flop in estimate.model.flop.items():
        peak = estimate.peaks[name].number
        if peak is None:
            continue
        word, color = PRECISIONS.get(name, (name, "--ink"))
        text = f"{word} {quantity.short(peak, 'FLOP/s')}"
        dashed = estimate.peaks[name].quality == "estimate"
        roofs.append(Ceiling("compute", name, word, peak, text, word, color, dashed))
        x = flop / estimate.model.bytes
        bound = attainable(x, peak, bandwidth)
        y = flop / estimate.seconds if estimate.seconds else bound
        hover = f"{word}: {quantity.significant(x)} FLOP/B, bound {quantity.short(bound, 'FLOP/s')}"
        share = f"{quantity.short(100 * y / bound, '%')} of its bound" if estimate.seconds else ""
        hollow = estimate.seconds is None
        marks.append(
            Mark(
                name, name, "dram", x, y, bound, color, "at its bound", hover, hollow, name=word, share=share
            )
        )
    roofs += [measured_ceiling(roof) for roof in measured]
    return roofline(marks, roofs, unit="FLOP")
