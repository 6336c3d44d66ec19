"""``ncukit dataset``: many reports as one Parquet dataset, and questions to it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ncukit.cli.output import complain, encoding
from ncukit.errors import ReportError, UsageError
from ncukit.media import line

if TYPE_CHECKING:
    from ncukit.dataset.build import Built

FORMATS = ("table", "csv", "json")
NAMED = 5
"""Bad reports that are named on stderr; all are in the table of errors."""

dataset = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


def register(app: typer.Typer) -> None:
    """Add the commands to ``app``."""
    app.add_typer(dataset, name="dataset")


@dataset.callback()
def group() -> None:
    """Gather thousands of reports in one Parquet dataset, one row a launch, and ask it in SQL.

    \b
    ncukit dataset build 'runs/**/*.ncu-rep' -o fleet
    ncukit dataset query fleet "SELECT gpu, class, count(*) FROM launches GROUP BY ALL"
    """


@dataset.command()
def build(
    inputs: Annotated[
        list[str], typer.Argument(metavar="PATTERN...", help="Reports, folders of them, or quoted patterns.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder of the dataset.")],
    workers: Annotated[
        int | None, typer.Option("--workers", "-w", min=1, metavar="N", help="Processes; default: all cores.")
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Scheduler of a Dask cluster that reads instead."),
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the rows of reports that are gone.")] = False,
    force: Annotated[bool, typer.Option("--force", "-f", help="Read unchanged reports again.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print what was done as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no words on stderr.")] = False,
) -> None:
    """Bring a dataset up to date with the reports: new and changed ones are read, those that are gone go.

    \b
    ncukit dataset build 'runs/**/*.ncu-rep' -o fleet
    ncukit dataset build runs/ more/gemm.ncu-rep -o fleet --workers 8
    ncukit dataset build 'runs/**/*.ncu-rep' -o fleet --dask tcp://head:8786

    The rows are Parquet, partitioned by GPU, for pandas, Polars, DuckDB or pyarrow.  A report that cannot be
    used is a row of _errors.parquet: the others are done, and the exit code is 4.
    """
    from ncukit.api import build_dataset

    with Bar(quiet=quiet) as bar:
        done = build_dataset(
            inputs, output, workers=workers, dask=dask, force=force, keep=keep, progress=bar.show
        )
    if json:
        from ncukit.render.answer import built_json

        print(built_json(done))
    else:
        print(_summary(done))
    if not quiet:
        _words(done)
    if done.errors:
        raise typer.Exit(ReportError.exit_code)


@dataset.command()
def query(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the dataset.")],
    sql: Annotated[
        str, typer.Argument(metavar="SQL", help="A question to the table launches; - reads stdin.")
    ],
    format: Annotated[
        str, typer.Option("--format", metavar="|".join(FORMATS), help="How to print.")
    ] = "table",
    json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Answer a question in SQL; needs DuckDB, and says how to install it.

    \b
    ncukit dataset query fleet "SELECT gpu, class, count(*) FROM launches GROUP BY ALL"
    ncukit dataset query fleet "SELECT name, median(kernel_duration) FROM launches GROUP BY name" --format csv
    ncukit dataset query fleet "SELECT id, unit, meaning FROM metrics WHERE family = 'memory'"
    ncukit dataset query fleet "SELECT file, message FROM errors" --json

    Tables: launches (one row a launch), metrics (what its columns mean), errors (reports that cannot be
    used).
    """
    how = "json" if json else format
    if how not in FORMATS:
        raise UsageError(f"--format {how} is not known", f"use one of: {', '.join(FORMATS)}")
    from ncukit.api import query_dataset
    from ncukit.render import answer

    found = query_dataset(folder, sys.stdin.read() if sql == "-" else sql)
    if how == "json":
        print(answer.answer_json(found.columns, found.rows))
    elif how == "csv":
        answer.answer_csv(sys.stdout, found.columns, found.rows)
    else:
        print(answer.answer_text(found.columns, found.rows, encoding=encoding()))


class Bar:
    """Progress on stderr, where that is a terminal."""

    def __init__(self, *, quiet: bool) -> None:
        self._bar: Any = None
        self._task: Any = None
        self._quiet = quiet or not sys.stderr.isatty()

    def __enter__(self) -> Bar:
        if not self._quiet:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                TextColumn("{task.description}"),
            )
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, done: int, total: int, file: str) -> None:
        """Show that ``done`` of ``total`` reports are read."""
        if self._bar is None:
            return
        if self._task is None:
            self._task = self._bar.add_task("", total=total)
        name = line(Path(file).name).replace("[", r"\[")
        self._bar.update(self._task, completed=done, total=total, description=name)


def _summary(done: Built) -> str:
    words = [f"{done.read:,} read", f"{done.unchanged:,} unchanged"]
    words += [f"{done.removed:,} gone"] if done.removed else []
    words += [f"{len(done.errors):,} cannot be used"] if done.errors else []
    reports = "report" if done.reports == 1 else "reports"
    launches = "launch" if done.launches == 1 else "launches"
    return (
        f"{line(done.folder)}: {done.launches:,} {launches} of {done.reports:,} {reports}"
        f" ({', '.join(words)})"
    )


def _words(done: Built) -> None:
    for note in done.notes[:NAMED]:
        print(f"note: {line(note)}", file=sys.stderr)
    if len(done.notes) > NAMED:
        print(f"note: {len(done.notes) - NAMED:,} more; --json lists them", file=sys.stderr)
    if done.why_all:
        print(f"note: {done.why_all}", file=sys.stderr)
    for error in done.errors[:NAMED]:
        complain(ReportError(error["path"], error["message"]))
    if done.errors:
        rest = f"; {len(done.errors) - NAMED:,} more are there" if len(done.errors) > NAMED else ""
        print(f"hint: {line(done.folder)}/_errors.parquet lists them{rest}", file=sys.stderr)
