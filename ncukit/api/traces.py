"""Traces: where the time of a program went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncukit.api.reports import PathLike

if TYPE_CHECKING:
    from ncukit.model.timeline import Timeline


def timeline(path: PathLike, range: str | None = None) -> Timeline:
    """Return what the trace at ``path`` says about where the time went.

    It is one of nsys (.nsys-rep, .qdrep, .sqlite) or of torch's profiler (.json, .json.gz).  ``range`` looks
    only at what was launched inside the NVTX range, or torch's annotation, of that name.

    Raises:
        ReportError: the trace cannot be used, or nothing ran on a GPU in it.
        ToolError: a .nsys-rep cannot be exported: nsys is missing, too old, or failed.
        UsageError: there is no such range, or nothing was launched in it.

    >>> from ncukit.api import demo_traces
    >>> found = timeline(demo_traces()[0])
    >>> found.region.cls, len(found.kernels)
    ('transfer-bound', 3)
    """
    from ncukit.diagnose.timeline import analyse
    from ncukit.read.traces import open_any_trace

    return analyse(open_any_trace(path), range)
