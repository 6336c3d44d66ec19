"""The page of a file with many launches: the table first, one shared roofline, one fold a launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ncukit import quantity
from ncukit.model import Diagnosis, ReportFile
from ncukit.render.cells import Cells, Tips
from ncukit.render.commands import collect, one_launch
from ncukit.render.line import line, small
from ncukit.render.plot import Figure
from ncukit.render.view import head, overall, shared_roof
from ncukit.render.view.data import buttons, page_data
from ncukit.render.view.groups import Launch, by_kernel, by_verdict, names
from ncukit.render.view.kernels import COLUMNS, tables
from ncukit.render.view.launches import EVIDENCE, LAZY, LISTS, folds, island
from ncukit.render.view.quality import LACKS, missing
from ncukit.render.view.sections import sections
from ncukit.render.words import listed, plural

if TYPE_CHECKING:
    from ncukit.render.timeline.beside import Beside

DETAILED = 2
"""Launches up to which each fold holds all sections of its launch; beyond, a page would grow too large."""
CONTENTS = (
    ("verdict", "Verdict"),
    ("quality", "Report quality"),
    ("kernels", "Kernels"),
    ("roofline", "Roofline"),
    ("launches", "Launches"),
    ("timeline", "Timeline"),
    ("ncu", "Nsight Compute"),
    ("next", "Next"),
    ("provenance", "Provenance"),
)


def many_page(
    file: ReportFile, diagnoses: Sequence[Diagnosis], beside: Beside | None = None
) -> dict[str, Any]:
    """Return the view of a page with more than one launch; ``beside`` is a trace of the same program."""
    tips = Tips()
    launches = [Launch(Cells(d.kernel, tips), d) for d in diagnoses]
    kernels = by_kernel(launches)
    short = names(kernels)
    spell = dict(zip((group.first.cells.kernel.demangled for group in kernels), short, strict=True))
    lazy = len(launches) >= LAZY
    closed = folds(launches, spell, lazy=lazy)
    figures: dict[str, Figure] = {}
    if len(launches) <= DETAILED:
        for fold, launch in zip(closed, launches, strict=True):
            fold["parts"], drawn = sections(launch.cells, launch.diagnosis, "timeline")
            figures |= drawn
    roof, figure = shared_roof.section(launches)
    title = f"{plural(len(launches), 'launch')} of {plural(len(kernels), 'kernel')}"
    view: dict[str, Any] = {
        "kind": "many",
        "title": f"{title} in {head.file_name(file)}, ncukit report",
        "brand": head.file_name(file),
        "heading": title,
        "facts": _facts(launches),
        "contents": [{"to": to, "text": text} for to, text in CONTENTS],
        "verdict": overall.verdict(launches, by_verdict(launches)),
        "quality": overall.quality(launches, file, LACKS if beside is None else LACKS[:1]),
        "tables": tables(launches, kernels, short, lazy=lazy),
        "counts": {"kernels": f"{len(kernels):,}", "launches": f"{len(launches):,}"},
        "roofline": roof,
        "folds": closed,
        "more": _more(file, launches),
        "opinion": overall.opinion(launches),
        "data": page_data(file, diagnoses, _shown(launches) if lazy else None),
        "downloads": buttons(
            diagnoses, sources=any("data" in fold.get("parts", {}).get("source", ()) for fold in closed)
        ),
        "figures": {shared_roof.FIGURE: figure, **figures} if figure else figures,
    }
    if beside is not None:
        view["traced"] = _trace(beside, launches, view, tips)
    if lazy:
        view["launches"] = island(launches, spell)
    return view | {"tips": tips.as_dict()}


def _shown(launches: Sequence[Launch]) -> set[str]:
    """Return the metrics that a page of many launches shows: those are the data for which it has room."""
    cited = {e.metric for x in launches for e in x.diagnosis.verdict.evidence[:EVIDENCE]}
    in_folds = {row.id for rows in LISTS for row in rows}
    return {"kernel_duration", *(id for id, _ in COLUMNS)} | in_folds | cited


def _trace(beside: Beside, launches: Sequence[Launch], view: dict[str, Any], tips: Tips) -> dict[str, Any]:
    """Return the section of the trace, and put the region's verdict under those of the page."""
    from ncukit.render.timeline.many import many_section
    from ncukit.render.timeline.section import region_line

    section = many_section(beside, launches, tips)
    view["verdict"]["region"] = section["region"]
    for fold, launch in zip(view["folds"], launches, strict=True):
        if "verdict" in fold.get("parts", ()):
            (match,) = beside.find([launch.cells.kernel])
            fold["parts"]["verdict"]["region"] = region_line(beside.timeline, match)
    return section


def _more(file: ReportFile, launches: Sequence[Launch]) -> str:
    """Return the commands that show more of the longest launch: its own page, and what was not collected."""
    first = max(launches, key=lambda launch: (not launch.setup, launch.weight))
    words = [one_launch(file.path, first.n)]
    if missing(first.cells):
        words.append(collect(first.cells.kernel, output="one"))
    return "\n".join(words)


def _facts(launches: Sequence[Launch]) -> list[dict[str, Any]]:
    first = launches[0]
    gpus = sorted(
        {
            f"{x.cells.kernel.gpu or 'unknown'}, CC {x.cells.kernel.compute_capability or '?'}"
            for x in launches
        }
    )
    gpu = line(listed(gpus))
    if len(gpus) == 1:
        gpu += line(small(" · "), first.cells["sm_count"], small(" SMs"))
    known = [x.duration for x in launches if x.duration is not None]
    total = quantity.short(sum(known), "s") if known else "not collected"
    return [
        {"name": "GPU", "text": gpu},
        {
            "name": "Profiled time, sum",
            "text": line(
                total, " ", small(f"of {plural(len(known), 'launch')}, one by one: not a benchmark")
            ),
        },
        head.clean_time(),
    ]
