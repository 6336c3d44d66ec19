"""``ncukit demo``: the main job on the sample reports that ship with ncukit."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ncukit.cli.output import color, encoding, width
from ncukit.media import line


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command()(demo)


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for the pages.")
    ] = Path("reports/demo"),
    open_: Annotated[bool, typer.Option("--open", help="Open the first page in the browser.")] = False,
) -> None:
    """Diagnose the bundled samples: one in the terminal, all as HTML pages. No GPU needed.

    The samples are synthetic: written from a model, not measured; their pages say so.

    \b
    ncukit demo
    ncukit demo -o /tmp/demo --open
    """
    from ncukit.api import demo_reports
    from ncukit.cli.options import diagnosed, open_report, opened_trace
    from ncukit.cli.report import write_page_of
    from ncukit.render.text import show_text

    samples = demo_reports()
    first = next((s for s in samples if "transpose" in s.name), samples[0])
    described, diagnoses = diagnosed(open_report(str(first)), None, None)
    print(show_text(described, diagnoses, color=color(), encoding=encoding(), width=width()))
    where = line(f"writing one page a sample into {output}/ (synthetic samples, not measured)")
    print(f"\n{where}", file=sys.stderr)
    pages = []
    for sample in samples:
        pages.append(output / sample.with_suffix(".html").name)
        traced = sample.with_suffix(".sqlite")
        trace = opened_trace(traced if traced.exists() else None, None, None)
        write_page_of(str(sample), pages[-1], None, None, force=True, trace=trace)
        print(line(str(pages[-1])))
    if open_:
        typer.launch(pages[samples.index(first)].resolve().as_uri())
