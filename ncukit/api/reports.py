"""Reports: open them, read their launches, diagnose, write the page."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from time import gmtime, strftime
from typing import TYPE_CHECKING, Literal, TextIO, overload

from ncukit.errors import ReportEmpty, UsageError
from ncukit.files import check_new
from ncukit.model import Wanted
from ncukit.model.notebook import show_with

if TYPE_CHECKING:
    import pandas

    from ncukit.model import Diagnosis, Kernel, RawKernel, ReportFile
    from ncukit.model.comparison import Comparison
    from ncukit.model.source import SourceView

PathLike = str | os.PathLike[str]
By = Literal["gpu", "compute_capability", "file", "name"]

show_with(
    Comparison="ncukit.render.notebook:comparison_html",
    Kernel="ncukit.render.notebook:kernel_html",
    Roofline="ncukit.render.notebook:roofline_html",
)


def _opened(path: str, isolate: bool) -> Report:
    return Report(path, isolate=isolate)


class Report:
    """A file that holds launches: an ``.ncu-rep``, an ``.ncu-repz`` or the CSV that ncu prints.

    The file is checked when the report is made and read when launches are asked for, in a child process
    unless ``isolate`` is False: some damaged files crash the native reader.

    Raises:
        ReportError: the file is missing, empty, damaged or of another format.

    >>> from ncukit.api import demo_reports
    >>> report = read(demo_reports()[0])
    >>> [kernel.failed for kernel in report.kernels()]
    [None]
    """

    def __init__(self, path: PathLike, *, isolate: bool = True, stdin: TextIO | None = None) -> None:
        from ncukit.report.reader import Source

        self.path = str(path)
        self._isolate, self._from_stdin = isolate, stdin is not None
        self._source = Source(path, isolate=isolate, stdin=stdin)

    def __reduce__(self) -> tuple[object, ...]:
        """Go to another process as a path, which is opened there."""
        if self._from_stdin:
            raise TypeError("a report read from stdin is nowhere else: send list(report.diagnoses())")
        return _opened, (self.path, self._isolate)

    def __repr__(self) -> str:
        return f"<Report {self.path}>"

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was odd about the file, in sentences."""
        return self._source.warnings

    def file(self, launches: int = 0) -> ReportFile:
        """Return path, size [byte] and SHA-256 of the file."""
        return self._source.described(launches)

    def raw(
        self, *, metrics: Iterable[str] | None = None, instances: Iterable[str] = ()
    ) -> Iterator[RawKernel]:
        """Yield every launch with native metrics (None: all of them) in base units."""
        names = None if metrics is None else frozenset(metrics)
        yield from self._source.launches(Wanted(names, frozenset(instances), units=True))

    def kernels(self, *, details: bool = False, signals: bool = True) -> Iterator[Kernel]:
        """Yield every launch in neutral metrics; ``details`` adds ncu's rules, sections and NVTX.

        Without ``signals`` reading is quicker, but `diagnose` cannot judge the launches.
        """
        from ncukit.metrics.normalise import normalise, wanted

        for raw in self._source.launches(wanted(signals=signals, details=details)):
            yield normalise(raw, self.path, signals=signals)

    def diagnoses(self) -> Iterator[Diagnosis]:
        """Yield every launch with its roofline, findings and verdict."""
        for kernel in self.kernels(details=True):
            yield diagnose(kernel)

    def frame(
        self,
        *,
        form: Literal["long", "wide"] = "long",
        by: By | None = None,
        raw: Iterable[str] = (),
    ) -> pandas.DataFrame:
        """Return the metrics of every launch as a data frame; see `frame`.

        ``raw`` adds native metrics by name, which only reports that were read for it hold.
        """
        from ncukit.tables import frame as make

        names = tuple(raw)
        return make(self._with_raw(names), form=form, by=by, raw=names)

    def _with_raw(self, raw: tuple[str, ...]) -> Iterator[Kernel]:
        from dataclasses import replace

        from ncukit.metrics.normalise import normalise, wanted

        want = wanted(signals=False, details=True, code=False)
        want = replace(want, metrics=(want.metrics or frozenset()) | set(raw), rules=False, units=bool(raw))
        for found in self._source.launches(want):
            yield normalise(found, self.path, signals=False)


class Reports:
    """Several reports, read one after another; every one of them must be usable.

    >>> from ncukit.api import demo_reports
    >>> len(read(demo_reports()[:2]))
    2
    """

    def __init__(self, paths: Iterable[PathLike], *, isolate: bool = True) -> None:
        self.paths = tuple(os.fsdecode(path) for path in paths)
        self.isolate = isolate

    def __repr__(self) -> str:
        return f"<Reports of {len(self)} files>"

    def __len__(self) -> int:
        return len(self.paths)

    def __iter__(self) -> Iterator[Report]:
        for path in self.paths:
            yield Report(path, isolate=self.isolate)

    def kernels(self, *, details: bool = False) -> Iterator[Kernel]:
        """Yield every launch of every report in neutral metrics."""
        for report in self:
            yield from report.kernels(details=details)

    def diagnoses(self) -> Iterator[Diagnosis]:
        """Yield every launch of every report with its roofline, findings and verdict."""
        for report in self:
            yield from report.diagnoses()

    def frame(
        self,
        *,
        form: Literal["long", "wide"] = "long",
        by: By | None = None,
        raw: Iterable[str] = (),
    ) -> pandas.DataFrame:
        """Return the metrics of every launch of every report as one data frame; see `frame`."""
        from ncukit.tables import frame as make

        names = tuple(raw)
        return make((k for report in self for k in report._with_raw(names)), form=form, by=by, raw=names)


