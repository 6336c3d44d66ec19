"""What Python did on the host, beside the gaps of the GPU."""

from __future__ import annotations

from typing import Any

from ncukit import quantity
from ncukit.model.ops import Host
from ncukit.render.cells import plain
from ncukit.render.line import Line, line
from ncukit.render.timeline.figures import Figures
from ncukit.render.words import shorten

SHOWN = 15
"""Functions that are shown."""


def host(found: Host | None, figures: Figures) -> dict[str, Any]:
    """Return the hot functions of the host, {} where nobody looked."""
    if found is None:
        return {}
    return {
        "source": found.source,
        "said": _said(found, figures),
        "gaps": found.gap_time is not None,
        "rows": [
            {
                "name": shorten(f.name, 90),
                "own": figures.time(f"h{i}s", f.self_time, "In the function itself"),
                "share": figures.share(f"h{i}p", f.self_time, found.span, "Of the time that was looked at"),
                "total": figures.time(f"h{i}t", f.total, "With what it calls"),
                "gap": plain(quantity.MISSING)
                if f.gap is None
                else figures.time(f"h{i}g", f.gap, "In the function itself, while the GPU had nothing to do"),
                "order": f.self_time if f.gap is None else f.gap,
                "n": f"{f.samples:,}",
            }
            for i, f in enumerate(found.frames[:SHOWN])
        ],
        "more": max(0, len(found.frames) - SHOWN),
        "notes": [line(text) for text in found.notes],
    }


def _said(found: Host, figures: Figures) -> Line:
    looked = figures.time("host_span", found.span, "Time that was looked at")
    parts: list[Any] = [f"From {found.source}, over ", looked]
    if found.interval is not None:
        parts += [", a sample every ", figures.time("host_every", found.interval, "Between two samples")]
    if found.gap_time is None:
        parts.append("; no gap of a GPU to set it beside.")
    elif found.covered is not None:
        parts += [
            ". The GPU had nothing to do for ",
            figures.time("host_gaps", found.gap_time, "Launch gaps within that time"),
            "; Python was seen in ",
            figures.time("host_covered", found.covered, "Part of the gaps with a sample"),
            " of it.",
        ]
    return line(*parts)
