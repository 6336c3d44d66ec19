"""What a diagnosis knows about its launch beside findings and verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncukit.model.links import MemoryLinks
from ncukit.model.shares import Leaders, Shares
from ncukit.model.split import Split

if TYPE_CHECKING:
    from ncukit.model.occupancy import Occupancy, OccupancyCurve
    from ncukit.model.series import Series
    from ncukit.model.source import SourceView


class LaunchFacts:
    """Units, memory, occupancy, issue slots, counters over time and source of one launch.

    This class knows nothing: every part is empty.  `ncukit.diagnose.diagnose` gives a diagnosis facts that
    are judged when they are first asked for, and kept.
    """

    @property
    def shares(self) -> Shares:
        """How full every unit was."""
        return Shares({}, False, False)

    @property
    def leaders(self) -> Leaders | None:
        """The units that come first, as the verdict sees them; None where no unit was measured."""
        return None

    @property
    def links(self) -> MemoryLinks:
        """What moved between the units of the memory system."""
        return MemoryLinks(())

    @property
    def occupancy(self) -> Occupancy | None:
        """What limits the resident blocks, without curves; None when unknown."""
        return None

    @property
    def occupancy_curves(self) -> tuple[OccupancyCurve, ...]:
        """What other configurations would give."""
        return ()

    @property
    def occupancy_lacks(self) -> tuple[str, ...]:
        """What the report lacks to tell the occupancy, in words."""
        return ()

    @property
    def split(self) -> Split:
        """Where the issue slots went."""
        return Split(None, None, None, ())

    @property
    def series(self) -> tuple[Series, ...]:
        """Counters over the time of the launch."""
        return ()

    @property
    def source(self) -> SourceView | None:
        """What every instruction and line cost; None where nothing was counted by instruction."""
        return None
