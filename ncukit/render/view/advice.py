"""What to do next, in words: the layer to look at, the command, the bound, and when to stop."""

from __future__ import annotations

from typing import Any

from ncukit.model.diagnosis import Advice
from ncukit.quantity import faster
from ncukit.render.line import line

LAYERS = {
    "operations": "the operations of the framework",
    "timeline": "the timeline of CPU and GPU",
    "kernel": "one kernel, with ncu",
    "source": "the source lines",
}


def advice_view(advice: Advice) -> dict[str, Any]:
    """Return the block that ends every report.

    >>> advice_view(Advice("start", False, "operations", "Begin", "Nothing is known."))["layer"]
    'the operations of the framework'
    """
    bound = advice.bound
    limit = ""
    if bound is not None and not advice.bound_said:
        limit = f"Without {bound.of} the region would be {faster(bound.factor)} (Amdahl)."
    return {
        "word": "Stop here" if advice.stop else "Next",
        "stop": advice.stop,
        "title": advice.title,
        "layer": LAYERS[advice.layer] if advice.layer else "",
        "because": line(advice.because),
        "commands": "\n".join(advice.commands),
        "bound": line(limit) if limit else [],
        "until": line(advice.until) if advice.until else [],
        "missing": [line(text) for text in advice.missing],
    }
