"""Traces: where the time of a program went."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ncukit.api.reports import PathLike

if TYPE_CHECKING:
    from ncukit.model.timeline import Timeline


def timeline(path: PathLike, range: str | None = None) -> Timeline:
    """Return what the nsys trace at ``path`` (.nsys-rep, .qdrep or .sqlite) says about where the time went.

    ``range`` looks only at what was launched inside the NVTX range of that name.

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
    from ncukit.read.nsys import open_trace

    return analyse(open_trace(Path(path)), range)
