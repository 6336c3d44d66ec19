"""What steps and rules ask of one launch: numbers, unit shares, stall states."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from ncukit.diagnose.shares import measure
from ncukit.diagnose.waits import Waits, waits
from ncukit.model import Kernel
from ncukit.model.shares import Shares
from ncukit.record import dataclass

if TYPE_CHECKING:
    from ncukit.model.source import HotLine, SourceView

TINY = 5e-6
"""[s] A launch this short measures launch latency and nothing else."""

SHORT = 15e-6
"""[s] Up to here ramp-up and drain are a visible part of the launch."""

STEADY = 20e-6
"""[s] From here on a rate is that of the kernel, not of its start and end."""


@dataclass(frozen=True)
class Facts:
    """One launch as the diagnosis sees it; unreliable values are unknown here."""

    kernel: Kernel
    shares: Shares
    waits: Waits | None

    @classmethod
    def of(cls, kernel: Kernel) -> Facts:
        """Return the facts about ``kernel``."""
        return cls(kernel, measure(kernel), waits(kernel))

    def number(self, id: str) -> float | None:
        """Return metric or signal ``id`` as a number that may be used, else None."""
        return self.kernel.number(id)

    def at_least(self, id: str, limit: float) -> bool:
        """Return whether ``id`` is known and at least ``limit``."""
        value = self.kernel.number(id)
        return value is not None and value >= limit

    def below(self, id: str, limit: float) -> bool:
        """Return whether ``id`` is known and below ``limit``."""
        value = self.kernel.number(id)
        return value is not None and value < limit

    @functools.cached_property
    def usable(self) -> frozenset[str]:
        """Metrics and signals that a rule may use: numbers that are reliable; of the metrics, texts too."""
        metrics, signals = self.kernel.metrics, self.kernel.signals
        known = {id for id, v in metrics.items() if v.number is not None or isinstance(v.value, str)}
        return frozenset(known | {id for id in signals.keys() - metrics if signals[id].number is not None})

    @functools.cached_property
    def source(self) -> SourceView | None:
        """What every instruction and line cost; None where nothing was counted by instruction."""
        if self.kernel.raw.code is None:  # most reports
            return None
        from ncukit.diagnose.source import source_view

        return source_view(self.kernel)

    @property
    def hot(self) -> tuple[HotLine, ...]:
        """The lines that cost most."""
        if self.source is None:
            return ()
        from ncukit.diagnose.source import hot

        return hot(self.source)

    @property
    def warp_specialised(self) -> bool:
        """Whether producer and consumer warps split the work (mbarriers, warp-group or tcgen05 MMA).

        Few resident warps are the design of such a kernel, not its fault.
        """
        return any(self.at_least(id, 1) for id in ("mbarrier_inst", "warpgroup_mma_inst", "tma_load_bytes"))
