"""``ncukit metrics``: neutral or raw metrics as table, CSV, JSON or Parquet."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ncukit.cli.options import (
    Files,
    Force,
    Json,
    KernelName,
    Launches,
    check_ids,
    chosen,
    chosen_raw,
    each_file,
    open_report,
)
from ncukit.cli.output import color, encoding, width
from ncukit.errors import UsageError
from ncukit.files import beside, check_new
from ncukit.media import line
from ncukit.model import Kernel

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
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Parquet file to write.")
    ] = None,
    force: Force = False,
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

    In CSV, JSON and Parquet the field index counts the launches from 0; --launch and all texts count from 1:
    --launch is index + 1.
    """
    how = "json" if json else format
    if how not in FORMATS:
        raise UsageError(f"--format {how} is not known", f"use one of: {', '.join(FORMATS)}")
    if how == "parquet":
        if raw:
            raise UsageError("--raw has no Parquet", "use --format csv or json")
        _parquet(files, output, launches, kernel, check_ids(metric), force=force)
        return
    if output is not None:
        raise UsageError(
            f"-o is for --format parquet, not {how}", "redirect stdout: ncukit metrics ... > FILE"
        )
    begun = False  # whether a header was printed: the first file may be the bad one

    def native(file: str) -> None:
        nonlocal begun
        from ncukit.render.table import raw_json, raw_rows

        report = open_report(file)
        launches_ = list(chosen_raw(report.raw(metrics=metric), launches, kernel))
        if how == "json":
            sys.stdout.writelines(raw_json(file, launches_))
        else:
            raw_rows(sys.stdout, launches_, csv=how == "csv", header=not begun)
            begun = True

    def neutral(file: str) -> None:
        nonlocal begun
        kernels = chosen(open_report(file).kernels(signals=False), launches, kernel)
        if how == "json":
            from ncukit.cli.output import print_report
            from ncukit.render.json import kernel_text

            print_report(file, (kernel_text(k, ids) for k in kernels))
        elif how == "csv":
            from ncukit.render.table import csv_rows

            rows = list(kernels)
            csv_rows(sys.stdout, rows, ids, header=not begun)
            begun = True
        else:
            from ncukit.render.text import metrics_text

            found = list(kernels)
            print(
                metrics_text(found, ids, color=color(), encoding=encoding(), width=width(), verbose=verbose)
            )

    ids = None if raw else check_ids(metric)
    each_file(files, native if raw else neutral, json=how == "json")


def _parquet(
    files: list[str],
    output: Path | None,
    launches: list[int] | None,
    kernel: str | None,
    ids: list[str] | None,
    *,
    force: bool,
) -> None:
    if output is None:
        raise UsageError("--format parquet needs a file to write", "add -o FILE.parquet")
    check_new(output, force=force)
    from ncukit.metrics import load
    from ncukit.tables import frame

    kernels: list[Kernel] = []

    def read(file: str) -> None:
        kernels.extend(chosen(open_report(file).kernels(signals=False), launches, kernel))

    try:
        each_file(files, read)
    finally:
        if kernels:
            table = frame(kernels)
            if ids:
                dropped = load().metrics.keys() - set(ids)
                table = table[[column for column in table.columns if column not in dropped]]
            with beside(output) as name:
                table.to_parquet(name)
            print(line(str(output)))
