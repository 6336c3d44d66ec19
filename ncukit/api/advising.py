"""Where to look next, and when to stop."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ncukit.api.reports import PathLike

if TYPE_CHECKING:
    from ncukit.model.advice import Advice
    from ncukit.model.trace import Trace
    from ncukit.read.nsys import Export


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
    from ncukit.diagnose.timeline import choose_launch, describe, in_range, whole

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
    from ncukit.read.traces import open_any_trace

    return open_any_trace(path, export)
