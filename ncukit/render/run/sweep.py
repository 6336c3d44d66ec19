"""The page of a sweep: every point in one table, and its trajectory on one roofline."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ncukit.model import Diagnosis, ReportFile
from ncukit.render.html import Plotly, write_page
from ncukit.render.run.load import load
from ncukit.render.view import page_view
from ncukit.run.directory import PAGE, PROFILE, RECORD, inside


def write_sweep_page(
    path: Path, points: Iterable[Mapping[str, Any]], *, command: str = "", plotly: Plotly = "inline"
) -> Path | None:
    """Write the page of the sweep in the directory ``path``; None where no point has counters."""
    found = list(_diagnoses(path, points))
    if not found:
        return None
    record = inside(path, RECORD)
    digest = hashlib.sha256(record.read_bytes()).hexdigest()
    file = ReportFile(str(path), record.stat().st_size, digest, len(found))
    generated = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    view = page_view(file, found, generated=generated, command=command)
    if len(found) > 1:
        view["figures"] = {name: with_trajectory(figure) for name, figure in view["figures"].items()}
    return write_page(path / PAGE, view, force=True, plotly=plotly)


def with_trajectory(figure: dict[str, Any]) -> dict[str, Any]:
    """Return a shared roofline whose points are joined in the order of the sweep.

    >>> points = {"mode": "markers", "customdata": ["2", "1"], "x": [3, 1], "y": [4, 2]}
    >>> made = with_trajectory({"data": [points]})
    >>> made["data"][0]["x"], made["data"][0]["y"]
    ([1, 3], [2, 4])
    """
    lines = []
    for trace in figure["data"]:
        numbers = trace.get("customdata", ())
        if trace.get("mode") != "markers" or not all(isinstance(n, str) and n.isdigit() for n in numbers):
            continue
        ordered = sorted(zip(map(int, numbers), trace["x"], trace["y"], strict=True))
        if len(ordered) > 1:
            lines.append(
                {
                    "type": "scatter",
                    "mode": "lines",
                    "x": [x for _, x, _ in ordered],
                    "y": [y for _, _, y in ordered],
                    "line": {"color": "var(--ink2)", "width": 1, "dash": "dot"},
                    "hoverinfo": "skip",
                }
            )
    return {**figure, "data": [*lines, *figure["data"]]}


def _diagnoses(path: Path, points: Iterable[Mapping[str, Any]]) -> Iterable[Diagnosis]:
    """Yield the launch of each point, named by its parameters and numbered in the order of the sweep."""
    count = 0
    for point in points:
        folder = inside(path, str(point["directory"]))
        if not (folder / PROFILE).is_file():
            continue
        if (diagnosis := load(folder).diagnosis) is None:
            continue
        words = ", ".join(f"{name}={value}" for name, value in point["params"].items())
        raw = diagnosis.kernel.raw
        named = replace(
            raw, index=count, function=f"{raw.function} [{words}]", demangled=f"{raw.demangled} [{words}]"
        )
        yield replace(diagnosis, kernel=replace(diagnosis.kernel, raw=named))
        count += 1
