"""What a remedy would bring: the share of the time that it removes, and what the next unit leaves of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ncukit.judge.remedies.launch import Launch
from ncukit.record import dataclass

MOST = 100.0
"""A factor that is not exceeded: beyond, the formula says nothing about the kernel."""
NEGLIGIBLE = 1.05
"""Factor below which a gain is not worth an experiment."""


@dataclass(frozen=True)
class Candidate:
    """One proposable change of a launch.

    ``removes`` is the share of the time that can vanish at most (None: nothing tells); ``leaves`` the share
    that the next unit needs, which does not carry the same bytes.  ``rank`` breaks ties, cheap first.
    ``metric`` must fall (or rise, where ``rises``) to the factor ``to`` of its value, else the change failed.
    """

    remedy: str
    removes: float | None = None
    leaves: float = 0.0
    rank: int = 1
    metric: str = ""
    to: float = 0.8
    rises: bool = False

    @property
    def gain(self) -> float | None:
        """Factor of the kernel's time at most, by what is removed and by the next unit.

        >>> Candidate("coalesce", removes=0.9, leaves=0.4).gain
        2.5
        """
        if self.removes is None:
            return None
        return min(MOST, 1 / max(1 - min(self.removes, 1.0), self.leaves, 1 / MOST))

    @property
    def score(self) -> float:
        """Share of the time that goes away: what candidates are ranked by."""
        return 0.0 if self.gain is None else 1 - 1 / self.gain


Rule = Callable[[Launch], Iterator[Candidate]]
