"""The sections about one launch, on its own page or inside its fold on a page of few launches."""

from __future__ import annotations

from typing import Any

from ncukit.model import Diagnosis
from ncukit.render.cells import Cells
from ncukit.render.commands import collect
from ncukit.render.plot import Figure
from ncukit.render.view import head
from ncukit.render.view.families import families
from ncukit.render.view.findings import findings
from ncukit.render.view.memory import memory
from ncukit.render.view.occupancy import section as occupancy
from ncukit.render.view.roofs import section as roofline
from ncukit.render.view.rows import GLANCE
from ncukit.render.view.split import section as split
from ncukit.render.view.stalls import stalls
from ncukit.render.view.verdict import verdict


def sections(cells: Cells, diagnosis: Diagnosis, timeline: str) -> tuple[dict[str, Any], dict[str, Figure]]:
    """Return the sections of one launch, and its figures; a failed one has none that needs counters."""
    found = diagnosis.verdict
    parts: dict[str, Any] = {"n": cells.launch, "cls": found.cls}
    if cells.kernel.failed or found.cls == "failed":
        return parts | {"failure": head.failure(cells, diagnosis)}, {}
    others = {id for id, _, means in GLANCE if found.limiter not in means}
    cited = frozenset(e.metric for e in found.evidence) - others
    tables, figure = roofline(cells, diagnosis)
    what_if, curves = occupancy(cells, diagnosis)
    parts |= {
        "verdict": verdict(cells, diagnosis, timeline),
        "findings": findings(cells, diagnosis),
        "roofline": tables,
        "families": families(cells, cited),
        "memory": memory(cells, diagnosis),
        "stalls": stalls(cells, cited),
        "source": _source(diagnosis),
        "occupancy": what_if,
    }
    optional = {"split": split(diagnosis), "series": _series(cells, diagnosis)}
    parts |= {name: part for name, part in optional.items() if part is not None}
    drawn = {tables["figure"]: figure, what_if["figure"]: curves}
    return parts, {id: each for id, each in drawn.items() if each}


def _series(cells: Cells, diagnosis: Diagnosis) -> dict[str, Any] | None:
    if not diagnosis.facts.series:
        return None
    from ncukit.render.view.series import section

    return section(cells, diagnosis)


def _source(diagnosis: Diagnosis) -> dict[str, Any]:
    """Return the section of source and SASS, or in ``missing`` what would bring it."""
    kernel = diagnosis.kernel
    if (view := diagnosis.facts.source) is not None:
        from ncukit.render.view.source import source

        return source(kernel, view)
    options = "--section SourceCounters --section WarpStateStats --import-source on"
    return {
        "missing": "Nothing was counted by instruction in this report.",
        "collect": collect(kernel, options),
    }
