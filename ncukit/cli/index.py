"""``ncukit index``: one page over a folder of runs and reports."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ncukit.cli.dataset import Bar
from ncukit.cli.options import Force
from ncukit.cli.output import typed
from ncukit.errors import UsageError
from ncukit.media import line


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command()(index)


def index(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of runs, reports and datasets.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Page; default: DIR/index.html.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", "-w", min=1, metavar="N", help="Processes; default: all cores.")
    ] = None,
    force: Force = False,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    plotlyjs: Annotated[
        str, typer.Option(metavar="inline|directory", help="Plotly inside the page, or once beside it.")
    ] = "inline",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")] = False,
) -> None:
    """Write one page over a folder: every kernel, a roofline a GPU, history, links to the reports' pages.

    \b
    ncukit index reports
    ncukit index reports --force --open
    ncukit index /data/fleet -o fleet.html --workers 8

    A dataset in the folder (ncukit dataset build) spares reading its reports again.
    """
    if plotlyjs not in ("inline", "directory"):
        raise UsageError(f"--plotlyjs {plotlyjs} is not known", "use inline or directory")
    from ncukit.api import write_index

    with Bar(quiet=quiet) as bar:
        page = write_index(
            folder,
            output,
            workers=workers,
            force=force,
            plotly="directory" if plotlyjs == "directory" else "inline",
            command=typed(),
            progress=bar.show,
        )
    print(line(str(page)))
    if open_:
        typer.launch(page.resolve().as_uri())
