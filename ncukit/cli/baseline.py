"""``ncukit baseline``: named baselines for gates, kept in the repository."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ncukit.cli.options import Force, KernelName
from ncukit.errors import UsageError
from ncukit.folders import Folder
from ncukit.media import line

ACTIONS = ("set", "list", "show")


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command()(baseline)


def baseline(
    action: Annotated[str, typer.Argument(metavar="set|list|show", help="What to do.")],
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Name of the baseline.")] = None,
    file: Annotated[
        str | None,
        typer.Argument(metavar="[FILE]", help="What to keep: a report, a folder of repeats, or a run."),
    ] = None,
    kernel: KernelName = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--folder",
            metavar="DIR",
            help="Where baselines lie, if not where ncukit.toml says.",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
    force: Force = False,
) -> None:
    """Keep the neutral metrics of a report under a name, for `ncukit compare NAME OTHER`.

    \b
    ncukit baseline set main gemm.ncu-rep       writes .ncukit/baselines/main.json: commit it
    ncukit baseline set main gemm.ncu-rep --force
    ncukit baseline list
    ncukit baseline show main

    A baseline is a small JSON file: metrics with their quality and the names of their counters, reasons for
    what is unknown, the spread of repeats and the verdict; no raw values, source or SASS.
    """
    from ncukit.comparison.options import load_settings

    place = folder or load_settings().baselines
    if action == "set":
        if name is None or file is None:
            raise UsageError("a baseline needs a name and a report", "ncukit baseline set NAME FILE")
        from ncukit.api import set_baseline

        print(line(str(set_baseline(name, file, folder=place, kernel=kernel, force=force))))
    elif action == "list":
        _list(place, json=json)
    elif action == "show":
        if name is None:
            raise UsageError("which baseline?", "`ncukit baseline list` lists them")
        _show(place, name, json=json)
    else:
        raise UsageError(f"baseline {action} is not known", f"use one of: {', '.join(ACTIONS)}")


def _list(place: Path, *, json: bool) -> None:
    from ncukit.comparison import baseline as kept

    found = kept.baseline_names(place)
    if json:
        from ncukit.media import dumps

        rows = [{"name": name, "file": str(place / f"{name}.json")} for name in found]
        print(dumps({"schema": "ncukit.baselines/1", "baselines": rows}))
        return
    if not found:
        print(f"no baseline in {place}", file=sys.stderr)
    for name in found:
        side = kept.read(place, name)
        kernels = len(side.samples)
        print(line(f"{name}  {kernels} kernel{'s' * (kernels != 1)}  {kept.origin(side)}"))


def _show(place: Path, name: str, *, json: bool) -> None:
    from ncukit.comparison import baseline as kept

    if json:
        from json import loads

        from ncukit.media import dumps

        kept.read(place, name)  # says what is wrong with it
        with Folder.open(place) as folder:
            print(dumps(loads(folder.read(f"{name}.json")), indent=1))
        return
    side = kept.read(place, name)
    from ncukit.cli.output import color, encoding, width
    from ncukit.render.text import metrics_text

    print(line(f"{name}: {kept.origin(side)}"))
    for sample in side.samples:
        print()
        print(metrics_text([sample.kernel], color=color(), encoding=encoding(), width=width(), verbose=False))
