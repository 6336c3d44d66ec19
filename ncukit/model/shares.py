"""Facts about one launch: units, issue slots, occupancy, memory links, place on the roofline."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Literal

from ncukit.model.kernel import Quality, Value
from ncukit.model.notebook import Shown
from ncukit.record import dataclass

if TYPE_CHECKING:
    from ncukit.metrics.catalog import Unit


# ---- How full each unit of the GPU was, and which comes first: `ncukit.judge.shares.measure` makes it

TENSOR_TYPES = ("fp16", "bf16", "tf32", "fp8", "fp4", "int8", "fp64")
HALF_READ = 1.6
"""Operations over use of the tensor pipe, both in percent, from which the pipe's counter reads about half."""

NAMED = 2
"""Units named that the work of the first fills as well."""


@dataclass(frozen=True)
class Share:
    """One unit: ``percent`` of peak as it is judged, ``elapsed`` [%] of the whole time, and what says so.

    ``metric`` and ``value`` are the quoted evidence; ``name`` says which part of the unit leads.  A share
    that is not ``resolved`` is a maximum over several parts, and which of them was not collected.
    """

    unit: Unit
    percent: float
    elapsed: float
    metric: str
    value: float
    name: str
    resolved: bool = True

    @property
    def fullness(self) -> float:
        """Share of what the best kernels get out of this unit [%]."""
        return 100 * self.percent / self.unit.reach

    @property
    def full(self) -> bool:
        """Whether the unit counts as full."""
        return self.percent >= self.unit.full


@dataclass(frozen=True)
class Shares:
    """All units that the report speaks of; ``sm_side`` and ``memory_side`` say whether a side is covered."""

    units: dict[str, Share]
    sm_side: bool
    memory_side: bool

    def get(self, unit: str) -> float | None:
        """Return how full ``unit`` was [%], or None when the report does not say."""
        share = self.units.get(unit)
        return None if share is None else share.percent

    def ranked(self) -> list[Share]:
        """Return the units that can limit a kernel, fullest first; at a tie the one that is named first."""
        return list(self._ranked)

    @functools.cached_property
    def _ranked(self) -> tuple[Share, ...]:
        return tuple(sorted((s for s in self.units.values() if s.unit.cls), key=lambda s: -s.fullness))

    @functools.cached_property
    def top(self) -> float:
        """Share of the busiest unit [%]; 0 when no unit was measured."""
        return max((s.percent for s in self.units.values() if s.unit.cls), default=0.0)


@dataclass(frozen=True)
class Leaders:
    """The ``first`` unit, the ``next`` one, and what of more than the next is filled by the first's work.

    ``limits`` says that the verdict names the first as the limit; else it only is the busiest.
    """

    first: Share
    next: Share | None
    alongside: tuple[Share, ...]
    limits: bool

    @property
    def which(self) -> str:
        """In words which unit the next one is."""
        if not self.alongside:
            return "the next unit"
        names = " and ".join(share.name for share in self.alongside[:NAMED])
        return f"the next unit beside {names}, which the same work fills"


# ---- Where the issue slots of a launch went, top down: used or empty, empty by cause, cause by resource
#  `ncukit.judge.memory_flow.split` makes it.  Shares [%] of one level add up; a level that was not measured
# is empty and ``missing`` says why.

ISSUE_GUARD = 0.8
"""[warp/cycle] Issue rate from which stalls cost nothing: a warp is nearly always ready (ncu's rule)."""

DISAGREE = 25.0
"""[%] Total variation from which counters and samples saw different executions (median: 2.3)."""


@dataclass(frozen=True)
class Ceiling:
    """A resource that a stall category points to, and how near it was to its ceiling [% of peak]."""

    unit: str
    label: str
    percent: float
    full: bool
    metric: str


@dataclass(frozen=True)
class Part:
    """One category of stalls: ``share`` [%] of the warp latency, by state, with the resources behind it."""

    category: str
    plain: str
    share: float
    slots: float | None
    """The same, scaled to the empty issue slots [% of all slots]."""
    states: tuple[tuple[str, float], ...]
    ceilings: tuple[Ceiling, ...]
    points_to: str


@dataclass(frozen=True)
class Split:
    """The top-down account of one launch."""

    idle: Value | None
    """Share [%] of the elapsed time in which a mean SM had no work."""
    issued: Value | None
    """Share [%] of the issue slots of working SMs that issued."""
    source: Literal["counters", "samples"] | None
    parts: tuple[Part, ...]
    agreement: float | None = None
    """How far counters and samples differ [%, total variation], where both were collected."""
    missing: tuple[str, ...] = ()


# ---- What occupancy a launch allows, what limits it, and what a change of its configuration would give
#  `ncukit.judge.occupancy.occupancy` makes an `Occupancy` from device attributes and the launch.

Resource = Literal["registers", "shared_mem", "warps", "blocks", "barriers"]
Axis = Literal["registers", "block_size", "shared_mem"]


@dataclass(frozen=True)
class Limit:
    """How many blocks [block/SM] one resource allows, and how much of it a block takes.

    ``binds``: no other allows fewer.  A block takes ``per_block`` of ``available`` [``unit`` per SM];
    ``next_at`` is the largest amount a block may take for one more to fit, None where no amount helps.
    """

    resource: Resource
    blocks: int
    binds: bool
    per_block: float | None = None
    available: float | None = None
    unit: str = ""
    next_at: float | None = None


