"""Where the numbers come from: file, versions, what was not recorded, and every metric."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from ncukit import __version__
from ncukit.metrics import load
from ncukit.model import Kernel, ReportFile
from ncukit.render.cells import Cells
from ncukit.render.line import Line, code, line, small
from ncukit.render.view import made
from ncukit.render.words import FAMILIES, shorten

LONGEST = 2000
"""Characters of ncu's command line that are shown."""


def provenance(
    file: ReportFile, kernels: list[Kernel], *, generated: str, command: str, version: str
) -> list[dict[str, Any]]:
    """Return names and lines of the list; folders of the machine that made the page are cut off."""
    rows: list[tuple[str, Line]] = [
        ("Report", line(code(PurePath(file.path).name), f", {file.size:,} bytes")),
        ("sha256", line(code(file.sha256))),
        ("Profiled with", _command(file.made.command)),
        ("Versions", line(made.versions(file.made, version))),
        ("Clock control", line(made.clocks(file.made))),
        ("Cache control", line(made.caches(file.made))),
        ("GPU", line(_devices(kernels))),
    ]
    if sections := sorted({section for kernel in kernels for section in kernel.raw.sections}):
        rows.append(("Sections", line(", ".join(sections))))
    if ranges := sorted({name for kernel in kernels for name in kernel.raw.nvtx}):
        rows.append(("NVTX ranges", line(", ".join(shorten(name) for name in ranges[:20]))))
    for warning in file.warnings:
        rows.append(("Reading", line(warning)))
    return [*({"name": name, "text": text} for name, text in rows), this_page(command, generated)]


def this_page(command: str, generated: str) -> dict[str, Any]:
    """Return the last row of every list: what made the page, and when.

    >>> this_page("", "2026-01-01")["text"][0]["text"].startswith("2026-01-01 by ncukit ")
    True
    """
    by: list[Any] = [code(base_names(command)), ", "] if command else []
    return {"name": "This page", "text": line(*by, f"{generated} by ncukit {__version__}.")}


def base_names(command: str) -> str:
    """Return ``command`` with every path cut to its last part.

    >>> base_names("ncukit report /home/me/runs/a.ncu-rep --out=out/b.html")
    'ncukit report a.ncu-rep --out=b.html'
    """
    return " ".join(_base_name(word) for word in command.split(" "))


def _base_name(word: str) -> str:
    option, equals, value = word.partition("=")
    if equals and option.startswith("-"):
        return f"{option}={_base_name(value)}"
    return PurePath(word).name if "/" in word or "\\" in word else word


def _command(command: str | None) -> Line:
    if command is None:
        return line("The command line is not in the report.")
    return line(code(shorten(base_names(command), LONGEST)), small(" from the report"))


def all_metrics(cells: Cells) -> dict[str, Any]:
    """Return every metric of the catalog that this launch has, and those that it does not hold, by reason."""
    rows = []
    lacking: dict[str, list[str]] = {}
    for metric in load().metrics.values():
        value = cells.value(metric.id)
        if value.known:
            rows.append(
                {
                    "id": metric.id,
                    "cell": cells.of(value),
                    "quality": value.quality or "",
                    "family": FAMILIES.get(metric.family, metric.family),
                    "reason": "" if value.reliable else (value.reason or ""),
                }
            )
        else:
            lacking.setdefault(value.brief, []).append(metric.id)
            cells.of(value)
    return {
        "rows": rows,
        "lacking": [{"why": why, "ids": ids} for why, ids in sorted(lacking.items())],
        "count": sum(len(ids) for ids in lacking.values()),
    }


def _devices(kernels: list[Kernel]) -> str:
    names = {
        f"{k.gpu or 'unknown GPU'}{f', CC {k.compute_capability}' if k.compute_capability else ''}"
        for k in kernels
    }
    return "; ".join(sorted(names)) + ". UUID not recorded."
