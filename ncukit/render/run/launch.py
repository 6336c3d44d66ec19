"""The page of one launch, with what the run around it knows."""

from __future__ import annotations

import re
from typing import Any

from ncukit.render.cells import Cells
from ncukit.render.line import line
from ncukit.render.run.load import RunPage
from ncukit.render.run.parts import clean_time, quality_facts, run_section
from ncukit.render.timeline.section import timeline_section
from ncukit.render.view import head


def add_run(run: RunPage, cells: Cells, parts: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the launch's sections, completed, and what the page gets besides: facts, timeline, run."""
    facts = head.facts(cells)
    facts[-1] = {"name": facts[-1]["name"], "text": clean_time(run.timing, cells.tips)}
    added: dict[str, Any] = {"facts": facts, "run": run_section(run, cells.tips)}
    if run.timeline is not None:
        section = timeline_section(run.timeline, cells.kernel, run.strip, cells.tips)
        section.pop("tips", None)
        added["traced"] = section if run.tracer == "nsys" else _retold(section, run.tracer)
        if "verdict" in parts:
            parts = parts | {"verdict": {**parts["verdict"], "region": section["region"]}}
    quality = parts["quality"]
    lacking = [
        name
        for name, there in (("clean time", run.timing), ("timeline", run.timeline))
        if there is None or (name == "clean time" and not run.timing.is_gpu_time)  # type: ignore[union-attr]
    ]
    return parts | {
        "quality": {
            **quality,
            "sentence": line(_without(quality["sentence"], lacking)),
            "facts": quality_facts(run, quality["facts"]),
        }
    }, added


def _without(sentence: list[dict[str, Any]], lacking: list[str]) -> str:
    """Return the sentence of the quality box, which lists as missing only what this run lacks."""
    text = "".join(str(part.get("text", "")) for part in sentence)
    head_, _, rest = text.partition("Missing: ")
    names = [name.strip() for name in rest.rstrip(".").replace(" and ", ", ").split(", ") if name.strip()]
    left = [name for name in names if name not in ("clean time", "timeline") or name in lacking]
    return f"{head_}Missing: {', '.join(left)}." if left else head_.strip()


def _retold(tree: Any, tracer: str) -> Any:
    """Return the timeline's words with ``tracer`` for nsys, which did not record it."""
    if isinstance(tree, dict):
        return {key: _retold(value, tracer) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_retold(part, tracer) for part in tree]
    return re.sub(r"\bnsys\b", tracer, tree) if isinstance(tree, str) else tree
