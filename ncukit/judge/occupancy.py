"""How many blocks and warps fit, what other shapes would give, how rounds of blocks fill the SMs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property, lru_cache

from ncukit.judge.facts import Facts
from ncukit.model import Kernel
from ncukit.model.shares import Axis, Limit, Occupancy, OccupancyCurve, OccupancyPoint, Resource
from ncukit.record import dataclass

# ---- How busy the SMs would be if all blocks took equally long: what a partial last wave can explain

AGREE = 3.0
"""[points] Measured and expected activity this close agree."""

WHOLE = 0.01
"""Part of a wave that is none: a grid that fits exactly."""


@dataclass(frozen=True)
class Waves:
    """A grid of at least one wave: its ``whole`` waves, and the ``leftover`` blocks of the last one.

    ``in_waves`` [%] is the activity of a mean SM where a wave ends together, whatever its size; ``in_rounds``
    [%] where an SM takes as long as it has blocks.  Real kernels are between the two.
    """

    whole: int
    leftover: int
    sms: int
    in_waves: float
    in_rounds: float

    @property
    def partial(self) -> bool:
        """Whether the last wave leaves SMs empty: it has blocks, and fewer of them than there are SMs."""
        return 0 < self.leftover < self.sms

    @property
    def least(self) -> float:
        """The lowest activity [%] that equal blocks explain."""
        return min(self.in_waves, self.in_rounds)

    def explain(self, active: float) -> bool:
        """Return whether the partial last wave explains that a mean SM is ``active`` [%] of the time."""
        return self.partial and self.least - AGREE <= active <= max(self.in_waves, self.in_rounds) + AGREE


def waves(f: Facts) -> Waves | None:
    """Return the waves of a launch; None where they are unknown, or the grid is less than one."""
    count, grid, sms = (f.number(id) for id in ("waves_per_sm", "grid_size", "usable_sm_count"))
    if count is None or not grid or not sms or count < 1:
        return None
    whole = int(count + WHOLE)
    leftover = max(0, round((count - whole) * grid / count))
    rounds = grid / sms
    return Waves(
        whole,
        leftover,
        round(sms),
        100 * (whole + min(1.0, leftover / sms)) / (whole + bool(leftover)),
        100 * rounds / math.ceil(rounds - WHOLE),
    )


# ---- Occupancy from its limits, and what another configuration would give: `occupancy`
# Rules of the hardware (CUDA C++ Programming Guide, occupancy calculator), the same since CC 3.0: registers
# are given to warps in units of 256 and come from a quarter of the register file each; shared memory is
# given to blocks in units of 128 byte from CC 8.0 on, 256 before, plus what the driver reserves.

WARP = 32
QUARTERS = 4
REGISTER_UNIT = 256
"""[register] given to a warp at a time."""

FEWEST_REGISTERS = 16
"""Registers a thread below which nothing changes."""

SHARED_UNITS = ((80, 128), (0, 256))
"""(compute capability x 10 from which it holds, unit [byte])."""

DIGITS = 6
"""Digits of warps that are more than what adding up schedulers leaves: 32 is not 31.999999999999993."""

NEEDED = {
    "block_size": "the block size",
    "registers_per_thread": "the registers a thread uses",
    "max_registers_per_sm": "the size of the register file",
    "max_warps_per_sm": "how many warps an SM holds",
    "max_blocks_per_sm": "how many blocks an SM holds",
}


@dataclass(frozen=True)
class Configuration:
    """A launch configuration on one device; sizes in [byte], ``shared`` as the program asks for it."""

    cc: int
    threads: int
    registers: int
    shared: int
    reserved: int
    carve_out: int
    largest: int
    register_file: int
    max_warps: int
    max_blocks: int
    barriers: int | None

    @property
    def warps_per_block(self) -> int:
        """Warps of one block: a started one counts whole."""
        return -(-self.threads // WARP)

    @cached_property
    def allocated(self) -> int:
        """Shared memory that one block takes [byte]."""
        return self._allocated(self.shared)

    @cached_property
    def shared_unit(self) -> int:
        """Shared memory is given out in multiples of this [byte]."""
        return next(size for cc, size in SHARED_UNITS if self.cc >= cc)

    def limits(self) -> dict[Resource, int]:
        """Return the blocks an SM can hold by each resource."""
        found: dict[Resource, int] = {
            "blocks": self.max_blocks,
            "registers": self._by_registers(self.registers),
            "shared_mem": self._by_shared(self.shared),
            "warps": self.max_warps // self.warps_per_block,
        }
        return found if self.barriers is None else {**found, "barriers": self.barriers}

    def point(self, x: int) -> OccupancyPoint:
        """Return the resident warps of this configuration, as a point at ``x``."""
        return self._point(x, self.limits())

    def along(self, axis: Axis, over: range) -> list[OccupancyPoint]:
        """Return points of configurations that differ in ``axis``: the ends and where its limit changes."""
        if axis == "block_size":
            return [replace(self, threads=x).point(x) for x in over]
        by, limits = self._by_registers if axis == "registers" else self._by_shared, self.limits()
        blocks = [by(x) for x in over]
        rows = zip(over, blocks, [-1, *blocks], [*blocks[1:], -1], strict=False)
        ends = ((x, now) for x, now, before, after in rows if now not in (before, after) or before != after)
        return [self._point(x, {**limits, axis: now}) for x, now in ends]

    def _point(self, x: int, limits: Mapping[Resource, int]) -> OccupancyPoint:
        blocks = min(limits.values())
        binds = tuple(resource for resource, limit in limits.items() if limit == blocks)
        return OccupancyPoint(x, blocks * self.warps_per_block, binds)

    def _by_registers(self, registers: int) -> int:
        if not registers:
            return self.max_blocks
        per_warp = -(-registers * WARP // REGISTER_UNIT) * REGISTER_UNIT
        return self.register_file // QUARTERS // per_warp * QUARTERS // self.warps_per_block

    def _by_shared(self, shared: int) -> int:
        allocated = self._allocated(shared)
        if not allocated:
            return self.max_blocks
        room = self.carve_out if allocated <= self.carve_out else self.largest
        return room // allocated

    def _allocated(self, shared: int) -> int:
        return -(-(shared + self.reserved) // self.shared_unit) * self.shared_unit


def occupancy(kernel: Kernel, *, curves: bool = True) -> Occupancy | None:
    """Return what limits the resident blocks of ``kernel`` and what would change it; None when unknown.

    The ``curves`` are for a page: they try every register count, block size and shared-memory size.
    """
    here = configuration(kernel)
    if here is None or not min(here.limits().values()):
        return None
    limits = here.limits()
    blocks = min(limits.values())
    largest = replace(here, carve_out=here.largest)
    launched = kernel.number("launched_warps_per_scheduler")
    return Occupancy(
        tuple(_limit(here, resource, blocks) for resource in limits),
        blocks,
        here.warps_per_block,
        blocks * here.warps_per_block,
        here.max_warps,
        _curves(kernel, here) if curves else (),
        carve_out=here.carve_out or None,
        largest_carve_out=here.largest or None,
        blocks_at_largest=min(largest.limits().values()),
        cap=None if launched is None else round(QUARTERS * launched, DIGITS),
    )


def missing_for_occupancy(kernel: Kernel) -> list[str]:
    """Return in words what `occupancy` lacks of this launch."""
    return [words for id, words in NEEDED.items() if not kernel.number(id)]


def configuration(kernel: Kernel) -> Configuration | None:
    """Return how ``kernel`` was launched, or None when the report does not say enough."""
    if missing_for_occupancy(kernel):
        return None
    cc, shared = (_whole(kernel, id) for id in ("compute_capability", "shared_mem_static"))
    found = Configuration(
        cc=cc,
        threads=_whole(kernel, "block_size"),
        registers=_whole(kernel, "registers_per_thread"),
        shared=shared + _whole(kernel, "shared_mem_dynamic"),
        reserved=_whole(kernel, "reserved_shared_mem"),
        carve_out=_whole(kernel, "shared_mem_config"),
        largest=_whole(kernel, "max_shared_mem_per_sm"),
        register_file=_whole(kernel, "max_registers_per_sm"),
        max_warps=_whole(kernel, "max_warps_per_sm"),
        max_blocks=_whole(kernel, "max_blocks_per_sm"),
        barriers=None if (n := kernel.number("occupancy_limit_barriers")) is None else int(n),
    )
    return replace(found, carve_out=_room(found, kernel.number("occupancy_limit_shared_mem")))


def _room(here: Configuration, reported: float | None) -> int:
    """Return the shared memory [byte] that the report counts with: early ncu took the largest carve-out."""
    if not here.carve_out:
        return here.largest
    if not here.allocated or reported is None or not here.largest:
        return here.carve_out
    by_largest, by_used = here.largest // here.allocated, here.carve_out // here.allocated
    return here.largest if by_largest == reported != by_used else here.carve_out


def _whole(kernel: Kernel, id: str) -> int:
    return int(kernel.number(id) or 0)


def _limit(here: Configuration, resource: Resource, blocks: int) -> Limit:
    allowed = here.limits()[resource]
    per_block, available, unit = {
        "registers": (_register_use(here), here.register_file, "register"),
        "shared_mem": (here.allocated, here.carve_out, "byte"),
        "warps": (here.warps_per_block, here.max_warps, "warp"),
        "blocks": (1, here.max_blocks, "block"),
        "barriers": (None, None, ""),
    }[resource]
    return Limit(
        resource,
        allowed,
        allowed == blocks,
        per_block,
        available or None,
        unit,
        _next(here, resource, allowed),
    )


def _register_use(here: Configuration) -> int:
    return -(-here.registers * WARP // REGISTER_UNIT) * REGISTER_UNIT * here.warps_per_block


def _next(here: Configuration, resource: Resource, allowed: int) -> int | None:
    """Return the most a block may use for one more to fit, by this resource alone."""
    if resource == "shared_mem":
        unit = here.shared_unit
        fits = here.carve_out // (allowed + 1) // unit * unit - here.reserved
        return fits if 0 <= fits < here.shared else None
    if resource == "registers":
        each = (replace(here, registers=n) for n in range(here.registers - 1, FEWEST_REGISTERS - 1, -1))
        return next((c.registers for c in each if c.limits()[resource] > allowed), None)
    if resource == "warps":
        each = (replace(here, threads=n * WARP) for n in range(here.warps_per_block - 1, 0, -1))
        return next((c.threads for c in each if c.limits()[resource] > allowed), None)
    return None


def _curves(kernel: Kernel, here: Configuration) -> tuple[OccupancyCurve, ...]:
    return _swept(
        here,
        _whole(kernel, "max_registers_per_thread") or 255,
        _whole(kernel, "max_threads_per_block") or 1024,
        _whole(kernel, "max_shared_mem_per_block") or here.largest,
    )


@lru_cache(maxsize=128)
def _swept(
    here: Configuration, most_registers: int, most_threads: int, most_shared: int
) -> tuple[OccupancyCurve, ...]:
    """Return the curves of one configuration: launches of one report share few."""
    registers = range(FEWEST_REGISTERS, most_registers + 1)
    threads = range(WARP, most_threads + 1, WARP)
    shared = range(0, max(0, min(most_shared, here.largest - here.reserved)) + 1, here.shared_unit)
    beyond = ""
    if here.carve_out < here.largest:
        beyond = "Up to the carve-out of this run; beyond it, with the largest one the SM can be given."
    return tuple(
        curve
        for curve in (
            _curve("registers", "register/thread", here.registers, registers, here),
            _curve("block_size", "thread", here.threads, threads, here),
            _curve("shared_mem", "byte", here.shared, shared, here, beyond) if here.largest else None,
        )
        if curve is not None
    )


def _curve(
    axis: Axis, unit: str, at: int, over: range, here: Configuration, note: str = ""
) -> OccupancyCurve | None:
    every = here.along(axis, over)
    if not every:
        return None
    now = here.point(at)
    steps = [p for i, p in enumerate(every) if i == 0 or (p.warps, p.binds) != _state(every[i - 1])]
    if steps[-1] is not every[-1]:
        steps.append(every[-1])
    return OccupancyCurve(
        axis,
        unit,
        now,
        tuple(steps),
        better=_nearest(every, at, lambda p: p.warps > now.warps),
        worse=_nearest(every, at, lambda p: 0 < p.warps < now.warps),
        note=note,
    )


def _state(point: OccupancyPoint) -> tuple[int, tuple[Resource, ...]]:
    return point.warps, point.binds


def _nearest(
    points: list[OccupancyPoint], at: int, fits: Callable[[OccupancyPoint], bool]
) -> OccupancyPoint | None:
    found = [p for p in points if fits(p)]
    return min(found, key=lambda p: (abs(p.x - at), -p.warps), default=None)
