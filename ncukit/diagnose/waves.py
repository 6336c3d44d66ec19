"""How busy the SMs would be if all blocks took equally long: what a partial last wave can explain."""

from __future__ import annotations

import math

from ncukit.diagnose.facts import Facts
from ncukit.record import dataclass

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
