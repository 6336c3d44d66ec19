"""``ncukit show``: the diagnosis in the terminal, as Markdown or as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ncukit.cli.options import (
    Files,
    Json,
    KernelName,
    Launches,
    MeasuredCeilings,
    Nsys,
    Trace,
    TraceRange,
    chosen,
    diagnosed,
    each_file,
    measured,
    open_report,
    opened_trace,
)
from ncukit.cli.output import color, encoding, width
from ncukit.errors import UsageError

if TYPE_CHECKING:
    from ncukit.model import Diagnosis


FORMATS = ("text", "markdown", "json")


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command()(show)


def show(
    files: Files,
    json: Json = False,
    timeline: Trace = None,
    range_: TraceRange = None,
    launches: Launches = None,
    kernel: KernelName = None,
    source: Annotated[
        bool,
        typer.Option("--source", help="List the counted source lines only; with --json add them."),
    ] = False,
    sass: Annotated[bool, typer.Option("--sass", help="List the SASS only; with --json add it.")] = False,
    format: Annotated[
        str, typer.Option("--format", metavar="text|markdown|json", help="How to print; text by default.")
    ] = "text",
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show what is folded by default.")] = False,
    nsys: Nsys = None,
    measured_ceilings: MeasuredCeilings = None,
) -> None:
    """Show what limits the kernel, the evidence for and against, and the next experiment.

    \b
    ncukit show gemm.ncu-rep
    ncukit show gemm.ncu-rep --launch 3
    ncukit show gemm.ncu-rep --timeline gemm.nsys-rep
    ncukit show gemm.ncu-rep --launch 3 --format markdown > comment.md
    ncukit show gemm.ncu-rep --launch 3 --source
    ncukit show gemm.ncu-rep --launch 3 --sass | less
    ncukit show gemm.ncu-rep --json | jq '.kernels[0].verdict'
    """

    if source and sass and not json:
        raise UsageError("--source and --sass do not go together", "list one after the other")
    if format not in FORMATS:
        raise UsageError(f"--format {format} is not known", f"use one of: {', '.join(FORMATS)}")
    if format == "markdown" and (json or source or sass or timeline is not None):
        raise UsageError(
            "--format markdown prints the diagnosis alone",
            "leave out --json, --source, --sass and --timeline",
        )
    json = json or format == "json"
    trace, add = opened_trace(timeline, range_, nsys), measured(measured_ceilings)

    def as_markdown(file: str) -> None:
        from ncukit.render.markdown import report_markdown

        print(report_markdown(*diagnosed(open_report(file), launches, kernel)), end="")

    def as_listing(file: str) -> None:
        from ncukit.api.reports import source_view
        from ncukit.render.text import listing_text

        what: Literal["source", "sass"] = "sass" if sass else "source"
        for n, k in enumerate(chosen(open_report(file).kernels(details=True), launches, kernel)):
            text = listing_text(k, source_view(k), what, encoding=encoding(), width=width())
            print(f"\n{text}" if n else text)

    def as_text(file: str) -> None:
        report = open_report(file)  # its child parses it while the rest loads
        from ncukit.render.text import show_text

        described, diagnoses = diagnosed(report, launches, kernel, measured_ceilings)
        print(
            show_text(
                described,
                diagnoses,
                color=color(),
                encoding=encoding(),
                verbose=verbose,
                width=width(),
                beside=trace,
            )
        )

    def as_json(file: str) -> None:
        from ncukit.api import diagnose
        from ncukit.cli.output import print_report
        from ncukit.render.json import kernel_text

        def more(d: Diagnosis) -> dict[str, Any]:
            from ncukit.render.by_instruction import plain

            view = d.facts.source if source or sass else None
            return {} if view is None else {"source": plain(view)}

        kernels = chosen(open_report(file).kernels(details=True), launches, kernel)
        diagnoses = (add(diagnose(k)) for k in kernels)
        if trace is None:
            print_report(file, (kernel_text(d.kernel, diagnosis=d, more=more(d)) for d in diagnoses))
            return
        from ncukit.render.timeline.json import region_data, traced_data

        matcher = trace.matcher
        texts = (
            kernel_text(
                d.kernel, diagnosis=d, more={"traced": traced_data(matcher.find(d.kernel)), **more(d)}
            )
            for d in diagnoses
        )
        print_report(file, texts, region_data(trace.timeline))

    plain_text = as_listing if source or sass else as_markdown if format == "markdown" else as_text
    each_file(files, as_json if json else plain_text, json=json)
