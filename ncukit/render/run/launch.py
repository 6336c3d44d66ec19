"""The page of one launch, with what the run around it knows."""

from __future__ import annotations

import re
from typing import Any

from ncukit.render.cells import Cells
from ncukit.render.run.load import RunPage
from ncukit.render.run.parts import clean_time, quality_facts, run_section
from ncukit.render.timeline.section import add_section
from ncukit.render.view import head


def add_run(run: RunPage, cells: Cells, parts: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the launch's sections, completed, and what the page gets besides: facts, timeline, run."""
    facts = head.facts(cells)
    timed = clean_time(run.timing, cells.tips)
    facts = [fact | {"text": timed} if fact["id"] == "clean_time" else fact for fact in facts]
    added: dict[str, Any] = {"facts": facts, "run": run_section(run, cells.tips)}
    if run.timeline is not None:
        parts, section = add_section(parts, cells, run.timeline, run.strip)
        added["traced"] = section if run.tracer == "nsys" else _retold(section, run.tracer)
    quality = parts["quality"]
    return parts | {"quality": {**quality, "facts": quality_facts(run, quality["facts"])}}, added


def lacks(run: RunPage) -> tuple[str, ...]:
    """Return what the run lacks beside counters."""
    timed = run.timing is not None and run.timing.is_gpu_time
    there = {"clean time": timed, "timeline": run.timeline is not None}
    return tuple(name for name, found in there.items() if not found)


def _retold(tree: Any, tracer: str) -> Any:
    """Return the timeline's words with ``tracer`` for nsys, which did not record it."""
    if isinstance(tree, dict):
        return {key: _retold(value, tracer) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_retold(part, tracer) for part in tree]
    return re.sub(r"\bnsys\b", tracer, tree) if isinstance(tree, str) else tree
