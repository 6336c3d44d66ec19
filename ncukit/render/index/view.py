"""The index as one plain view."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path, PurePath
from statistics import median
from typing import Any

from ncukit import quantity
from ncukit.media import cleaned
from ncukit.model.comparison import Survey
from ncukit.render.cells import Cell, Tips, plain, text
from ncukit.render.index.history import histories, moment, revision
from ncukit.render.index.roofs import rooflines
from ncukit.render.index.row import Row, link, rows_of
from ncukit.render.line import Line, code, line, small
from ncukit.render.view.provenance import this_page
from ncukit.render.view.roofs import leading
from ncukit.render.words import limited_by, listed, plural, shorten

MOST = 3000
"""Rows of the table: those with the most time; all are in a dataset."""
FIRST = 8
"""Answers to what limits that are shown unfolded."""
COLUMNS = (
    ("sm_throughput_pct", "SM %"),
    ("memory_throughput_pct", "Memory %"),
    ("dram_throughput_pct", "DRAM %"),
    ("achieved_occupancy_pct", "Occupancy %"),
)
"""Percentages of the longest launch; a column that no kernel has is left out, as is that of revisions."""
CONTENTS = (
    ("limits", "What limits"),
    ("kernels", "Kernels"),
    ("rooflines", "Rooflines"),
    ("history", "History"),
    ("unusable", "Not usable"),
    ("provenance", "Provenance"),
)
FOOTER = (
    "Times are profiled durations, launch by launch: not a benchmark. Percentages are shares of peak at the "
    "clocks of the run, of the longest launch of a kernel. Numbers and their evidence are on the pages of "
    "the reports."
)


def page_view(survey: Survey, page: Path, *, generated: str, command: str = "") -> dict[str, Any]:
    """Return the view of the index that will be written to ``page``: links are relative to its folder."""
    tips = Tips()
    home = page.absolute().parent
    rows = rows_of(survey.measured, tips, home)
    gpus = _gpus(rows)
    roofs, figures = rooflines(rows, gpus)
    over_time, drawn, more = histories(rows)
    name = PurePath(os.path.abspath(survey.folder)).name
    launches = sum(row.measured.launches for row in rows)
    kernels = len({row.measured.kernel.demangled for row in rows})
    reports = len({row.measured.origin.path for row in rows})
    heading = f"{plural(launches, 'launch')} of {plural(kernels, 'kernel')} in {plural(reports, 'report')}"
    view = {
        "kind": "index",
        "title": f"{heading}, ncukit index of {name}",
        "brand": f"index of {name}",
        "heading": heading,
        "synthetic": _synthetic(rows),
        "warnings": [],
        "facts": _facts(rows, gpus),
        "contents": [{"to": to, "text": words} for to, words in CONTENTS],
        "limits": _limits(rows),
        "table": _table(rows, gpus),
        "roofs": roofs,
        "histories": over_time,
        "more_histories": more,
        "unusable": [
            {"name": one.name, "reason": one.reason, "link": link(one.page, home)} for one in survey.unusable
        ],
        "provenance": _provenance(survey, generated, command),
        "footer": FOOTER,
        "tips": tips.as_dict(),
        "figures": figures | drawn,
    }
    result: dict[str, Any] = cleaned(view)
    return result


def _gpus(rows: Sequence[Row]) -> list[str]:
    """Return the GPUs, the one with the most profiled time first."""
    times: dict[str, float] = {}
    for row in rows:
        times[row.gpu] = times.get(row.gpu, 0.0) + row.measured.total
    return sorted(times, key=lambda gpu: -times[gpu])


def _facts(rows: Sequence[Row], gpus: Sequence[str]) -> list[dict[str, Any]]:
    total = sum(row.measured.total for row in rows)
    times = sorted(row.measured.origin.time for row in rows)
    shown = [*gpus[:3], f"{len(gpus) - 3} more"] if len(gpus) > 4 else list(gpus)
    facts: list[tuple[str, Line]] = [
        ("GPUs" if len(gpus) > 1 else "GPU", line(listed(shown) or "none")),
        ("Profiled time, sum", line(quantity.short(total, "s"), " ", small("not a benchmark"))),
    ]
    if times:
        span = moment(times[0]) + (f" to {moment(times[-1])}" if times[-1] > times[0] else "")
        facts.append(("Made", line(f"{span} UTC")))
    return [{"name": name, "text": words} for name, words in facts]


def _limits(rows: Sequence[Row]) -> dict[str, Any]:
    """Return how much of the profiled time each class and limiter takes."""
    times: dict[tuple[str, str | None], float] = {}
    kernels: dict[tuple[str, str | None], set[str]] = {}
    for row in rows:
        for key, seconds in row.measured.limits.items():
            times[key] = times.get(key, 0.0) + seconds
            kernels.setdefault(key, set()).add(row.measured.kernel.demangled)
    whole = sum(times.values())
    found = [
        {
            "limit": limited_by(*key),
            "share": quantity.short(100 * times[key] / whole if whole else None, "%"),
            "bar": round(100 * times[key] / whole, 1) if whole else 0,
            "kernels": f"{len(kernels[key]):,}",
        }
        for key in sorted(times, key=lambda key: -times[key])
    ]
    sentence = "No launch was found."
    if found:
        sentence = f"{found[0]['share']} of the profiled time is {found[0]['limit']}."
    return {"rows": found[:FIRST], "more": found[FIRST:], "sentence": line(sentence)}


def _table(rows: Sequence[Row], gpus: Sequence[str]) -> dict[str, Any]:
    columns = [column for column in COLUMNS if any(row.launch.cells.value(column[0]).known for row in rows)]
    shown = rows[:MOST]
    return {
        "columns": [label for _, label in columns],
        "gpus": list(gpus),
        "classes": sorted({row.measured.cls for row in rows}),
        "revisions": any(row.measured.origin.revision for row in shown),
        "left": len(rows) - len(shown),
        "count": f"{len(rows):,}",
        "rows": [_row(row, gpus.index(row.gpu), columns) for row in shown],
    }


def _row(row: Row, gpu: int, columns: Sequence[tuple[str, str]]) -> dict[str, Any]:
    origin = row.measured.origin
    return {
        "n": row.n,
        "name": row.name,
        "gpu": row.gpu,
        "gpu_key": gpu,
        "cls": row.measured.cls,
        "report": shorten(origin.name, 60),
        "link": row.link,
        "copies": row.copies,
        "time": moment(origin.time),
        "of_file": origin.of_file,
        "revision": revision(row),
        "launches": f"{row.measured.launches:,}",
        "total": _seconds(row.measured.total if row.measured.durations else None),
        "median": _seconds(median(row.measured.durations) if row.measured.durations else None),
        "roof": _share(row),
        "cells": [_percent(row, id) for id, _ in columns],
        "limit": row.limit,
    }


def _seconds(value: float | None) -> dict[str, Any]:
    """Return a time in its own unit, and what sorts it [s]."""
    return {
        "text": "not collected" if value is None else quantity.short(value, "s"),
        "sort": "" if value is None else value,
    }


def _share(row: Row) -> str:
    """Return the achieved share of the roof; estimates are marked."""
    point = leading(row.launch.diagnosis.roofline.points)
    if point is None or point.share is None:
        return ""
    about = "≈ " if "estimate" in (point.quality, point.roof_quality) else ""
    return about + quantity.short(point.share, "%").removesuffix(f"{quantity.NARROW}%")


def _percent(row: Row, id: str) -> Cell:
    value = row.launch.cells.value(id)
    if not value.known:
        return {**plain(text(value)), "state": "missing"}
    mark = "" if value.reliable else " !"
    return plain(quantity.short(value.value, value.unit).removesuffix(f"{quantity.NARROW}%") + mark)


def _synthetic(rows: Sequence[Row]) -> Line:
    count = sum(row.measured.synthetic for row in rows)
    if not count:
        return []
    return line(f"{plural(count, 'row')} of {len(rows):,} were written by a program; no GPU was measured.")


def _provenance(survey: Survey, generated: str, command: str) -> list[dict[str, Any]]:
    runs = plural(survey.runs, "run directory").replace("directorys", "directories")
    copies = len({copy for one in survey.measured for copy in one.origin.copies})
    same = f"; {copies} of the reports are copies of others, byte for byte, and not counted" if copies else ""
    rows: list[tuple[str, Line]] = [
        ("Folder", line(code(PurePath(survey.folder).name or survey.folder))),
        ("Found", line(f"{plural(survey.reports, 'report')}, {runs}{same}.")),
        ("Times", line("As the run or the report says, else of the file: a copy is as new as its copying.")),
    ]  # fmt: skip
    if survey.datasets:
        rows.append(("Datasets", line(listed(list(survey.datasets)))))
    return [*({"name": name, "text": words} for name, words in rows), this_page(command, generated)]
