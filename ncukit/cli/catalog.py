"""``ncukit catalog``: what a neutral metric means and which raw counters feed it."""

from __future__ import annotations

from typing import Annotated

import typer

from ncukit.cli.options import Json, check_ids
from ncukit.cli.output import encoding, width


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command()(catalog)


def catalog(
    id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="A metric; without it all are listed.")
    ] = None,
    json: Json = False,
) -> None:
    """Explain the neutral metrics: meaning, unit, sources in order, what collects them.

    \b
    ncukit catalog
    ncukit catalog dram_bytes
    ncukit catalog dram_bytes --json
    """
    from ncukit.metrics import load

    ids = check_ids([id] if id else None)
    metrics = load().metrics
    if json:
        from dataclasses import asdict

        from ncukit.media import dumps

        data = [asdict(metrics[i]) for i in ids or metrics]
        print(dumps({"schema": "ncukit.catalog/1", "metrics": data}))
        return
    from ncukit.render.text import catalog_text

    print(catalog_text(metrics[id] if id else None, encoding=encoding(), width=width()))
