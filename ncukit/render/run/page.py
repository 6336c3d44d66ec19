"""Make and write what is concluded from a run: metrics.json and report.html."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ncukit.errors import ReportEmpty
from ncukit.media import cleaned
from ncukit.model.run import OutputFile, Run
from ncukit.render.advice import of_run
from ncukit.render.cells import Tips
from ncukit.render.html import Plotly, page, write_page
from ncukit.render.json import kernel_text, report_text
from ncukit.render.line import line
from ncukit.render.model.json import bound_data, ratios_data
from ncukit.render.run.load import RunPage, load
from ncukit.render.run.parts import clean_time, provenance_rows, run_section
from ncukit.render.timeline.view import page_view as timeline_view
from ncukit.render.view import FOOTER, page_view
from ncukit.render.view.advice import advice_view
from ncukit.render.view.provenance import this_page
from ncukit.run.directory import METRICS, PAGE, PROFILE, RunDirectory, going_on


def finisher(
    command: str = "", plotly: Plotly = "inline"
) -> Callable[[RunDirectory, Run], tuple[OutputFile, ...]]:
    """Return what makes the page of a run while its directory is still locked."""

    def finish(directory: RunDirectory, run: Run) -> tuple[OutputFile, ...]:
        loaded = load(directory.path, run)
        files = []
        if (text := metrics_text(loaded)) is not None:
            files.append(directory.write(METRICS, text))
        html = page(run_view(loaded, command=command), plotly=plotly)
        files.append(directory.write(PAGE, html))
        return tuple(files)

    return finish


def write_run_page(
    path: Path,
    target: Path | None = None,
    *,
    force: bool = False,
    command: str = "",
    plotly: Plotly = "inline",
) -> Path:
    """Make everything after the measuring of the run in ``path`` again; return the page.

    ``target`` is another file for the page; then metrics.json is left as it is.

    Raises:
        ReportError: there is no run, nothing was measured in it, or a file of it is damaged.
        UsageError: ``target`` exists and ``force`` is not set.
    """
    if target is not None:
        return write_page(target, run_view(load(path), command=command), force=force, plotly=plotly)
    directory, run = RunDirectory.resume(path)
    try:
        finisher(command, plotly)(directory, run)
    finally:
        directory.close()
    return path / PAGE


def metrics_text(loaded: RunPage) -> str | None:
    """Return the JSON of the captured launch (``ncukit.kernel/1``), None without counters."""
    if loaded.diagnosis is None:
        return None
    more = None
    if (found := loaded.estimate) is not None:
        more = {"model": {**bound_data(found), "ratios": ratios_data(found)}}
    text = kernel_text(loaded.diagnosis.kernel, diagnosis=loaded.diagnosis, more=more)
    return "".join(report_text(PROFILE, [text])) + "\n"


def run_view(loaded: RunPage, *, command: str = "") -> dict[str, Any]:
    """Return the view of the page: the launch in full, or what there is without counters.

    Raises:
        ReportEmpty: the run measured nothing.
    """
    generated = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    if loaded.diagnosis is not None and loaded.file is not None:
        return page_view(loaded.file, [loaded.diagnosis], generated=generated, command=command, run=loaded)
    if loaded.timeline is not None:
        return _traced(loaded, generated, command)
    if loaded.timing is not None:
        return _timed(loaded, generated, command)
    raise ReportEmpty(
        loaded.path, f"the run in {loaded.path} measured nothing", going_on(loaded.path, loaded.run)
    )


def _traced(loaded: RunPage, generated: str, command: str) -> dict[str, Any]:
    """Return the page of a run with a timeline and no counters."""
    assert loaded.timeline is not None
    view = timeline_view(
        loaded.timeline,
        loaded.strip or {},
        loaded.choice,
        loaded.why_no_choice,
        generated=generated,
        command=command,
    )
    tips = Tips()
    own = {
        "kind": "run",
        "title": f"{loaded.run.target.get('name')}: run without counters, ncukit report",
        "brand": "run without counters",
        "heading": {"name": str(loaded.run.target.get("name")), "range": "timeline, no counters"},
        "facts": [
            *(fact for fact in view["facts"] if fact["id"] != "benchmark"),
            {"name": "Clean time", "text": clean_time(loaded.timing, tips)},
        ],
        "run": run_section(loaded, tips),
        "provenance": provenance_rows(loaded, view["provenance"]),
        "contents": [*view["contents"][:-1], {"to": "run", "text": "The run"}, *view["contents"][-1:]],
        "advice": advice_view(of_run(loaded)),
        "run_tips": tips.as_dict(),
    }
    result: dict[str, Any] = view | _plain_cells(cleaned(own))
    return result


def _timed(loaded: RunPage, generated: str, command: str) -> dict[str, Any]:
    """Return the page of a run that has only a time."""
    tips, run = Tips(), loaded.run
    name = str(run.target.get("name"))
    rows = [
        {"name": "Profiled with", "text": line("")},
        this_page(command, generated),
    ]
    view: dict[str, Any] = {
        "kind": "timed",
        "title": f"{name}: clean time, ncukit report",
        "brand": "clean time",
        "heading": {"name": name, "range": "clean time, no timeline, no counters"},
        "facts": [
            {"name": "GPU", "text": line(str((run.gpu or {}).get("name") or "unknown"))},
            {"name": "Clean time", "text": clean_time(loaded.timing, tips)},
        ],
        "run": run_section(loaded, tips),
        "provenance": provenance_rows(loaded, rows),
        "contents": [{"to": "run", "text": "The run"}, {"to": "provenance", "text": "Provenance"}],
        "synthetic": [],
        "warnings": [],
        "footer": FOOTER,
        "advice": advice_view(of_run(loaded)),
        "figures": {},
        "tips": tips.as_dict(),
    }
    result: dict[str, Any] = cleaned(view)
    return result


def _plain_cells(tree: Any) -> Any:
    """Return ``tree`` with numbers that point to no tooltip: the page has the timeline's alone."""
    if isinstance(tree, dict):
        if "tip" in tree and "state" in tree and tree["state"] not in ("missing", "plain"):
            return {**tree, "tip": "", "state": "plain"}
        return {key: _plain_cells(value) for key, value in tree.items() if key != "run_tips"}
    return [_plain_cells(part) for part in tree] if isinstance(tree, list) else tree
