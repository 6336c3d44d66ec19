"""What limits the region, and the launch that deserves ncu, in words."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from ncukit.model import Evidence
from ncukit.model.trace import CAUSE_WORDS, UNKNOWN, Launch, LaunchChoice, Timeline
from ncukit.quantity import faster
from ncukit.render.commands import PROGRAM
from ncukit.render.line import Line, code, line
from ncukit.render.timeline.figures import Figures
from ncukit.render.timeline.tables import main_of
from ncukit.render.view.verdict import PIPS
from ncukit.render.view.verdict import experiment as experiment_view
from ncukit.render.words import plural, shorten

CAUSE_NAMES: Mapping[str, str] = {
    "kernel": "Kernels",
    "communication": "Collectives alone",
    "transfer": "Copies alone",
    "synchronisation": "After waits",
    "launch": "Late launches",
    "input": "Host busy elsewhere",
    "allocator": "Allocating",
    "setup": "Set-up",
    "profiler": "nsys itself",
    "dependency": "Dependencies",
    "foreign": "Other work",
    "unknown": "Unknown",
}


def verdict(timeline: Timeline, figures: Figures) -> dict[str, Any]:
    """Return what limits the region, with its evidence and the next experiment."""
    region, main = timeline.region, main_of(timeline)
    undecided = region.cls == "undetermined"
    shares = sorted(region.shares.items(), key=lambda item: -item[1])
    limit = next((name for name, value in shares if value == region.share), "")
    return {
        "cls": region.cls,
        "claim": line(region.claim),
        "deck": _deck(timeline, figures),
        "confidence": {
            "pips": 0 if undecided else PIPS[region.confidence],
            "word": "No confidence." if undecided else f"{region.confidence.capitalize()} confidence.",
            "text": _confidence(timeline),
        },
        "glance": [
            {
                "label": CAUSE_NAMES[name],
                "cell": figures.share(f"cause_{name}", value * main.span / 100, main.span, CAUSE_WORDS[name]),
                "bar": round(min(100.0, value), 1),
                "hot": name == limit and not undecided,
            }
            for name, value in shares
            if value > 0
        ],
        "evidence": [ledger(e, figures, "for") for e in region.evidence],
        "against": [ledger(e, figures, "against") for e in region.against],
        "missing": [line(text) for text in region.missing],
        "collect": "",
        "experiment": experiment_view(region.experiment),
        "undecidable": [line(f"{cls}: {why}") for cls, why in region.undecidable],
        "undecidable_classes": [cls for cls, _ in region.undecidable],
    }


def _deck(timeline: Timeline, figures: Figures) -> Line:
    main = main_of(timeline)
    parts_: list[Any] = [
        "Kernels run ",
        figures.share("busy", main.busy, main.span, "Time in which some kernel runs"),
        " of ",
        figures.time("span", main.span, "Time of the region on its main device"),
        ", and nothing runs on the GPU ",
        figures.share("empty", main.empty, main.span, "Time in which neither kernel nor copy runs"),
        ". ",
    ]
    if timeline.region.bound is not None:
        parts_.append(f"Without the limit the region would be {faster(timeline.region.bound)}.")
    return line(*parts_)


def _confidence(timeline: Timeline) -> str:
    main = main_of(timeline)
    calls = "CUDA calls were traced" if timeline.calls else "CUDA calls were not traced"
    return f"{plural(main.launches, 'launch')} on the main device; {calls}."


def ledger(e: Evidence, figures: Figures, side: str) -> dict[str, Any]:
    """Return one line of evidence."""
    value = e.value if isinstance(e.value, int | float) else None
    return {"n": figures.of(f"{side}_{e.metric}_{len(e.text)}", value, e.unit, e.text), "text": line(e.text)}


def _shape(launch: Launch) -> str:
    """Return grid, block, registers and shared memory, as far as the trace says them."""
    known = [
        f"{name} {'×'.join(map(str, sizes))}"
        for name, sizes in (("grid", launch.grid), ("block", launch.block))
        if UNKNOWN not in sizes
    ]
    if launch.registers != UNKNOWN:
        known.append(f"{launch.registers} registers")
    if UNKNOWN not in (launch.static_shared, launch.dynamic_shared):
        known.append(f"{launch.static_shared + launch.dynamic_shared:,} B shared memory")
    return ", ".join(known) or "the trace does not say it"


def choice_view(choice: LaunchChoice | None, why_not: str, figures: Figures) -> dict[str, Any]:
    """Return the launch that deserves ncu with the command, or why there is none."""
    if choice is None:
        return {"why_not": line(why_not), "rows": [], "command": "", "others": []}
    launch = choice.launch
    command = f"ncu --set full {shlex.join(choice.selection)} -o kernel {PROGRAM}"
    rows = [
        ("Launch", line(code(shorten(launch.short, 80)), f", {launch.nth + 1:,} of {launch.matches:,}")),
        ("Shape", line(_shape(launch))),
        ("Traced time", line(figures.time("launch", launch.duration, "Of this launch, as traced"))),
        *(("Why" if i == 0 else "", line(reason)) for i, reason in enumerate(choice.reasons)),
        *(("Caution" if i == 0 else "", line(text)) for i, text in enumerate(choice.cautions)),
    ]
    return {
        "why_not": [],
        "rows": [{"name": name, "text": text} for name, text in rows],
        "command": command,
        "others": [
            {
                "name": shorten(c.name, 80),
                "n": f"{c.n:,}",
                "total": figures.time(f"other{i}", c.total, "Sum of all its launches"),
                "share": figures.of(f"other{i}s", c.share, "%", "Of the time of all kernels"),
                "why": c.why_not,
            }
            for i, c in enumerate(choice.runners_up)
        ],
    }
