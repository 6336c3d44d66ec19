"""Which launch of a run's trace ncu is to measure, and whether its filter lets that through first."""

from __future__ import annotations

from ncukit.diagnose.timeline.choice import Request, choose_launch
from ncukit.diagnose.timeline.kernels import CONFIGURATION, launch_order
from ncukit.diagnose.timeline.scope import Scope, in_range, whole
from ncukit.errors import UsageError
from ncukit.model.run import Chosen
from ncukit.model.timeline import Launch
from ncukit.model.trace import UNKNOWN, Trace
from ncukit.workload.marks import RANGE


def launch_for_ncu(
    trace: Trace, pattern: str | None = None, allow_collective: bool = False, range: str | None = None
) -> Chosen:
    """Return the launch of ``trace`` that deserves ncu: in the NVTX range ``range``, else in the marked one.

    Launches are counted within that region only.

    Raises:
        UsageError: no launch can be chosen; the hint names the nearest.
    """
    scope, marked = region(trace, range)
    choice = choose_launch(scope, Request(pattern, allow_collective, count_in_range=True))
    fits = first_fits(scope, choice.launch, by_function="function" in choice.selection)
    return Chosen(choice, fits, marked, len(trace.kernels))


def region(trace: Trace, range: str | None = None) -> tuple[Scope, str | None]:
    """Return the region of a run's trace and its name: ``range``, else the marked one, else all of the trace.

    Raises:
        UsageError: there is no range ``range``, or nothing was launched in it.
    """
    if range is not None:
        return in_range(trace, range), range
    if RANGE in trace.names:
        try:
            return in_range(trace, RANGE), RANGE
        except UsageError:  # the mark is there, but launches cannot be attributed to it
            pass
    return whole(trace), None


def first_fits(scope: Scope, launch: Launch, *, by_function: bool) -> bool:
    """Return whether the first launch of that name has the configuration of ``launch``.

    Then nothing has to be skipped to reach such a launch, however ncu counts.
    """
    import numpy as np

    rows, ordered = scope.rows("kernels"), launch_order(scope)
    column, name = ("short", launch.short) if by_function else ("name", launch.name)
    ids = [i for i, text in enumerate(scope.trace.names) if text == name] or [UNKNOWN]
    same = np.flatnonzero(np.isin(rows[column], ids) & (rows["process"] == launch.process))
    if not len(same):
        return False
    first = int(same[np.lexsort((rows["start"][same], ordered[same]))[0]])
    wanted = (*launch.grid, *launch.block, launch.registers, launch.static_shared, launch.dynamic_shared)
    return tuple(int(rows[name][first]) for name in CONFIGURATION) == wanted
