"""The public verbs: all that the command line calls, and what ``import ncukit`` hands out.

Pandas, Plotly and the native reader are imported when they are needed, never here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from time import gmtime, strftime
from typing import TYPE_CHECKING, Any, Literal, TextIO, overload

from ncukit.errors import NcukitError, ReportEmpty, UsageError
from ncukit.model import Diagnosis, Kernel, RawKernel, ReportFile, Wanted
from ncukit.model.shown import show_with

if TYPE_CHECKING:
    import pandas

    from ncukit.collect.carry import Carried
    from ncukit.collect.options import ProfileOptions
    from ncukit.collect.session import Listener
    from ncukit.compare.options import CompareOptions
    from ncukit.dataset.build import Built
    from ncukit.dataset.query import Answer
    from ncukit.model.comparison import Comparison, Side
    from ncukit.model.run import Timing
    from ncukit.model.timeline import Timeline

PathLike = str | os.PathLike[str]
By = Literal["gpu", "compute_capability", "file", "name"]

show_with(
    Comparison="ncukit.render.notebook:comparison_html",
    Kernel="ncukit.render.notebook:kernel_html",
    Roofline="ncukit.render.notebook:roofline_html",
)


class Report:
    """A file that holds launches: an ``.ncu-rep``, an ``.ncu-repz`` or the CSV that ncu prints.

    The file is checked when the report is made and read when launches are asked for, in a child process
    unless ``isolate`` is False: some damaged files crash the native reader.

    Raises:
        ReportError: the file is missing, empty, damaged or of another format.

    >>> report = read(demo_reports()[0])
    >>> [kernel.failed for kernel in report.kernels()]
    [None]
    """

    def __init__(self, path: PathLike, *, isolate: bool = True, stdin: TextIO | None = None) -> None:
        from ncukit.read.report import Source

        self.path = str(path)
        self._source = Source(path, isolate=isolate, stdin=stdin)

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
        from ncukit.normalise import normalise, wanted

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
        from ncukit.frame import frame as make

        names = tuple(raw)
        return make(self._with_raw(names), form=form, by=by, raw=names)

    def _with_raw(self, raw: tuple[str, ...]) -> Iterator[Kernel]:
        from dataclasses import replace

        from ncukit.normalise import normalise, wanted

        want = wanted(signals=False, details=True, code=False)
        want = replace(want, metrics=(want.metrics or frozenset()) | set(raw), rules=False, units=bool(raw))
        for found in self._source.launches(want):
            yield normalise(found, self.path, signals=False)


class Reports:
    """Several reports, read one after another; every one of them must be usable.

    >>> len(read(demo_reports()[:2]))
    2
    """

    def __init__(self, paths: Iterable[PathLike], *, isolate: bool = True) -> None:
        self.paths = tuple(str(path) for path in paths)
        self.isolate = isolate

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
        from ncukit.frame import frame as make

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
    if isinstance(path, str | os.PathLike):
        return Report(path, isolate=isolate)
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
    from ncukit.frame import comparison_frame
    from ncukit.frame import frame as make
    from ncukit.model.comparison import Comparison

    if isinstance(what, Comparison):
        return comparison_frame(what)
    return make(what, form=form, by=by, raw=tuple(raw))


def compare(
    base: PathLike | Iterable[PathLike] | Iterable[Kernel] | Report | Reports,
    *others: PathLike | Iterable[PathLike] | Iterable[Kernel] | Report | Reports,
    match: Iterable[str] = (),
    fail_on: Iterable[str] = (),
    options: CompareOptions | None = None,
) -> Comparison:
    """Compare ``base`` with ``others``: metrics side by side, what changed and why, what the gates say.

    A side is a report, several reports (repeats of one measurement), a folder of them, a run directory, the
    name of a baseline, or launches that were read already.  ``match`` and ``fail_on`` add to ``options``.

    Raises:
        UsageError: there is no other side, ``match`` names what is not there, or a gate is none.
        ReportError: a side cannot be used.

    >>> found = compare(demo_reports()[0], demo_reports()[0], fail_on=["dram_bytes > +5%"])
    >>> found.pairs[0].summary.trend, found.failed
    ('unchanged', False)
    """
    from ncukit.compare import compare as against
    from ncukit.compare.gates import apply, parse
    from ncukit.compare.match import Steering
    from ncukit.compare.options import CompareOptions

    found = options or CompareOptions()
    if not others:
        raise UsageError("there is nothing to compare with", "give a base and at least one other side")
    steering = Steering.of((*found.match, *match))
    gates = [*found.gates, *(parse(text) for text in (*found.fail_on, *fail_on))]
    sides = [_side(what, found, number) for number, what in enumerate((base, *others))]
    comparison = against(sides[0], sides[1:], steering=steering, elements=found.elements)
    return apply(
        comparison,
        gates,
        allow_unknown=found.allow_unknown,
        beyond_noise=found.beyond_noise,
        chosen=found.kernel is not None,
    )


def _side(what: Any, options: CompareOptions, number: int) -> Side:
    from ncukit.compare.side import read_side, side_of

    if isinstance(what, Report):
        what = what.path
    elif isinstance(what, Reports):
        what = what.paths
    elif not isinstance(what, str | os.PathLike):
        what = list(what)
        if any(isinstance(one, Kernel) for one in what):
            label = "base" if number == 0 else f"other {number}"
            return side_of((k for k in what if options.choice.keep(k)), label, apart=options.choice.apart)
    return read_side(what, options.choice)


def write_comparison(
    comparison: Comparison,
    output: PathLike,
    *,
    force: bool = False,
    plotly: Literal["inline", "directory"] = "inline",
    command: str = "",
) -> Path:
    """Write the page of a comparison and return where.

    Raises:
        UsageError: the output exists and ``force`` is not given.
    """
    from ncukit.render.compare.html import write_comparison as write

    return write(Path(output), comparison, force=force, plotly=plotly, command=command)


def set_baseline(
    name: str,
    what: PathLike | Iterable[PathLike],
    *,
    folder: PathLike | None = None,
    kernel: str | None = None,
    force: bool = False,
) -> Path:
    """Keep the neutral metrics of ``what`` as baseline ``name`` and return the file.

    Raises:
        UsageError: the baseline exists and ``force`` is not given, or the name is none.
        ReportError: ``what`` cannot be used.
    """
    from ncukit.compare import baseline
    from ncukit.compare.options import CompareOptions

    place = baseline.FOLDER if folder is None else Path(folder)
    baseline.path_of(place, name)
    side = _side(what, CompareOptions(kernel=kernel, lines=False, baselines=place), 0)
    created = strftime("%Y-%m-%dT%H:%M:%SZ", gmtime())
    return baseline.write(place, name, side, created=created, force=force)


def diagnose(kernel: Kernel) -> Diagnosis:
    """Return what limits ``kernel``: roofline, findings of every rule, verdict."""
    from ncukit.diagnose import diagnose as judge
    from ncukit.roofline import place

    return judge(kernel, place(kernel))


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
    if target.exists() and not force:
        raise UsageError(f"{target} exists already", "use --force to overwrite it, or -o for another name")
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


def timeline(path: PathLike, range: str | None = None) -> Timeline:
    """Return what the nsys trace at ``path`` (.nsys-rep, .qdrep or .sqlite) says about where the time went.

    ``range`` looks only at what was launched inside the NVTX range of that name.

    Raises:
        ReportError: the trace cannot be used, or nothing ran on a GPU in it.
        ToolError: a .nsys-rep cannot be exported: nsys is missing, too old, or failed.
        UsageError: there is no such range, or nothing was launched in it.

    >>> found = timeline(demo_traces()[0])
    >>> found.region.cls, len(found.kernels)
    ('transfer-bound', 3)
    """
    from ncukit.diagnose.timeline import analyse
    from ncukit.read.nsys import open_trace

    return analyse(open_trace(Path(path)), range)


def profile(
    target: PathLike | Sequence[str],
    *,
    options: ProfileOptions | None = None,
    output: PathLike | None = None,
    resume: PathLike | None = None,
    listener: Listener | None = None,
) -> Carried:
    """Time, trace and measure one kernel of ``target`` (a file, or words of a command) in a run directory.

    The result has the directory, the record (`ncukit.model.run.Run`) and the first failure, if any: what was
    gained before it is kept.  ``resume`` goes on with a run that was broken off.

    Raises:
        UsageError: target and options do not fit, or the directory is in use.
        ReportError: the script cannot be read, or there is no run to resume.
    """
    from ncukit.collect.carry import carry_out
    from ncukit.collect.options import ProfileOptions
    from ncukit.collect.sweep import carry_sweep
    from ncukit.collect.target import Target, resolve
    from ncukit.diagnose.isolate import launch_for_ncu
    from ncukit.render.run.page import finisher
    from ncukit.render.run.sweep import write_sweep_page

    wanted = options or ProfileOptions()
    words = [os.fspath(target)] if isinstance(target, str | os.PathLike) else list(target)
    found, command = resolve(words, wanted), " ".join(["ncukit profile", *words])

    def carry(one: Target, chosen: ProfileOptions, new: Path | None, old: Path | None) -> Carried:
        finish = finisher(command)
        return carry_out(
            one, chosen, launch_for_ncu, output=new, resume=old, listener=listener, finish=finish
        )

    new, old = (None if path is None else Path(path) for path in (output, resume))
    if len(wanted.points) == 1:
        return carry(found.at(wanted.points[0]), wanted, new, old)
    return carry_sweep(
        found,
        wanted,
        carry,
        lambda path, points: write_sweep_page(path, points, command=command),
        output=new,
        resume=old,
        listener=listener,
    )


def time(
    target: PathLike | Sequence[str],
    *,
    options: ProfileOptions | None = None,
    listener: Listener | None = None,
) -> list[Timing]:
    """Check and time ``target`` without any profiler, once for each point of its parameters.

    Raises:
        UsageError: target and options do not fit.
        ReportError: the script cannot be read.
        ToolError: it fails, or its result is wrong (``wrong-result``).
    """
    import tempfile
    from dataclasses import replace

    from ncukit.collect.carry import at_point, carry_out
    from ncukit.collect.directory import TIMING, read_json
    from ncukit.collect.options import ProfileOptions
    from ncukit.collect.target import resolve
    from ncukit.diagnose.isolate import launch_for_ncu
    from ncukit.model.run import Timing

    wanted = replace(options or ProfileOptions(), skip_nsys=True, skip_ncu=True)
    words = [os.fspath(target)] if isinstance(target, str | os.PathLike) else list(target)
    found, timings = resolve(words, wanted), []
    for point in wanted.points:
        with tempfile.TemporaryDirectory(prefix="ncukit-") as folder:
            path = Path(folder) / "run"
            carried = carry_out(
                *at_point(found, wanted, point), launch_for_ncu, output=path, listener=listener
            )
            if carried.failure is not None:
                raise carried.failure.error()
            timings.append(Timing.from_dict(read_json(path / TIMING)))
    return timings


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

    given = [inputs] if isinstance(inputs, str | os.PathLike) else list(inputs)
    return build(given, folder, workers=workers, dask=dask, force=force, keep=keep, progress=progress)


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
    if target.exists() and not force:
        raise UsageError(f"{target} exists already", "use --force to overwrite it, or -o for another name")
    found = survey(folder, workers=workers, progress=progress)
    generated = strftime("%Y-%m-%d %H:%M UTC", gmtime())
    view = page_view(found, target, generated=generated, command=command)
    return write_page(target, view, force=force, plotly=plotly)


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


def demo_reports() -> list[Path]:
    """Return the sample reports that ship with ncukit.

    Raises:
        NcukitError: ncukit was installed without them.
    """
    return _samples("*.ncu-rep")


def demo_traces() -> list[Path]:
    """Return the sample traces that ship with ncukit, each with the name of the report it goes with.

    Raises:
        NcukitError: ncukit was installed without them.
    """
    return _samples("*.sqlite")


def _samples(pattern: str) -> list[Path]:
    from ncukit.resources import folder

    try:
        found = sorted(folder("reports/samples").glob(pattern))
    except FileNotFoundError:
        found = []
    if not found:
        raise NcukitError("ncukit was installed without its samples", "reinstall ncukit")
    return found
