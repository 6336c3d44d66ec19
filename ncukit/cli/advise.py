"""``ncukit advise``: where to look next, and when to stop."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ncukit.cli.options import Nsys, Trace, TraceRange


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command()(advise)


def advise(
    run: Annotated[
        Path,
        typer.Argument(
            metavar="RUN", help="A run directory, a .ncu-rep, or a trace of nsys or torch's profiler."
        ),
    ],
    timeline: Trace = None,
    range_: TraceRange = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON (ncukit.advice/1) on stdout.")] = False,
    nsys: Nsys = None,
) -> None:
    """Say which layer to look at next, with the command for it, or that it is time to stop.

    From above: operations of the framework, timeline of CPU and GPU, one kernel, source line. Stop when a
    kernel is at its ceiling, or takes too little of the region to matter.

    \b
    ncukit advise reports/gemm-H100-20260101T120000Z
    ncukit advise gemm.ncu-rep --timeline gemm.nsys-rep --range step
    ncukit advise run.nsys-rep --json | jq .commands
    """
    from ncukit import api
    from ncukit.trace.nsys import exporter

    found = api.advise(run, timeline=timeline, range=range_, export=exporter(nsys))
    if json:
        from ncukit.media import dumps
        from ncukit.render.advice import advice_data

        print(dumps(advice_data(found)))
        return
    from ncukit.cli.output import color, encoding, width
    from ncukit.render.text.advice import advice_text

    print(advice_text(found, color=color(), encoding=encoding(), width=width()))
