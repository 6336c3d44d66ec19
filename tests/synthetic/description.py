"""How a launch is described to the model: code, shape, memory behaviour, limit, what its warps wait for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.synthetic.gpu import Gpu
from tests.synthetic.program import Path


@dataclass(frozen=True)
class Access:
    """What one request of a memory instruction touches.

    ``sectors`` of 32 byte in L1 or L2, ``wavefronts`` of the data stage; ``ideal``: what the bytes that the
    threads ask for would need.
    """

    sectors: int = 0
    ideal_sectors: int = 0
    wavefronts: int = 1
    ideal_wavefronts: int = 1


@dataclass(frozen=True)
class Limit:
    """The unit that limits the kernel, and the share of its peak [0..1] that it reaches over the duration.

    ``unit`` "latency": nothing is busy; ``cycles`` [cycle] pass between two instructions of a warp.
    """

    unit: str
    share: float = 0.0
    cycles: float = 0.0


@dataclass(frozen=True)
class Kernel:
    """A launch to be modelled."""

    file: str
    mangled: str
    demangled: str
    gpu: Gpu
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    registers: int
    limit: Limit
    stalls: Mapping[str, float]
    """State -> share of the cycles in which a warp neither issues nor could (scaled to what there is)."""
    trips: int = 1
    path: Path | None = None
    access: Mapping[str, Access] = field(default_factory=dict)
    """Pattern of SASS -> access; where none matches: 32 neighbouring words."""
    shared_static: int = 0
    shared_dynamic: int = 0
    l2_hit: float = 0.0
    """Share of the sectors that L1 reads from L2 and L2 holds."""
    write_back: float = 1.0
    """Share of the sectors written to L2 that reach device memory."""
    occupancy: float = 0.95
    """Achieved share of the theoretical occupancy."""
    active: float = 0.985
    """Share of the duration during which the busy SMs hold warps."""
    spread: float = 0.004
    """Relative difference between the busiest SM and the average one."""
    ranges: tuple[str, ...] = ()