@overload
def read(path: PathLike, *, isolate: bool = True) -> Report: ...  # type: ignore[overload-overlap]


@overload
def read(path: Iterable[PathLike], *, isolate: bool = True) -> Reports: ...


def read(path: PathLike | Iterable[PathLike], *, isolate: bool = True) -> Report | Reports:
    """Open the report at ``path``, or several reports as one.

    Raises:
        ReportError: one cannot be used; message and hint say why and what to do.
    """
    if isinstance(path, str | bytes | os.PathLike):
        return Report(os.fsdecode(path), isolate=isolate)
    return Reports(path, isolate=isolate)


def frame(
    what: Iterable[Kernel] | Comparison,
    *,
    form: Literal["long", "wide"] = "long",
    by: By | None = None,
    raw: Iterable[str] = (),
) -> pandas.DataFrame:
    """Return launches, or a comparison, as a data frame: tidy, typed, units in ``attrs["units"]``.

    "long" has one row a launch and metric, with unit, quality and reason; "wide" one row a launch.  ``by``
    puts launches side by side: one row a kernel and metric, one column a GPU (or capability, file, name), the
    median where there are several.  A comparison has one row a pair and metric.
    """
    from ncukit.model.comparison import Comparison
    from ncukit.tables import comparison_frame
    from ncukit.tables import frame as make

    if isinstance(what, Comparison):
        return comparison_frame(what)
    return make(what, form=form, by=by, raw=tuple(raw))


def diagnose(kernel: Kernel) -> Diagnosis:
    """Return what limits ``kernel``: roofline, findings of every rule, verdict.

    Raises:
        TypeError: it is none.
    """
    from ncukit.judge import diagnose as judge
    from ncukit.model import Kernel
    from ncukit.roofline import place

    if not isinstance(kernel, Kernel):
        raise TypeError(f"diagnose takes a Kernel, as read(path).kernels() yields them, not {kernel!r:.80}")
    return judge(kernel, place(kernel))


def source_view(kernel: Kernel) -> SourceView | None:
    """Return what every instruction and line of ``kernel`` cost; None where nothing was counted by PC.

    A diagnosis has it in its ``facts``; this makes it without one.
    """
    from ncukit.judge.source_view import source_view as view

    return view(kernel)


def write_report(
    path: PathLike,
    output: PathLike | None = None,
    *,
    launches: Iterable[int] | None = None,
    force: bool = False,
    plotly: Literal["inline", "directory"] = "inline",
    command: str = "",
    timeline: PathLike | None = None,
) -> Path:
    """Write the HTML diagnosis of the report at ``path`` and return where.

    ``launches`` chooses by position from 1; ``timeline`` is a trace of the same program, as for `timeline`.
    The default output is the report's name with ``.html`` in the current directory.

    Raises:
        ReportError: the report, or the trace, cannot be used.
        ToolError: a .nsys-rep cannot be exported by nsys.
        UsageError: the output exists and ``force`` is not given, or a launch does not exist.
    """
    from ncukit.render.html import write_page
    from ncukit.render.view import page_view

    target = Path(output) if output is not None else Path(Path(path).name).with_suffix(".html")
    check_new(target, force=force)
    report = read(path)
    everything = list(report.diagnoses())
    diagnoses = select(everything, launches)
    generated = strftime("%Y-%m-%d %H:%M UTC", gmtime())
    beside = None
    if timeline is not None:
        from ncukit.render.timeline.beside import beside as open_beside

        beside = open_beside(Path(timeline))
    view = page_view(
        report.file(len(everything)), diagnoses, generated=generated, command=command, beside=beside
    )
    write_page(target, view, force=force, plotly=plotly)
    return target


def select(diagnoses: Iterable[Diagnosis], launches: Iterable[int] | None) -> list[Diagnosis]:
    """Return the chosen launches (positions from 1; None: all).

    Raises:
        UsageError: one does not exist.
        ReportEmpty: there is none at all.
    """
    found = list(diagnoses)
    if not found:
        raise ReportEmpty("", "the report holds no launch", "profile again with a filter that matches")
    if launches is None:
        return found
    by_number = {d.kernel.index + 1: d for d in found}
    numbers = list(launches)
    if missing := [n for n in numbers if n not in by_number]:
        raise UsageError(f"there is no launch {missing[0]}", f"the report holds launches 1 to {len(found)}")
    return [by_number[n] for n in numbers]
