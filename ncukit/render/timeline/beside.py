"""A trace beside a report: read once, shown in the page or the words of every launch of the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path, PurePath
from typing import Any

from ncukit.media import argument
from ncukit.model import Kernel
from ncukit.model.trace import Match, Timeline
from ncukit.record import dataclass
from ncukit.render.commands import quoted
from ncukit.render.line import Line, code, line
from ncukit.render.timeline.strip import strip
from ncukit.trace.files import open_any_trace, sha256_of
from ncukit.trace.launch_choice import Matcher
from ncukit.trace.nsys import Export
from ncukit.trace.region import describe
from ncukit.trace.scope import Scope, in_range, whole

ITEMS = 1200
"""Items of the strip in the page of a report, which holds much else."""


@dataclass(frozen=True, eq=False)
class Beside:
    """A trace, the region of it that is looked at, and what it says."""

    path: Path
    scope: Scope
    timeline: Timeline
    matcher: Matcher

    def lanes(self, *matches: Match | None) -> Mapping[str, Any] | None:
        """Return the strip; the part in full is around the first launch that matches."""
        device = self.timeline.main_device
        first = next((m for m in matches if m is not None), None)
        shapes = () if first is None else (first.shape,) if first.shape else first.kernel.shapes
        around = shapes[0].first if shapes else None
        return None if device is None else strip(self.scope, device, around=around, items=ITEMS)

    def find(self, kernels: Sequence[Kernel]) -> list[Match | None]:
        """Return the traced kernel of each launch, None for one that the trace does not hold."""
        return [self.matcher.find(kernel) for kernel in kernels]

    @property
    def command(self) -> str:
        """The command that shows the whole timeline."""
        named = f" --range {argument(self.timeline.range, 'RANGE')}" if self.timeline.range else ""
        return f"ncukit timeline {quoted(str(self.path))}{named}"

    def provenance(self) -> Line:
        """Return where the timeline comes from, for the provenance of the page."""
        file, named = self.timeline.file, self.timeline.range
        by = "written by torch's profiler"
        if file.format != "torch":
            by = f"exported by nsys {file.tool or 'of unknown version'}"
        return line(
            code(PurePath(file.path).name),
            f", {file.size:,} bytes, {by}, sha256 ",
            code(self._sha256),
            f", range {named}." if named else ".",
        )

    @cached_property
    def _sha256(self) -> str:
        return sha256_of(self.path)


def beside(
    path: str | Path, range: str | None = None, *, export: Export | None = None, force: bool = False
) -> Beside:
    """Read the trace at ``path`` and judge it, or only the NVTX range ``range`` of it.

    Raises:
        ReportError: the trace cannot be used, or nothing ran on a GPU in it.
        ToolError: a .nsys-rep cannot be exported.
        UsageError: there is no such range, or nothing was launched in it.
    """
    trace = open_any_trace(path, export, force=force)
    scope = whole(trace) if range is None else in_range(trace, range)
    timeline = describe(scope)
    return Beside(Path(path), scope, timeline, Matcher(timeline))
