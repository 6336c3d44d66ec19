"""Values over the time of a launch, as PM sampling records them."""

from __future__ import annotations

from ncukit.record import dataclass


@dataclass(frozen=True)
class Series:
    """One counter sampled at intervals: ``times`` [s] from its first sample, ``values`` [``unit``].

    ``raw`` is the counter's name in the report, ``label`` says what it is.  Sampling happens in passes of its
    own, so series are never compared number by number with counters of the launch.
    """

    id: str
    label: str
    unit: str
    raw: str
    times: tuple[float, ...]
    values: tuple[float, ...]
