"""How full each unit of the GPU was, and which comes first: `ncukit.diagnose.shares.measure` makes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncukit.record import dataclass

if TYPE_CHECKING:
    from ncukit.catalog.units import Unit

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
        return sorted((s for s in self.units.values() if s.unit.cls), key=lambda s: -s.fullness)

    @property
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