@dataclass(frozen=True)
class OccupancyPoint:
    """Resident warps [warp/SM] at ``x``, and which limits set them."""

    x: int
    warps: int
    binds: tuple[Resource, ...]


@dataclass(frozen=True)
class OccupancyCurve:
    """Warps over registers a thread, threads a block or shared memory [byte] a block, all else as launched.

    ``here`` is this launch; ``better`` the nearest x with more warps, ``worse`` the nearest with fewer,
    None where there is none.  ``note`` is a sentence on what the curve assumes.
    """

    axis: Axis
    unit: str
    here: OccupancyPoint
    points: tuple[OccupancyPoint, ...]
    better: OccupancyPoint | None = None
    worse: OccupancyPoint | None = None
    note: str = ""


@dataclass(frozen=True)
class Occupancy:
    """Theoretical occupancy from its limits: ``blocks`` [block/SM] of ``warps_per_block``.

    ``warps`` of ``max_warps`` [warp/SM].  ``cap`` [warp/SM] is what grid and SM count leave when the grid is
    smaller than what fits.  ``carve_out`` [byte] is the shared memory of the SM as configured in the run,
    ``largest_carve_out`` the most it can be.
    """

    limits: tuple[Limit, ...]
    blocks: int
    warps_per_block: int
    warps: int
    max_warps: int
    curves: tuple[OccupancyCurve, ...]
    carve_out: int | None = None
    largest_carve_out: int | None = None
    blocks_at_largest: int | None = None
    """Blocks an SM would hold with the largest carve-out."""
    cap: float | None = None
    missing: tuple[str, ...] = ()

    @property
    def percent(self) -> float:
        """Theoretical occupancy [%]."""
        return 100 * self.warps / self.max_warps


# ---- What moved between the units of the memory system: the data of the memory chart
#  `ncukit.judge.memory_flow.memory_links` makes them from a kernel.  Each number is a `Value` with its
# source and quality, or unknown with the reason; a link without traffic has bytes 0 and stays in the list.

Box = Literal["kernel", "l1", "shared", "l2", "dram", "sysmem", "peer"]


@dataclass(frozen=True)
class Link:
    """Traffic one way: ``source`` -> ``target``; reads go towards the kernel.

    ``bytes`` [byte]; ``count`` is what the link counts beside bytes (instructions, requests); ``share`` [%]
    is that of this link's own peak; ``what`` says what the bytes are ("global loads").
    """

    id: str
    source: Box
    target: Box
    what: str
    bytes: Value
    count: Value | None = None
    share: Value | None = None

    @property
    def used(self) -> bool | None:
        """Whether anything moved; None when unknown."""
        known = [v.value for v in (self.bytes, self.count) if v is not None and v.value is not None]
        return any(known) if known else None


@dataclass(frozen=True)
class MemoryLinks:
    """All links, hit rates [%] by box, and which boxes the limit of the launch lies in."""

    links: tuple[Link, ...]
    hit_rates: Mapping[Box, Value] = field(default_factory=dict)
    busy: Mapping[Box, Value] = field(default_factory=dict)
    """How busy each box itself was [% of peak]."""
    hot: Box | None = None
    notes: tuple[str, ...] = ()


# ---- Where a launch lies on the roofline

TOLERANCE = 1.02
"""A rate may lie this factor above its roof before something must be wrong: rounding of clocks and times."""


@dataclass(frozen=True)
class Point:
    """Work of one precision against the traffic of one memory level.

    ``flop`` [FLOP, OP or inst], ``bytes`` [byte], ``intensity`` [per byte], ``achieved``, ``attainable`` and
    ``peak`` [per second], ``bandwidth`` [byte/s].  What is unknown is None; nothing is clipped.
    """

    precision: str
    level: str
    flop: float
    bytes: float | None
    intensity: float | None
    achieved: float | None
    attainable: float | None
    peak: float | None
    bandwidth: float | None
    quality: Quality
    sources: tuple[str, ...] = ()
    roof_quality: Quality | None = None
    """Quality of peak and bandwidth; ``quality`` is that of work and traffic."""

    @property
    def share(self) -> float | None:
        """Achieved share of the attainable rate [%]."""
        if self.achieved is None or not self.attainable:
            return None
        return 100 * self.achieved / self.attainable


@dataclass(frozen=True)
class Roof:
    """One ceiling: ``kind`` "compute" [per second] or "bandwidth" [byte/s], at the clocks of the run."""

    kind: str
    name: str
    value: float
    quality: Quality
    note: str = ""
    nominal: bool = False
    """Whether it stands at the advertised clock, because that of the run is noise."""


@dataclass(frozen=True)
class Check:
    """One consistency check: ``ok`` None when it could not be made."""

    id: str
    ok: bool | None
    message: str


@dataclass(frozen=True)
class Roofline(Shown):
    """Points, the ceilings they are judged by, and the checks on both."""

    points: tuple[Point, ...] = ()
    roofs: tuple[Roof, ...] = ()
    checks: tuple[Check, ...] = ()
    missing: tuple[str, ...] = ()
    """Sentences that say which points or roofs could not be drawn, and why."""
    measured: tuple[Roof, ...] = ()
    """Ceilings that a copy or a matrix product reached on this GPU; no point is judged by them."""
