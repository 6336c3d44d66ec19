"""Results as one plain view: a dict that ``json.dumps`` could print, with every word and number of the page.

What belongs here: choosing, ordering and wording what is shown, one module a part of the page.  Not here:
markup (templates), arithmetic on counters (normalise, roofline), rules (diagnose).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ncukit import __version__
from ncukit.errors import UsageError
from ncukit.media import cleaned
from ncukit.model import Diagnosis, ReportFile
from ncukit.render import commands
from ncukit.render.advice import of_launches, of_run
from ncukit.render.cells import Cells, Tips
from ncukit.render.figures import Figure
from ncukit.render.view import head
from ncukit.render.view.advice import advice_view
from ncukit.render.view.data import buttons, page_data
from ncukit.render.view.opinion import opinion
from ncukit.render.view.provenance import all_metrics, provenance
from ncukit.render.view.quality import LACKS, quality
from ncukit.render.view.sections import sections
from ncukit.render.words import shorten

if TYPE_CHECKING:
    from ncukit.render.run.load import RunPage
    from ncukit.render.timeline.beside import Beside

__all__ = ["page_view"]

FOOTER = (
    "Percentages are shares of peak at the clocks of the run. Traffic in powers of ten (1 MB = 10⁶ B), "
    "capacities in powers of two. Launch numbers count from 1, ncu IDs from 0."
)


def page_view(
    file: ReportFile,
    diagnoses: Sequence[Diagnosis],
    *,
    generated: str,
    command: str = "",
    run: RunPage | None = None,
    beside: Beside | None = None,
) -> dict[str, Any]:
    """Return the view of a report's page: one launch in full, or all launches of the file.

    ``generated`` is the time to print, ``command`` the command line that made the page; ``run`` adds to the
    page of one launch what the run around it knows, ``beside`` a trace of the same program.

    Raises:
        UsageError: there is no launch to show.
    """
    if not diagnoses:
        raise UsageError("there is no launch to show", "the report or the selection is empty")
    if len(diagnoses) == 1:
        view = _launch_page(file, diagnoses[0], run, beside)
    else:
        from ncukit.render.view.many import many_page

        view = many_page(file, diagnoses, beside)
    kernels = [d.kernel for d in diagnoses]
    view |= {
        "synthetic": head.synthetic(kernels),
        "timeline": "\n".join(commands.timeline(file.path)),
        "provenance": provenance(
            file, kernels, generated=generated, command=command, version=__version__
        ),
        "warnings": list(file.warnings),
        "footer": FOOTER,
        "advice": advice_view(
            of_run(run) if run is not None else of_launches(head.file_name(file), diagnoses, beside)
        ),
    }  # fmt: skip
    if run is not None:
        from ncukit.render.run.parts import provenance_rows

        view["provenance"] = provenance_rows(run, view["provenance"])
    elif beside is not None:
        view["provenance"].insert(2, {"name": "Timeline", "text": beside.provenance()})
    result: dict[str, Any] = cleaned(view)
    return result


def _launch_page(
    file: ReportFile, diagnosis: Diagnosis, run: RunPage | None, beside: Beside | None
) -> dict[str, Any]:
    kernel = diagnosis.kernel
    tips = Tips()
    cells = Cells(kernel, tips)
    added: dict[str, Any] = {}
    if run is not None:
        from ncukit.render.run.launch import add_run, lacks

        parts, figures = _one(cells, diagnosis, file, lacks(run))
        parts, added = add_run(run, cells, parts)
    elif beside is not None:
        from ncukit.render.timeline.section import add_section

        parts, figures = _one(cells, diagnosis, file, ("clean time",))
        lanes = beside.lanes(*beside.find([kernel]))
        parts, added["traced"] = add_section(parts, cells, beside.timeline, lanes)
    else:
        parts, figures = _one(cells, diagnosis, file)
    view = {
        "kind": "launch",
        "title": f"{shorten(kernel.name, 80)} on {kernel.gpu or 'unknown GPU'}, ncukit report",
        "brand": head.brand(file, kernel),
        "heading": head.heading(kernel),
        "facts": head.facts(cells),
        "contents": [
            {"to": f"kernel-{cells.launch}{anchor}", "text": text}
            for anchor, text, key in CONTENTS
            if key in parts or key in added
        ],
        "kernel": parts,
        "metrics": all_metrics(cells),
        "figures": figures,
        "data": page_data(file, [diagnosis]),
        "downloads": buttons([diagnosis], sources="data" in parts.get("source", ())),
    } | added  # fmt: skip
    return view | {"tips": tips.as_dict()}


CONTENTS = (
    ("", "Verdict", "n"),
    ("-quality", "Report quality", "quality"),
    ("-findings", "Findings", "findings"),
    ("-roofline", "Roofline", "roofline"),
    ("-families", "Metrics", "families"),
    ("-memory", "Memory", "memory"),
    ("-split", "Issue slots", "split"),
    ("-stalls", "Why warps wait", "stalls"),
    ("-source", "Source and SASS", "source"),
    ("-occupancy", "Occupancy", "occupancy"),
    ("-series", "Over time", "series"),
    ("-timeline", "Timeline", "n"),
    ("-run", "The run", "run"),
    ("-ncu", "Nsight Compute", "opinion"),
    ("-next", "Next", "n"),
    ("-provenance", "Provenance", "n"),
)
"""Sections of a launch: anchor, name, the key of the view without which it is left out."""


def _one(
    cells: Cells, diagnosis: Diagnosis, file: ReportFile, lacks: Sequence[str] = LACKS
) -> tuple[dict[str, Any], dict[str, Figure]]:
    """Return the sections of the page of one launch, and its figures."""
    found = diagnosis.verdict
    parts, figures = sections(cells, diagnosis, f"kernel-{cells.launch}-timeline")
    return parts | {
        "quality": quality(cells, file, lacks),
        "opinion": opinion(cells.kernel.raw.rules, found.cls, found.limiter),
    }, figures
