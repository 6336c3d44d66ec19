"""``ncukit metrics``: neutral or raw metrics as table, CSV, JSON or Parquet."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ncukit.cli.options import Files, Json, KernelName, Launches, check_ids, chosen, each_file, open_report
from ncukit.cli.output import color, encoding, width
from ncukit.errors import UsageError

FORMATS = ("table", "csv", "json", "parquet")


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command()(metrics)


def metrics(
    files: Files,
    json: Json = False,
    format: Annotated[
        str, typer.Option("--format", metavar="|".join(FORMATS), help="How to print.")
    ] = "table",
    metric: Annotated[
        list[str] | None, typer.Option("--metric", "-m", metavar="ID", help="Only this metric; repeatable.")
    ] = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="Native metrics in base units instead of neutral ones.")
    ] = False,
    launches: Launches = None,
    kernel: KernelName = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Parquet file to write.")] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="List unknown metrics with their reasons.")
    ] = False,
) -> None:
    """Print the metrics of every launch, each with unit, quality and the raw counters it came from.

    \b
    ncukit metrics gemm.ncu-rep
    ncukit metrics gemm.ncu-rep --metric dram_bytes --metric kernel_duration
    ncukit metrics gemm.ncu-rep --json | jq '.kernels[0].metrics.dram_bytes'
    ncukit metrics runs/*.ncu-rep --format parquet -o all.parquet
    ncu --import gemm.ncu-rep --page raw --csv | ncukit metrics - --json
    """
    how = "json" if json else format
    if how not in FORMATS:
        raise UsageError(f"--format {how} is not known", f"use one of: {', '.join(FORMATS)}")
    if how == "parquet":
        _parquet(files, output, launches, kernel)
        return
    if raw:
        each_file(files, lambda file: _raw(file, how, metric), json=how == "json")
        return
    ids = check_ids(metric)

    def neutral(file: str) -> None:
        kernels = chosen(open_report(file).kernels(signals=False), launches, kernel)
        if how == "json":
            from ncukit.cli.stream import print_report
            from ncukit.render.json import kernel_text

            print_report(file, (kernel_text(k, ids) for k in kernels))
        elif how == "csv":
            from ncukit.render.table import csv_rows

            csv_rows(sys.stdout, list(kernels), ids, header=file == files[0])
        else:
            from ncukit.render.text import metrics_text

            print(
                metrics_text(
                    list(kernels), ids, color=color(), encoding=encoding(), width=width(), verbose=verbose
                )
            )

    each_file(files, neutral, json=how == "json")


def _raw(file: str, how: str, names: list[str] | None) -> None:
    from ncukit.render.table import raw_json, raw_rows

    launches = open_report(file).raw(metrics=names)
    if how == "json":
        for piece in raw_json(file, list(launches)):
            sys.stdout.write(piece)
    else:
        raw_rows(sys.stdout, launches, csv=how == "csv")


def _parquet(files: list[str], output: Path | None, launches: list[int] | None, kernel: str | None) -> None:
    if output is None:
        raise UsageError("--format parquet needs a file to write", "add -o FILE.parquet")
    from ncukit.frame import frame

    kernels = [k for file in files for k in chosen(open_report(file).kernels(signals=False), launches, kernel)]
    frame(kernels).to_parquet(output)
    print(output)
