"""A timeline as one plain view: every word and number that the page and the terminal show."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from ncukit.model.trace import LaunchChoice, Timeline, TraceFile
from ncukit.render.advice import of_trace
from ncukit.render.line import Line, bold, code, line
from ncukit.render.timeline import tables
from ncukit.render.timeline.ending import ended
from ncukit.render.timeline.figures import Figures
from ncukit.render.timeline.tables import SHOWN, SYNTHETIC, gpu_name, main_of
from ncukit.render.timeline.verdict import choice_view, verdict
from ncukit.render.view.advice import advice_view
from ncukit.render.view.provenance import this_page
from ncukit.render.words import plural

NOT_A_BENCHMARK = (
    "Times are from a run under {}, which slows every CUDA call: trust shares, not milliseconds."
)
NO_NETWORK = "Copies over the network (InfiniBand, RoCE) are not seen here."


def page_view(
    timeline: Timeline,
    strip: Mapping[str, Any],
    choice: LaunchChoice | None,
    why_not: str = "",
    *,
    sha256: str = "",
    generated: str = "",
    command: str = "",
) -> dict[str, Any]:
    """Return the view of the page ``ncukit timeline -o``; ``strip`` is from `timeline_strip.strip`."""
    figures = Figures()
    view = {
        "kind": "timeline",
        "title": f"Timeline of {PurePath(timeline.file.path).name}, ncukit",
        "brand": "timeline",
        "heading": heading(timeline),
        "facts": facts(timeline, figures),
        **parts(timeline, figures, choice, why_not),
        "strip": strip,
        "provenance": _provenance(timeline, sha256, generated, command),
        "synthetic": line(SYNTHETIC, timeline.file.synthetic) if timeline.file.synthetic else [],
        "footer": NOT_A_BENCHMARK.format(recorder(timeline.file)),
        "advice": advice_view(of_trace(timeline, choice)),
    }
    return ended(view, CONTENTS, figures)


CONTENTS: tuple[tuple[str, str, str | None], ...] = (
    ("region", "What limits it", None),
    ("strip", "Timeline", None),
    ("kernels", "Kernels", "kernels"),
    ("ncu", "Launch for ncu", None),
    ("copies", "Copies", "copies"),
    ("waits", "Waits", "waits"),
    ("ranges", "Ranges", "ranges"),
    ("calls", "CUDA calls", "calls"),
    ("next", "Next", None),
    ("provenance", "Provenance", None),
)


def parts(timeline: Timeline, figures: Figures, choice: LaunchChoice | None, why_not: str) -> dict[str, Any]:
    """Return everything between the masthead and the provenance."""
    main = main_of(timeline)
    return {
        "verdict": verdict(timeline, figures),
        "devices": [tables.device(d, figures) for d in timeline.devices],
        "kernels": tables.kernels(timeline.kernels, figures),
        "more_kernels": max(0, len(timeline.kernels) - SHOWN),
        "kernel_total": figures.time(
            "kernel_total", timeline.kernel_total, "Sum of all kernels, overlaps twice"
        ),
        "choice": choice_view(choice, why_not, figures),
        "copies": [tables.copy(i, c, figures) for i, c in enumerate(timeline.copies)],
        "copies_note": line(NO_NETWORK),
        "memsets": tables.memsets(timeline.memsets, figures),
        "launches": tables.launches(timeline, figures),
        "waits": [tables.wait(i, c, main.span, figures) for i, c in enumerate(timeline.waits)],
        "ranges": [tables.range_row(i, r, figures) for i, r in enumerate(timeline.ranges[:SHOWN])],
        "more_ranges": max(0, len(timeline.ranges) - SHOWN),
        "calls": [tables.call(i, c, figures) for i, c in enumerate(timeline.calls[:SHOWN])],
        "more_calls": max(0, len(timeline.calls) - SHOWN),
        "counters": [
            {
                "name": c.name,
                "mean": figures.of(f"counter{i}", c.mean, "", f"Mean of {c.n:,} samples"),
                "max": figures.of(f"counter{i}max", c.max, "", "Largest sample"),
            }
            for i, c in enumerate(timeline.counters)
        ],
        "notes": [line(note) for note in timeline.notes],
    }


def heading(timeline: Timeline) -> dict[str, str]:
    """Return the name of the page: the file, and the range if one was chosen."""
    name = PurePath(timeline.file.path).name
    return {"name": name, "range": f"range {timeline.range}" if timeline.range else "the whole trace"}


def facts(timeline: Timeline, figures: Figures) -> list[dict[str, Any]]:
    """Return the facts of the masthead."""
    main = main_of(timeline)
    gpus = sorted({gpu_name(d) for d in timeline.devices})
    count = f"{len(timeline.devices)} × " if len(timeline.devices) > 1 else ""
    pieces = f" in {len(timeline.windows):,} pieces" if len(timeline.windows) > 1 else ""
    rows = [
        ("gpu", "GPU", line(count + "; ".join(gpus))),
        (
            "region",
            "Region",
            line(figures.time("span", main.span, "Time of the region on its main device"), pieces),
        ),
        ("work", "Work", line(plural(main.launches, "launch"))),
        ("recorder", "Recorded with", line(recorder(timeline.file) + _exported(timeline.file))),
        ("benchmark", "Not a benchmark", line("traced run")),
    ]
    return [{"id": id, "name": name, "text": text} for id, name, text in rows]


def recorder(file: TraceFile) -> str:
    """Return the tool that recorded a trace."""
    return "torch's profiler" if file.format == "torch" else "nsys"


def _exported(file: TraceFile) -> str:
    return "" if file.format == "torch" else f", exported by {file.tool or 'an unknown version'}"


def _provenance(timeline: Timeline, sha256: str, generated: str, command: str) -> list[dict[str, Any]]:
    file = timeline.file
    rows: list[tuple[str, Line]] = [
        ("Trace", line(code(PurePath(file.path).name), f", {file.size:,} bytes, {file.format}")),
        *([("sha256", line(code(sha256)))] if sha256 else []),
        ("Recorded with", line(recorder(file), _exported(file), f", schema {file.schema or 'not said'}")),
        ("Region", line(bold(timeline.range or "whole trace"))),
        ("Times", line(NOT_A_BENCHMARK.format(recorder(file)))),
        *(("Reading", line(note)) for note in timeline.notes),
    ]
    return [*({"name": name, "text": text} for name, text in rows), this_page(command, generated)]
