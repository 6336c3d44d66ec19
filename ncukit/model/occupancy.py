"""What occupancy a launch allows, what limits it, and what a change of its configuration would give.

`ncukit.diagnose.occupancy.occupancy` makes an `Occupancy` from device attributes and the launch.
"""

from __future__ import annotations

from typing import Literal

from ncukit.record import dataclass

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
