"""``ncukit timeline``: what a trace of nsys or torch says about the region around the kernel."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ncukit.cli.options import Force, Nsys
from ncukit.cli.output import color, encoding, typed, width
from ncukit.errors import UsageError
from ncukit.files import check_new
from ncukit.media import line


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command()(timeline)


def timeline(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A trace: .nsys-rep, .sqlite, .qdrep or torch's JSON.")
    ],
    range_: Annotated[
        str | None, typer.Option("--range", "-r", metavar="NAME", help="Only inside this NVTX range.")
    ] = None,
    kernel: Annotated[
        str | None,
        typer.Option("--kernel", "-k", metavar="PATTERN", help="Choose the launch for ncu among these."),
    ] = None,
    allow_collective: Annotated[
        bool, typer.Option(help="Let the launch for ncu be one that communicates with other GPUs.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="PATH", help="Write an HTML page.")
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option("--trace", metavar="PATH", help="Write a trace for Perfetto (.json or .json.gz)."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
    nsys: Nsys = None,
    force: Force = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show whole tables.")] = False,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Say where the time of a traced region went, what limits it, and which launch deserves ncu.

    \b
    ncukit timeline run.nsys-rep
    ncukit timeline run.sqlite --range step --kernel gemm
    ncukit timeline run.sqlite -o run.html --open
    ncukit timeline trace.json.gz --range "ProfilerStep#3"     (of torch's profiler)
    ncukit timeline run.sqlite --json | jq .region
    ncukit timeline run.sqlite --trace run.json.gz     (for ui.perfetto.dev)

    --force also reads an export whose schema this ncukit does not know.
    """
    from ncukit.trace.files import open_any_trace
    from ncukit.trace.launch_choice import Request, choose_launch
    from ncukit.trace.nsys import exporter
    from ncukit.trace.region import describe
    from ncukit.trace.scope import in_range, whole

    for target in (output, trace):
        if target is not None:
            check_new(target, force=force)
    read = open_any_trace(file, exporter(nsys), force=force)
    scope = whole(read) if range_ is None else in_range(read, range_)
    found = describe(scope)
    choice, why_not = None, ""
    try:
        choice = choose_launch(scope, Request(kernel, allow_collective), found)
    except UsageError as error:
        if kernel is not None:
            raise
        why_not = f"{error.message}. {error.hint}"
    if json:
        from ncukit.render.timeline.json import timeline_text as json_text

        print(json_text(found, choice, why_not))
    if output is not None or open_:
        from ncukit.render.timeline.html import write_timeline

        target = output or Path(file.name).with_suffix(".html")
        command = typed()
        page = write_timeline(target, scope, found, choice, why_not, force=force, command=command)
        print(line(str(page)), file=sys.stderr if json else sys.stdout)
        if open_:
            typer.launch(page.resolve().as_uri())
    if trace is not None:
        from ncukit.render.timeline.trace import write_trace

        written = write_trace(trace, scope, force=force)
        print(line(str(written)), file=sys.stderr if json else sys.stdout)
    if not json and output is None and trace is None and not open_:
        from ncukit.render.timeline.text import timeline_text

        print(
            timeline_text(
                found,
                choice,
                why_not,
                color=color(),
                encoding=encoding(),
                verbose=verbose,
                width=width(),
            )
        )
