"""``ncukit report``: one self-contained HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ncukit.cli.options import (
    Force,
    KernelName,
    Launches,
    MeasuredCeilings,
    Nsys,
    Trace,
    TraceRange,
    diagnosed,
    each_file,
    open_report,
    opened_trace,
)
from ncukit.cli.output import typed
from ncukit.errors import UsageError
from ncukit.files import check_new
from ncukit.media import line, word

if TYPE_CHECKING:
    from ncukit.render.timeline.beside import Beside

OptionalFiles = Annotated[
    list[str] | None,
    typer.Argument(metavar="FILE...", help="Reports (.ncu-rep) or ncu's CSV; - reads stdin."),
]


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command()(report)


def report(
    files: OptionalFiles = None,
    run: Annotated[
        Path | None,
        typer.Option(metavar="RUNDIR", help="A run directory: make everything after the measuring again."),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="PATH", help="File to write; a folder when several reports are given."
        ),
    ] = None,
    timeline: Trace = None,
    range_: TraceRange = None,
    launches: Launches = None,
    kernel: KernelName = None,
    force: Force = False,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    plotlyjs: Annotated[
        str, typer.Option(metavar="inline|directory", help="Plotly inside every page, or once beside many.")
    ] = "inline",
    nsys: Nsys = None,
    measured_ceilings: MeasuredCeilings = None,
) -> None:
    """Write the diagnosis of each report as one HTML file that opens anywhere, offline.

    \b
    ncukit report gemm.ncu-rep
    ncukit report gemm.ncu-rep -o gemm.html --open
    ncukit report gemm.ncu-rep --timeline gemm.nsys-rep --range step
    ncukit report runs/*.ncu-rep -o pages/ --plotlyjs directory
    ncukit report --run reports/gemm-H100-20260101T120000Z
    """
    if plotlyjs not in ("inline", "directory"):
        raise UsageError(f"--plotlyjs {plotlyjs} is not known", "use inline or directory")
    if run is not None and timeline is not None:
        raise UsageError("--run and --timeline do not go together", "a run has its own trace")
    if run is not None and measured_ceilings is not None:
        raise UsageError("--run and --measured-ceilings do not go together", "give the .ncu-rep of the run")
    if run is not None:
        _run_page(run, files or [], output, force=force, open_=open_, plotlyjs=plotlyjs)
        return
    if not files:
        raise UsageError("there is no report to show", "give a .ncu-rep, or --run RUNDIR")
    trace = opened_trace(timeline, range_, nsys, force=force)
    page = output is not None and output.endswith((".html", ".htm"))
    there = output is not None and Path(output).is_dir() and not (page and Path(output).is_symlink())
    folder = output is not None and (len(files) > 1 or output.endswith("/") or there)
    if folder and page and not there:
        raise UsageError(
            f"{len(files)} reports make {len(files)} pages, and {output} is one",
            "give a folder with -o, or one report; `ncukit index FOLDER` makes one page over many",
        )
    targets = _targets(files, output, folder=folder, force=force)

    def write(file: str) -> None:
        target = targets[file]
        write_page_of(
            *(file, target, launches, kernel),
            force=force,
            plotlyjs=plotlyjs,
            trace=trace,
            ceilings=measured_ceilings,
        )
        print(line(str(target)))
        if open_:
            typer.launch(target.resolve().as_uri())

    each_file(list(targets), write)


def _targets(files: list[str], output: str | None, *, folder: bool, force: bool) -> dict[str, Path]:
    """Return where the page of each report goes.

    Raises:
        UsageError: two of them go to one place, or one is there already; nothing was written yet.
    """
    targets: dict[str, Path] = {}
    of: dict[Path, str] = {}
    for file in dict.fromkeys(files):
        name = f"{Path('stdin' if file == '-' else file).stem or 'report'}.html"
        target = Path(name) if output is None else Path(output, name) if folder else Path(output)
        if (other := of.setdefault(target, file)) != file:
            raise UsageError(
                f"{other} and {file} would both become {target}", "write them one by one, with -o"
            )
        check_new(target, force=force)
        targets[file] = target
    return targets


def _run_page(
    run: Path, files: list[str], output: str | None, *, force: bool, open_: bool, plotlyjs: str
) -> None:
    from ncukit.render.run.page import write_run_page

    if files:
        raise UsageError("--run and reports do not go together", "give one of them")
    page = write_run_page(
        run,
        None if output is None else Path(output),
        force=force,
        command=f"ncukit report --run {word(run.name, 'RUNDIR')}",
        plotly="directory" if plotlyjs == "directory" else "inline",
    )
    print(line(str(page)))
    if open_:
        typer.launch(page.resolve().as_uri())


def write_page_of(
    file: str,
    target: Path,
    launches: list[int] | None,
    kernel: str | None,
    *,
    force: bool,
    plotlyjs: str = "inline",
    trace: Beside | None = None,
    ceilings: Path | None = None,
) -> None:
    """Write the page of the chosen launches of ``file`` to ``target``, with ``trace`` beside them.

    ``ceilings`` are measured ones to draw.
    """
    import time

    report = open_report(file)  # its child parses it while the rest loads
    from ncukit.render.html import write_page
    from ncukit.render.view import page_view

    described, diagnoses = diagnosed(report, launches, kernel, ceilings)
    command = typed(names=True)
    generated = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    view = page_view(described, diagnoses, generated=generated, command=command, beside=trace)
    write_page(target, view, force=force, plotly="directory" if plotlyjs == "directory" else "inline")
