"""What traces of several ranks say together: collectives, who came late to them, and why.

Times are whole nanoseconds on the clock of the reference rank.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from ncukit.record import dataclass

Cause = Literal["compute", "copy", "host"]


@dataclass(frozen=True)
class Clock:
    """How the clock of a rank was set: ``offset`` [ns] is added to its times.

    It is the median difference of the ends of ``n`` collectives; nine of ten ends then agree within
    ``spread`` [ns].  ``offset`` is None where no collective links the rank to the others.
    """

    rank: int
    offset: int | None
    spread: int
    n: int


@dataclass(frozen=True)
class Arrival:
    """One rank at one collective [ns]: ``before`` is how its time since its last collective was spent."""

    rank: int
    start: int
    end: int
    wait: int
    """From its own start to that of the last rank."""
    before: Mapping[Cause, int]


@dataclass(frozen=True)
class Collective:
    """One collective of several ranks: ``late`` [ns] is by how much the ``last`` came after the usual other.

    ``transfer`` [ns] is from the last start to the last end: what was left when nobody waited any more.
    ``bytes`` is the message of the reference rank, None where the traces do not say.  ``why`` is the cause
    of which the last rank had most more than the others, None where the clocks cannot show that it was late.
    """

    name: str
    group: str
    number: int
    bytes: int | None
    arrivals: tuple[Arrival, ...]
    last: int
    late: int
    transfer: int
    why: Cause | None = None
    excess: Mapping[Cause, int] = field(default_factory=dict)

    @property
    def waited(self) -> int:
        """Sum over ranks of the time in which they waited for the last [ns]."""
        return sum(arrival.wait for arrival in self.arrivals)


@dataclass(frozen=True)
class CollectiveKind:
    """All collectives of one name and group [ns], over all ranks that took part."""

    name: str
    group: str
    ranks: int
    n: int
    matched: int
    median: float
    """Duration of one on one rank, waiting included."""
    transfer: float | None
    waited: int | None
    """None where no other rank was matched: nothing shows for whom it waited."""


@dataclass(frozen=True)
class RankTime:
    """Where the time of one rank went [ns].

    ``span`` = ``compute`` + ``exposed`` (communication while nothing computed) + ``copy`` (only copies) +
    ``empty``.  ``hidden`` is communication beside compute, part of ``compute``.  ``waiting`` is the part of
    its collectives in which some rank had not come yet, None where none was matched with another rank's.
    """

    rank: int
    file: str
    gpu: str | None
    span: int
    compute: int
    communication: int
    hidden: int
    exposed: int
    copy: int
    empty: int
    waiting: int | None


@dataclass(frozen=True)
class LateRank:
    """A rank that came last to ``times`` collectives of ``n``: made others wait ``caused`` [ns] in all.

    ``why`` names the cause with the largest excess, ``excess`` [ns] sums each of them over those collectives.
    """

    rank: int
    times: int
    n: int
    late: int
    caused: int
    why: Cause | None
    excess: Mapping[Cause, int]


@dataclass(frozen=True)
class Setting:
    """One fact about NCCL, and where it was found."""

    name: str
    value: str
    source: str
    note: str = ""


@dataclass(frozen=True)
class NcclLog:
    """What NCCL said with ``NCCL_DEBUG=INFO``."""

    path: str
    version: str | None
    settings: tuple[Setting, ...]
    transports: Mapping[str, int]
    warnings: tuple[str, ...]
    ranks: int | None


@dataclass(frozen=True)
class Ranks:
    """Traces of several ranks, put beside each other."""

    folder: str
    reference: int
    world_size: int | None
    ranks: tuple[RankTime, ...]
    clocks: tuple[Clock, ...]
    kinds: tuple[CollectiveKind, ...]
    collectives: tuple[Collective, ...]
    late: tuple[LateRank, ...]
    settings: tuple[Setting, ...] = ()
    transports: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def aligned(self) -> bool:
        """Whether the clocks of all ranks were set."""
        return all(clock.offset is not None for clock in self.clocks)
