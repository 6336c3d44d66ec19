"""The facts about a launch that its diagnosis keeps: each is judged when first asked for, once."""

from __future__ import annotations

import weakref
from collections import deque
from functools import cached_property
from typing import TYPE_CHECKING

from ncukit.diagnose.facts import Facts
from ncukit.model.facts import LaunchFacts

if TYPE_CHECKING:
    from ncukit.model import Kernel
    from ncukit.model.links import MemoryLinks
    from ncukit.model.occupancy import Occupancy, OccupancyCurve
    from ncukit.model.series import Series
    from ncukit.model.shares import Leaders, Shares
    from ncukit.model.source import SourceView
    from ncukit.model.split import Split

KEPT = 8
"""Launches, the last judged, that keep their source view: one of a large kernel takes megabytes."""

_with_view: deque[weakref.ref[Facts]] = deque()


class FactsOnDemand(LaunchFacts):
    """The facts about ``kernel``; ``facts`` are those that its diagnosis was made from, if there are any."""

    def __init__(self, kernel: Kernel, facts: Facts | None = None) -> None:
        self._kernel = kernel
        if facts is not None:
            self._facts = facts

    def __reduce__(self) -> tuple[object, ...]:
        """Go to another process as the kernel alone."""
        return FactsOnDemand, (self._kernel,)

    @cached_property
    def _facts(self) -> Facts:
        return Facts.of(self._kernel)

    @property
    def shares(self) -> Shares:
        """How full every unit was."""
        return self._facts.shares

    @cached_property
    def leaders(self) -> Leaders | None:
        """The units that come first, as the verdict sees them; None where no unit was measured."""
        from ncukit.diagnose.leaders import leaders

        return leaders(self._facts)

    @cached_property
    def links(self) -> MemoryLinks:
        """What moved between the units of the memory system."""
        from ncukit.diagnose.links import memory_links

        return memory_links(self._facts)

    @cached_property
    def occupancy(self) -> Occupancy | None:
        """What limits the resident blocks, without curves; None when unknown."""
        from ncukit.diagnose.occupancy import occupancy

        return occupancy(self._kernel, curves=False)

    @cached_property
    def occupancy_curves(self) -> tuple[OccupancyCurve, ...]:
        """What other configurations would give."""
        from ncukit.diagnose.occupancy import occupancy

        found = occupancy(self._kernel)
        return () if found is None else found.curves

    @property
    def occupancy_lacks(self) -> tuple[str, ...]:
        """What the report lacks to tell the occupancy, in words."""
        from ncukit.diagnose.occupancy import missing

        return tuple(missing(self._kernel))

    @cached_property
    def split(self) -> Split:
        """Where the issue slots went."""
        from ncukit.diagnose.split import split

        return split(self._facts)

    @cached_property
    def series(self) -> tuple[Series, ...]:
        """Counters over the time of the launch."""
        if not self._kernel.raw.series:  # most reports
            return ()
        from ncukit.diagnose.series import series

        return series(self._kernel)

    @property
    def source(self) -> SourceView | None:
        """What every instruction and line cost; None where nothing was counted by instruction."""
        return self._facts.source


def keep_view(facts: Facts) -> None:
    """Let the last launches alone keep their source view, ``facts`` among them."""
    if facts.source is None:
        return
    _with_view.append(weakref.ref(facts))
    if len(_with_view) > KEPT and (oldest := _with_view.popleft()()) is not None:
        oldest.__dict__.pop("source", None)
