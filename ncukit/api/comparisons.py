"""Comparisons, baselines, and where to look next."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from time import gmtime, strftime
from typing import TYPE_CHECKING, Any, Literal

from ncukit.api.reports import PathLike, Report, Reports
from ncukit.errors import UsageError
from ncukit.model import Kernel

if TYPE_CHECKING:
    from ncukit.comparison.baseline import Choice
    from ncukit.comparison.options import CompareOptions
    from ncukit.model.comparison import Comparison, Side
    from ncukit.model.diagnosis import Advice
    from ncukit.model.trace import Trace
    from ncukit.trace.nsys import Export


# ---- Where to look next, and when to stop


def advise(
    path: PathLike,
    *,
    timeline: PathLike | None = None,
    range: str | None = None,
    export: Export | None = None,
) -> Advice:
    """Return which layer to look at next after ``path``, with the command, or that it is time to stop.

    ``path`` is a run directory, a report of ncu, or a trace of nsys or torch's profiler; ``timeline`` is a
    trace that goes with a report, and ``range`` the NVTX range that matters in a trace.

    Raises:
        ReportError: a file cannot be used.
        ToolError: a .nsys-rep cannot be exported.
        UsageError: ``timeline`` goes with something else than a report, or there is no such range.

    >>> from ncukit.api import demo_traces
    >>> found = advise(demo_traces()[0])
    >>> found.id, found.layer
    ('transfer-bound', 'operations')
    """
    from ncukit.errors import ReportFormatError, UsageError
    from ncukit.render import advice

    given, reports = Path(path), given_is_report(Path(path))
    if timeline is not None and not reports:
        raise UsageError("a timeline goes with a report only", "give the .ncu-rep and its trace")
    if given.is_dir():
        from ncukit.render.run.load import load

        if range is not None:
            raise UsageError("a run has its own region", "leave --range out")
        if (given / "experiment.json").is_file():
            raise UsageError(
                f"{path} is an experiment, not a run",
                "read its conclusion; give its folder baseline or variant, if it profiled the pair",
            )
        return advice.of_run(load(given), str(path))
    if reports:
        from ncukit.api.reports import read
        from ncukit.render.timeline.beside import beside

        if range is not None and timeline is None:
            raise UsageError("a range is about a trace, and there is none", "add --timeline FILE")
        trace = None if timeline is None else beside(Path(timeline), range, export=export)
        return advice.of_launches(str(path), list(read(path).diagnoses()), trace, str(timeline or ""))
    try:
        found = _trace(given, export)
    except ReportFormatError:
        if given.suffix in (".sqlite", ".nsys-rep", ".qdrep", ".json", ".gz"):
            raise
        from ncukit.api.reports import read

        read(path)  # says better what is wrong with it
        raise
    from ncukit.trace.launch_choice import choose_launch
    from ncukit.trace.region import describe
    from ncukit.trace.scope import in_range, whole

    scope = whole(found) if range is None else in_range(found, range)
    described = describe(scope)
    try:
        choice = choose_launch(scope, timeline=described)
    except UsageError:
        choice = None
    return advice.of_trace(described, choice, str(path))


def given_is_report(path: Path) -> bool:
    """Return whether ``path`` is a report of ncu, by its name or how it begins."""
    if path.suffix in (".ncu-rep", ".ncu-repz", ".csv", ".nsight-cuprof-report"):
        return True
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return file.read(4) == b"NVR\0"
    except OSError:
        return False


def _trace(path: Path, export: Export | None) -> Trace:
    """Return the events of a trace of nsys or of torch's profiler."""
    from ncukit.trace.files import open_any_trace

    return open_any_trace(path, export)


# ---- Comparisons of reports, and the baselines that they are held against


def compare(
    base: PathLike | Iterable[PathLike] | Iterable[Kernel] | Report | Reports,
    *others: PathLike | Iterable[PathLike] | Iterable[Kernel] | Report | Reports,
    match: str | Iterable[str] = (),
    fail_on: str | Iterable[str] = (),
    options: CompareOptions | None = None,
) -> Comparison:
    """Compare ``base`` with ``others``: metrics side by side, what changed and why, what the gates say.

    A side is a report, several reports (repeats of one measurement), a folder of them, a run directory, the
    name of a baseline, or launches that were read already.  ``match`` and ``fail_on`` add to ``options``.

    Raises:
        UsageError: there is no other side, ``match`` names what is not there, or a gate is none.
        ReportError: a side cannot be used.

    >>> from ncukit.api import demo_reports
    >>> found = compare(demo_reports()[0], demo_reports()[0], fail_on=["dram_bytes > +5%"])
    >>> found.pairs[0].summary.trend, found.failed
    ('unchanged', False)
    """
    from dataclasses import replace

    from ncukit.comparison import compare as against
    from ncukit.comparison.gates import apply, parse
    from ncukit.comparison.options import CompareOptions

    found = options or CompareOptions()
    if not others:
        raise UsageError("there is nothing to compare with", "give a base and at least one other side")
    found = replace(found, match=(*found.match, *_each(match)))
    gates = [*found.gates, *(parse(text) for text in (*found.fail_on, *_each(fail_on)))]
    sides = _sides((base, *others), found)
    comparison = against(sides[0], sides[1:], steering=found.steering, elements=found.elements)
    return apply(
        comparison,
        gates,
        allow_unknown=found.allow_unknown,
        beyond_noise=found.beyond_noise,
        chosen=found.kernel is not None,
    )


def _each(words: str | Iterable[str]) -> tuple[str, ...]:
    return (words,) if isinstance(words, str) else tuple(words)


def _sides(everything: tuple[Any, ...], options: CompareOptions) -> list[Side]:
    """Return the sides, repeats together or apart.

    Beside a baseline, which holds repeats as one, they are one in the others as well; two launches of one
    report that ``match`` names by number are compared with each other, also where they are repeats.
    """
    from dataclasses import replace

    everything = tuple(list(what) if isinstance(what, Iterator) else what for what in everything)
    sides = [_side(what, options.choice, number) for number, what in enumerate(everything)]
    apart = options.choice.apart
    if apart and any(side.holds_repeats for side in sides):
        apart = False
    elif options.steering.by_number and any(sides[0].same_report(side) for side in sides[1:]):
        apart = True
    if apart == options.choice.apart:
        return sides
    choice = replace(options.choice, apart=apart)
    return [
        side if side.kind == "baseline" else _side(everything[number], choice, number)
        for number, side in enumerate(sides)
    ]


def _side(what: Any, choice: Choice, number: int) -> Side:
    from ncukit.comparison.baseline import read_side, side_of

    if isinstance(what, Report):
        what = what.path
    elif isinstance(what, Reports):
        what = what.paths
    elif not isinstance(what, str | os.PathLike):
        what = list(what)
        if any(isinstance(one, Kernel) for one in what):
            label = "base" if number == 0 else f"other {number}"
            return side_of((k for k in what if choice.keep(k)), label, apart=choice.apart)
    return read_side(what, choice)


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
    from ncukit.comparison import baseline
    from ncukit.comparison.options import CompareOptions

    place = baseline.FOLDER if folder is None else Path(folder)
    baseline.path_of(place, name)
    side = _side(what, CompareOptions(kernel=kernel, lines=False, baselines=place).choice, 0)
    created = strftime("%Y-%m-%dT%H:%M:%SZ", gmtime())
    return baseline.write(place, name, side, created=created, force=force)
