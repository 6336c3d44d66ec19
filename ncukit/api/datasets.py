"""Many reports at once: as a dataset, as one index page."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from time import gmtime, strftime
from typing import TYPE_CHECKING, Literal

from ncukit.api.reports import PathLike
from ncukit.whole import check_new

if TYPE_CHECKING:
    from ncukit.dataset.build import Built
    from ncukit.dataset.query import Answer


def build_dataset(
    inputs: PathLike | Iterable[PathLike],
    folder: PathLike,
    *,
    workers: int | None = None,
    dask: str | None = None,
    force: bool = False,
    keep: bool = False,
    progress: Callable[[int, int, str], None] | None = None,
) -> Built:
    """Bring the Parquet dataset ``folder`` up to date with the reports that ``inputs`` name.

    ``inputs`` are files, folders and patterns (``runs/**/*.ncu-rep``).  Reports that did not change since the
    last time are not read; those that are gone from the disk lose their rows unless ``keep`` is set, and
    those that ``inputs`` do not name stay.  ``workers`` local processes read (default: one a core), or those
    of the Dask scheduler at address ``dask``.  ``progress(done, total, file)`` is called after each report.

    In a script, call it under ``if __name__ == "__main__":`` because processes are started.

    Raises:
        ReportNotFound: one of the inputs names no file.
        UsageError: the folder holds something else, cannot be written to, or another build is at work there.
        NcukitError: no process, or no cluster, does the work.
    """
    from ncukit.dataset.build import build
    from ncukit.dataset.state import NAME

    given = [inputs] if isinstance(inputs, str | os.PathLike) else list(inputs)
    try:
        return build(given, folder, workers=workers, dask=dask, force=force, keep=keep, progress=progress)
    except KeyboardInterrupt as stop:
        if os.path.exists(os.path.join(folder, NAME)):
            command = "the same command without --force" if force else "the same command"
            stop.add_note(f"what was read is kept in {os.fspath(folder)}: {command} reads the rest")
        raise


def query_dataset(folder: PathLike, sql: str) -> Answer:
    """Return the answer of the dataset ``folder`` to ``sql``; tables: launches, metrics, errors.

    Raises:
        UsageError: the folder is no dataset, or the SQL is wrong.
        NcukitError: DuckDB is not installed.
    """
    from ncukit.dataset.query import query

    return query(folder, sql)


def write_index(
    folder: PathLike,
    output: PathLike | None = None,
    *,
    workers: int | None = None,
    force: bool = False,
    plotly: Literal["inline", "directory"] = "inline",
    command: str = "",
    progress: Callable[[int, int, str], None] | None = None,
) -> Path:
    """Write one page over a folder of runs, reports and datasets, and return where (``index.html`` in it).

    Reports that a dataset in the folder holds unchanged are not read again; ``workers`` processes read the
    others.  In a script, call it under ``if __name__ == "__main__":``.

    Raises:
        ReportNotFound: there is no such folder, or nothing in it.
        UsageError: the output exists and ``force`` is not given, or it cannot be written.
    """
    from ncukit.dataset.survey import survey
    from ncukit.render.html import write_page
    from ncukit.render.index.view import page_view

    target = Path(output) if output is not None else Path(folder) / "index.html"
    check_new(target, force=force)
    found = survey(folder, workers=workers, progress=progress)
    generated = strftime("%Y-%m-%d %H:%M UTC", gmtime())
    view = page_view(found, target, generated=generated, command=command)
    return write_page(target, view, force=force, plotly=plotly)
